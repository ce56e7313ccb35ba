import { userInfo } from 'node:os'
import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import {
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
} from '../support/service.ts'

const AMOUNT = '--amount must be rupees from 1.00 to 100000.00 with at most two decimals, such as 588.82'

let service: TestService
beforeAll(async () => {
  service = await startService()
  // The command line has the clock of the machine.
  service.clock.set(new Date().toISOString())
})

async function newOrder(changes: Record<string, string> = {}): Promise<{ orderId: string; mid: string; key: Key }> {
  const { mid, key } = await newMerchant(service.db)
  return { ...(await post(service.app, CREATE, intentFields(mid, changes), key)).body.data, mid, key }
}

const ops = (...args: string[]) => runOps(service.databaseUrl, ['payments', ...args])

async function json(...args: string[]) {
  const { code, stdout, stderr } = await ops(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

describe('payments confirm', () => {
  it('marks an order as paid, once, as the operator’s doing', async () => {
    const { orderId } = await newOrder()
    const confirm = ['confirm', '--order-id', orderId, '--utr', 'TEL1', '--amount', '200']
    expect(await json(...confirm)).toEqual({ orderId, status: 'SUCCESS', changed: true })
    expect(await json(...confirm)).toEqual({ orderId, status: 'SUCCESS', changed: false })
    const { changes } = await json('show', '--order-id', orderId)
    expect(changes).toEqual([
      expect.objectContaining({
        status: 'SUCCESS',
        utr: 'TEL1',
        reason: 'operator',
        paidAt: null,
        toldBy: userInfo().username,
        note: null,
      }),
    ])
  })

  it('marks an order as paid whose changes have used up their numbers, and the day file does', async () => {
    const [confirmed, imported] = [await newOrder(), await newOrder()]
    await service.db.query('update payment_intents set event_sequence = 32767 where order_id = any ($1)', [
      [confirmed.orderId, imported.orderId],
    ])
    const said = ['--utr', 'TEL5', '--amount', '200']
    expect(await json('confirm', '--order-id', confirmed.orderId, ...said)).toMatchObject({ changed: true })
    const csv = `order_id,status,utr,amount,paid_at\n${imported.orderId},SUCCESS,TEL6,200.00,2026-03-31T18:25:00Z\n`
    const { code, stdout } = await runOps(service.databaseUrl, ['payments', 'import', '-', '--json'], csv)
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ recorded: 1 })])
    for (const { orderId } of [confirmed, imported]) {
      expect(await json('show', '--order-id', orderId)).toMatchObject({ status: 'SUCCESS' })
    }
  })

  it.each([
    ['2026-03-31T18:25:00Z', '2026-03-31T18:25:00.000Z'],
    ['2026-03-31 23:55:00', '2026-03-31T18:25:00.000Z'],
  ])('keeps who was told what, and when the money moved: %s', async (paidAt, moment) => {
    const { orderId } = await newOrder()
    const said = ['--paid-at', paidAt, '--note', 'Mr Iyer, branch 7, by telephone', '--by', 'meera']
    await json('confirm', '--order-id', orderId, '--utr', 'tel4', '--amount', '200.00', ...said)
    const { changes } = await json('show', '--order-id', orderId)
    expect(changes).toEqual([
      expect.objectContaining({
        utr: 'TEL4',
        paidAt: moment,
        toldBy: 'meera',
        note: 'Mr Iyer, branch 7, by telephone',
      }),
    ])
    const { stdout } = await ops('show', '--order-id', orderId)
    expect(stdout).toMatch(/meera .*Mr Iyer, branch 7, by telephone/)
  })

  it('takes a mistyped UTR of a paid order for no double payment, unless it is told that it is one', async () => {
    const { orderId } = await newOrder()
    const confirm = (utr: string, ...more: string[]) => [
      'confirm',
      '--order-id',
      orderId,
      '--utr',
      utr,
      '--amount',
      '200',
      ...more,
    ]
    await json(...confirm('523504870405'))
    expect(await ops(...confirm('523504870450'))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: the order is paid already, with another UTR; add --double if the bank has received both\n',
    })
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([])

    const twice = await json(...confirm('523504870450', '--double', '--by', 'meera', '--note', 'paid by mother too'))
    expect(twice).toEqual({ orderId, status: 'SUCCESS', changed: false, exception: 'double payment' })
    const { utr, exceptions } = await json('show', '--order-id', orderId)
    expect([utr, exceptions]).toEqual([
      '523504870405',
      [
        expect.objectContaining({
          kind: 'double payment',
          status: 'SUCCESS',
          utr: '523504870450',
          toldBy: 'meera',
          note: 'paid by mother too',
        }),
      ],
    ])
  })

  it('says of a late payment that its shop had already been told that it is not paid', async () => {
    const { orderId } = await newOrder()
    await service.db.query(`update payment_intents set expires_at = now() - interval '10 min' where order_id = $1`, [
      orderId,
    ])
    const confirm = ['confirm', '--order-id', orderId, '--utr', 'TEL5', '--amount', '200']
    expect(await json(...confirm)).toEqual({ orderId, status: 'SUCCESS', changed: true, exception: 'late payment' })
    expect(await json(...confirm)).toEqual({ orderId, status: 'SUCCESS', changed: false })
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([
      expect.objectContaining({ kind: 'late payment', utr: 'TEL5', toldBy: userInfo().username }),
    ])
  })

  it('refuses what contradicts in one line, and keeps it', async () => {
    const { mid, key, orderId } = await newOrder()
    const confirm = ['confirm', '--utr', 'TEL2', '--amount', '200', '--order-id']
    await json(...confirm, orderId)
    const other = (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
    expect(await ops(...confirm, other)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: this UTR was already used by another order of the merchant; kept, see ops payments exceptions\n',
    })
    expect((await json('show', '--order-id', other)).status).toBe('PENDING')
  })

  it('keeps nothing of a mistyped amount, and takes the right one afterwards', async () => {
    const { orderId } = await newOrder()
    const confirm = ['confirm', '--order-id', orderId, '--utr', 'TEL6', '--amount']
    for (const amount of ['199', '2000', '200.01']) {
      expect(await ops(...confirm, amount)).toEqual({
        code: 1,
        stdout: '',
        stderr: 'ops: the amount differs from the amount of the order, see ops payments show; nothing was recorded\n',
      })
    }
    expect(await json(...confirm, '200')).toEqual({ orderId, status: 'SUCCESS', changed: true })
    expect(await ops(...confirm, '20', '--double')).toMatchObject({ code: 1, stdout: '' })
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([])
  })

  it('keeps nothing of an order that does not exist: a typing error is not a report of the bank', async () => {
    const orderId = 'f'.repeat(32)
    const wrong = await ops('confirm', '--order-id', orderId, '--utr', 'TEL3', '--amount', '200')
    expect(wrong).toEqual({ code: 1, stdout: '', stderr: 'ops: there is no such order\n' })
    expect(await json('exceptions')).not.toContainEqual(expect.objectContaining({ orderId }))
  })

  it.each([
    [
      ['--order-id', 'x', '--utr', 'U', '--amount', '1'],
      '--order-id must be our orderId, of 32 or 35 letters and digits',
    ],
    [['--utr', 'U', '--amount', '1'], '--order-id is required'],
    [
      ['--order-id', '0'.repeat(32), '--utr', 'U 1', '--amount', '1.505'],
      `--utr must be 1 to 35 letters and digits; ${AMOUNT}`,
    ],
    ...['999999', '100001', '0', '1e3'].map((amount): [string[], string] => [
      ['--order-id', '0'.repeat(32), '--utr', 'U', '--amount', amount],
      AMOUNT,
    ]),
    [
      ['--order-id', '0'.repeat(32), '--utr', 'U', '--amount', '1', '--paid-at', '2026-03-31'],
      '--paid-at must be a time that exists',
    ],
    [['--order-id', '0'.repeat(32), '--utr', 'U', '--amount', '1', '--double=yes'], "--double' does not take"],
  ])('is usage, exit 2, for %j', async (args, line) => {
    const { code, stderr } = await ops('confirm', ...args)
    expect(code).toBe(2)
    expect(stderr).toContain(line)
  })
})

