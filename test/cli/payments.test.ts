import { userInfo } from 'node:os'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { istDayOf, nextDay, toIstText } from '../../src/platform/time.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import {
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
} from '../support/service.ts'
import { untilBlocked } from '../support/wait.ts'

const AMOUNT = '--amount must be rupees from 1.00 to 500000.00 with at most two decimals, such as 588.82'

let service: TestService
beforeAll(async () => {
  service = await startService()
  // `ops` uses the machine’s clock, so the service must too.
  service.clock.set(new Date().toISOString())
})

async function newOrder(changes: Record<string, string> = {}): Promise<{ orderId: string; mid: string; key: Key }> {
  const { mid, key } = await newMerchant(service.db)
  return { ...(await post(service.app, CREATE, intentFields(mid, changes), key)).body.data, mid, key }
}

const { ops, json } = opsOn(() => service.databaseUrl, ['payments'])

describe('payments confirm', () => {
  /** Arguments that confirm a payment of ₹200 for an order, followed by `more`. */
  const confirm = (orderId: string, utr: string, ...more: string[]) => [
    ...['confirm', '--order-id', orderId, '--utr', utr],
    ...(more.includes('--amount') ? more : ['--amount', '200', ...more]),
  ]
  const rejected = (line: string) => ({ code: 1, stdout: '', stderr: `ops: ${line}\n` })

  it('payments confirm marks an order as paid once, and stores operator as the source of the payment', async () => {
    const { orderId } = await newOrder()
    for (const changed of [true, false]) {
      expect(await json(...confirm(orderId, 'TEL1'))).toEqual({ orderId, status: 'SUCCESS', changed })
    }
    const { changes } = await json('show', '--order-id', orderId)
    const reported = { reason: 'operator', paidAt: null, toldBy: userInfo().username, note: null }
    expect(changes).toEqual([expect.objectContaining({ status: 'SUCCESS', utr: 'TEL1', ...reported })])
  })

  it.each([
    ['ISO 8601', (moment: Date) => moment.toISOString()],
    ['IST', toIstText],
  ])('payments confirm stores operator, note and the --paid-at time given as %s', async (_form, write) => {
    const { orderId } = await newOrder()
    const moment = `${service.clock.now().toISOString().slice(0, 19)}.000Z`
    const paidAt = write(new Date(moment))
    const reported = { toldBy: 'meera', note: 'Mr Iyer, branch 7, by telephone' }
    await json(...confirm(orderId, 'tel4', '--paid-at', paidAt, '--note', reported.note, '--by', reported.toldBy))
    const { changes } = await json('show', '--order-id', orderId)
    expect(changes).toEqual([expect.objectContaining({ utr: 'TEL4', paidAt: moment, ...reported })])
    const { stdout } = await ops('show', '--order-id', orderId)
    expect(stdout).toMatch(/meera .*Mr Iyer, branch 7, by telephone/)
  })

  it('payments confirm dates a payment on the day on which it is stored, even if the command begins the day before', async () => {
    const { orderId } = await newOrder()
    const client = await service.db.connect()
    await client.query('begin')
    await client.query('select from payment_intents where order_id = $1 for update', [orderId])
    const midnight = nextDay(istDayOf(new Date()))
    vi.useFakeTimers({ toFake: ['Date'], now: new Date(midnight.getTime() - 1_000) })
    const confirming = json(...confirm(orderId, 'TEL5')).finally(vi.useRealTimers)
    await untilBlocked(service.db)
    vi.setSystemTime(midnight)
    await client.query('rollback')
    client.release()
    await confirming
    const { rows } = await service.db.query('select received_at from payments where order_id = $1', [orderId])
    expect(rows).toEqual([{ received_at: midnight }])
  })

  it('payments confirm rejects another UTR for a paid order unless the flag --double is given', async () => {
    const { orderId } = await newOrder()
    await json(...confirm(orderId, '523504870405'))
    expect(await ops(...confirm(orderId, '523504870450'))).toEqual(
      rejected('the order is already paid, with another UTR: add --double if the bank received both payments'),
    )
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([])

    const reported = { toldBy: 'meera', note: 'paid by mother too' }
    const twice = confirm(orderId, '523504870450', '--double', '--by', reported.toldBy, '--note', reported.note)
    const stored = { status: 'SUCCESS', changed: false, exception: 'double payment' }
    expect(await json(...twice)).toEqual({ orderId, ...stored })
    const { utr, exceptions } = await json('show', '--order-id', orderId)
    const exception = { kind: 'double payment', status: 'SUCCESS', utr: '523504870450', ...reported }
    expect([utr, exceptions]).toEqual(['523504870405', [expect.objectContaining(exception)]])
  })

  it('payments confirm extracts the reference from pasted text and stores no other part of the text in the audit', async () => {
    const { orderId } = await newOrder()
    const [utr, pasted] = [newUtr(), (rrn: string) => `UPI/CR/${rrn}/Asha Rao/asha@okaxis`]
    for (const changed of [true, false]) {
      expect(await json(...confirm(orderId, pasted(utr)))).toEqual({ orderId, status: 'SUCCESS', changed })
    }
    expect(await json('show', '--order-id', orderId)).toMatchObject({ utr })
    expect((await ops(...confirm(orderId, 'UTR: NA'))).stderr).toContain('and not a placeholder such as NA')
    const { rows } = await service.db.query(
      `select arguments from audit_commands where command = 'payments confirm' and arguments ->> 'orderId' = $1`,
      [orderId],
    )
    expect(rows.map((row) => row.arguments.utr)).toEqual([utr, utr])
  })

  it('payments confirm stores a late payment if checkPaymentStatus already returned an unpaid final status', async () => {
    const { orderId } = await newOrder()
    await service.db.query(`update payment_intents set expires_at = now() - interval '10 min' where order_id = $1`, [
      orderId,
    ])
    for (const late of [{ changed: true, exception: 'late payment' }, { changed: false }]) {
      expect(await json(...confirm(orderId, 'TEL5'))).toEqual({ orderId, status: 'SUCCESS', ...late })
    }
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([
      expect.objectContaining({ kind: 'late payment', utr: 'TEL5', toldBy: userInfo().username }),
    ])
  })

  it('payments confirm rejects a UTR of another order with a one-line error and stores an exception', async () => {
    const { mid, key, orderId } = await newOrder()
    await json(...confirm(orderId, 'TEL2'))
    const other = (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
    expect(await ops(...confirm(other, 'TEL2'))).toEqual(
      rejected(
        'another order of the merchant already has this UTR; stored as an exception, see ops payments exceptions',
      ),
    )
    const { status, exceptions } = await json('show', '--order-id', other)
    expect([status, exceptions]).toEqual(['PENDING', [expect.objectContaining({ kind: 'UTR of another order' })]])
  })

  it('payments confirm stores nothing for an incorrect amount or orderId, and then accepts the correct values', async () => {
    const { orderId } = await newOrder()
    const differs = 'the amount differs from the order’s amount: see ops payments show; nothing was recorded'
    for (const amount of ['199', '2000', '200.01']) {
      expect(await ops(...confirm(orderId, 'TEL6', '--amount', amount))).toEqual(rejected(differs))
    }
    expect(await json(...confirm(orderId, 'TEL6'))).toEqual({ orderId, status: 'SUCCESS', changed: true })
    expect(await ops(...confirm(orderId, 'TEL6', '--amount', '20', '--double'))).toEqual(rejected(differs))
    expect((await json('show', '--order-id', orderId)).exceptions).toEqual([])
    const unknown = 'f'.repeat(32)
    expect(await ops(...confirm(unknown, 'TEL3'))).toEqual(rejected('the order does not exist'))
    expect(await json('exceptions')).not.toContainEqual(expect.objectContaining({ orderId: unknown }))
  })

  const UNKNOWN_ORDER = '0'.repeat(32)
  it.each([
    [confirm('x', 'U'), '--order-id must be the service’s orderId, 32 hex digits'],
    [['confirm', '--utr', 'U', '--amount', '1'], '--order-id is required'],
    [confirm(UNKNOWN_ORDER, 'U/1', '--amount', '1.505'), `--utr must be 1 to 35 letters and digits; ${AMOUNT}`],
    ...['999999', '500001', '0', '1e3'].map(
      (amount) => [confirm(UNKNOWN_ORDER, 'U', '--amount', amount), AMOUNT] as const,
    ),
    [confirm(UNKNOWN_ORDER, 'U', '--paid-at', '2026-03-31'), '--paid-at must be an existing time'],
    [confirm(UNKNOWN_ORDER, 'U', '--double=yes'), "--double' does not take"],
  ] as const)('payments confirm rejects the arguments %j with usage and exit code 2', async (args, line) => {
    const { code, stderr } = await ops(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(line)
  })
})

it('payments show reports that an unknown order does not exist', async () => {
  expect((await ops('show', '--order-id', '0'.repeat(32))).stderr).toBe(
    'ops: the order does not exist: search with ops payments find\n',
  )
})

describe('payments exceptions', () => {
  it('payments exceptions lists exceptions oldest first and replaces terminal control characters', async () => {
    const { orderId } = await newOrder()
    await notify(service, notification(orderId, { UTR: 'EXC1', amount: 1 }))
    service.clock.advance(25 * 60)
    await notify(service, notification(orderId, { UTR: 'EXC2' }))
    service.clock.advance(1)
    await notify(service, notification(orderId, { UTR: 'EXC2', status: 'FAIL' }))
    service.clock.advance(1)
    const unreadable = `{"orderId":"${orderId}",\u001b[2J\u009b}`
    await notify(service, unreadable)
    const ofOrder = ({ orderId: of, body }: { orderId: string; body: string }) => of === orderId || body === unreadable
    expect((await json('exceptions')).filter(ofOrder)).toMatchObject([
      { orderId, kind: 'amount differs', utr: 'EXC1', amount: '1.00' },
      { orderId, kind: 'late payment', status: 'SUCCESS' },
      { orderId, kind: 'failure after success', status: 'FAIL' },
      { mid: '', kind: 'unreadable', amount: null, body: unreadable },
    ])
    const { stdout } = await ops('exceptions')
    expect(stdout).toMatch(/amount differs[\s\S]*late payment[^\n]*EXC2[\s\S]*failure after success[^\n]*FAIL {2,}EXC2/)
    expect(stdout).toContain(unreadable.replace(/[\u001b\u009b]/g, '\ufffd').slice(0, 60))
    expect(stdout).not.toMatch(/[\u001b\u009b]/)
  })
})
