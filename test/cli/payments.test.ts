import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'
import { runOps } from './ops.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})

async function newOrder(changes: Record<string, string> = {}): Promise<{ orderId: string; mid: string }> {
  const { mid, key } = await newMerchant(service.db)
  return { ...(await post(service.app, CREATE, intentFields(mid, changes), key)).body.data, mid }
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
    expect(changes).toEqual([expect.objectContaining({ status: 'SUCCESS', utr: 'TEL1', reason: 'operator' })])
  })

  it('refuses what contradicts in one line, and keeps it', async () => {
    const { orderId } = await newOrder()
    const wrong = await ops('confirm', '--order-id', orderId, '--utr', 'TEL2', '--amount', '199')
    expect(wrong).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: the amount differs from the amount of the order; kept, see ops payments exceptions\n',
    })
    expect((await json('show', '--order-id', orderId)).status).toBe('PENDING')
  })

  it('keeps nothing of an order that does not exist: a typing error is no word of the bank', async () => {
    const orderId = 'f'.repeat(32)
    const wrong = await ops('confirm', '--order-id', orderId, '--utr', 'TEL3', '--amount', '200')
    expect(wrong).toEqual({ code: 1, stdout: '', stderr: 'ops: there is no such order\n' })
    expect(await json('exceptions')).not.toContainEqual(expect.objectContaining({ orderId }))
  })

  it.each([
    [['--order-id', 'x', '--utr', 'U', '--amount', '1'], '--order-id must be our orderId, 32 hex digits'],
    [['--utr', 'U', '--amount', '1'], '--order-id is required'],
    [
      ['--order-id', '0'.repeat(32), '--utr', 'U 1', '--amount', '1.5'],
      '--utr must be 1 to 35 letters and digits; --amount',
    ],
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
})