describe('payments show', () => {
  it('tells the whole history, and nothing of the customer', async () => {
    const { orderId, mid } = await newOrder({ order_id: '1001' })
    await notify(service, notification(orderId, { status: 'FAIL', UTR: undefined, paidAt: undefined }))
    service.clock.advance(60)
    await notify(service, notification(orderId, { UTR: 'SHOW1' }))
    await notify(service, notification(orderId, { UTR: 'SHOW2' }))
    const history = await json('show', '--order-id', orderId)
    expect(history).toMatchObject({
      mid,
      orderId,
      merchantOrderId: '1001',
      amount: 200,
      status: 'SUCCESS',
      utr: 'SHOW1',
    })
    expect(history.changes.map((change: { status: string }) => change.status)).toEqual(['FAIL', 'SUCCESS'])
    expect(history.changes[1]).toMatchObject({ reason: 'notification', toldBy: null })
    expect(history.exceptions).toEqual([expect.objectContaining({ kind: 'double payment', utr: 'SHOW2' })])
    const { stdout } = await ops('show', '--order-id', orderId)
    expect(stdout).toContain('double payment')
    expect(stdout + JSON.stringify(history)).not.toMatch(/Asha|asha@|0123456789/)
  })

  it('says that there is no such order', async () => {
    expect((await ops('show', '--order-id', '0'.repeat(32))).stderr).toBe('ops: there is no such order\n')
  })
})

describe('payments exceptions', () => {
  it('lists what the operator has to look into, oldest first', async () => {
    const { orderId } = await newOrder()
    await notify(service, notification(orderId, { UTR: 'EXC1', amount: 1 }))
    const exceptions = await json('exceptions')
    expect(exceptions).toContainEqual(
      expect.objectContaining({ orderId, kind: 'amount differs', utr: 'EXC1', amount: '1.00' }),
    )
    expect((await ops('exceptions')).stdout).toContain('amount differs')
  })

  it('shows late money, what was taken back, and what nobody could read, without what would move the cursor', async () => {
    const { orderId } = await newOrder()
    service.clock.advance(25 * 60)
    await notify(service, notification(orderId, { UTR: 'EXC2' }))
    service.clock.advance(1)
    await notify(service, notification(orderId, { UTR: 'EXC2', status: 'FAIL' }))
    const unreadable = `{"orderId":"${orderId}",\u001b[2J\u009b}`
    await notify(service, unreadable)
    const exceptions = await json('exceptions')
    expect(exceptions).toContainEqual(expect.objectContaining({ orderId, kind: 'late payment', status: 'SUCCESS' }))
    expect(exceptions).toContainEqual(
      expect.objectContaining({ orderId, kind: 'failure after success', status: 'FAIL' }),
    )
    expect(exceptions).toContainEqual(
      expect.objectContaining({ mid: '', kind: 'unreadable', amount: null, body: unreadable }),
    )
    const { stdout } = await ops('exceptions')
    expect(stdout).toMatch(/late payment[^\n]*EXC2[\s\S]*failure after success[^\n]*FAIL {2,}EXC2/)
    expect(stdout).toContain(unreadable.replace(/[\u001b\u009b]/g, '\ufffd').slice(0, 60))
    expect(stdout).not.toMatch(/[\u001b\u009b]/)
  })
})
