import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

let service: TestService
let merchant: NewMerchant
let orderId: string
let utr: string
const { ops, json } = opsOn(() => service.databaseUrl, [])

beforeAll(async () => {
  service = await startService()
})
beforeEach(async () => {
  merchant = await newMerchant(service.db)
  ;[orderId, utr] = await paidOrder()
})

async function newOrder(): Promise<string> {
  return (await post(service.app, CREATE, intentFields(merchant.mid, { amount: '200' }), merchant.key)).body.data
    .orderId as string
}

async function paidOrder(): Promise<[string, string]> {
  const [id, UTR] = [await newOrder(), newUtr()]
  await notify(service, notification(id, { amount: 200, UTR }))
  return [id, UTR]
}

const FACTS = ['--amount', '150.50', '--kind', 'CHARGEBACK', '--reason', 'goods not received']
const add = (...more: string[]) => json('disputes', 'add', '--order-id', orderId, '--dispute', 'D1', ...more)
const named = (...more: string[]) => ['--mid', merchant.mid, '--dispute', 'D1', ...more]
const update = (...more: string[]) => json('disputes', 'update', ...named(...more))
const refund = (...more: string[]) => [
  'refunds',
  'create',
  '--order-id',
  orderId,
  '--note',
  'One cup was cold',
  ...more,
]

/** The disputes of the merchant in `ops disputes list`. */
const listed = async (...more: string[]) =>
  ((await json('disputes', 'list', '--mid', merchant.mid, ...more)) as { disputeId: string }[]).map(
    ({ disputeId }) => disputeId,
  )

const rejected = async (args: string[]) => {
  const { code, stderr } = await ops(...args)
  expect(code, stderr).toBe(1)
  return stderr
}

const stored = async () => (await service.db.query('select from disputes where mid = $1', [merchant.mid])).rowCount

describe('ops disputes', () => {
  it('records a dispute with its facts, and shows it with its history', async () => {
    const respondBy = new Date(Date.now() + 3 * 24 * 60 * 60_000).toISOString()
    const dispute = await add(...FACTS, '--respond-by', respondBy, '--opened', '2026-01-26')
    expect(dispute).toMatchObject({
      ...{ mid: merchant.mid, acquirer: 'direct', disputeId: 'D1', orderId, utr, amount: '150.50', kind: 'CHARGEBACK' },
      ...{ reasonCode: null, reasonText: 'goods not received', respondBy, openedAt: '2026-01-25T18:30:00.000Z' },
      status: 'open',
    })
    await update('--status', 'under review')
    expect(await update('--status', 'won', '--amount', '99')).toMatchObject({ status: 'won', amount: '99.00' })
    const { states, ...shown } = await json('disputes', 'show', ...named('--acquirer', 'direct'))
    expect(shown).toMatchObject({ status: 'won', amount: '99.00', reasonText: 'goods not received', respondBy })
    expect(states.map((one: { status: string }) => one.status)).toEqual(['open', 'under review', 'won'])
    const { stdout } = await ops('disputes', 'show', ...named())
    expect(stdout).toMatch(/^amount +₹99\.00$/m)
    expect(stdout).toContain(`ops disputes update --mid ${merchant.mid} --dispute D1 --acquirer direct\n`)
  })

  it('an update without a status changes the facts, and states no status', async () => {
    await add()
    expect(await update('--respond-by', '2026-12-01 18:00')).toMatchObject({
      status: 'open',
      respondBy: '2026-12-01T12:30:00.000Z',
    })
    const { states } = await json('disputes', 'show', ...named())
    expect(states).toHaveLength(1)
  })

  it('lists disputes by status, merchant and acquirer account, and those that are not final', async () => {
    await add()
    await json('disputes', 'add', '--order-id', orderId, '--dispute', 'D2', '--status', 'under review')
    await json('disputes', 'add', '--order-id', orderId, '--dispute', 'D3', '--status', 'accepted')
    expect(await listed()).toEqual(['D1', 'D2', 'D3'])
    expect(await listed('--open')).toEqual(['D1', 'D2'])
    expect(await listed('--status', 'accepted')).toEqual(['D3'])
    expect(await listed('--status', 'accepted', '--open')).toEqual([])
    expect(await listed('--acquirer', 'direct')).toEqual(['D1', 'D2', 'D3'])
    expect(await listed('--acquirer', 'cashfree')).toEqual([])
    const { stdout } = await ops('disputes', 'list', '--mid', merchant.mid, '--status', 'won')
    expect(stdout).toBe('No disputes.\n')
  })

  it('records a dispute of a duplicate payment by its UTR', async () => {
    const second = newUtr()
    await notify(service, notification(orderId, { amount: 200, UTR: second }))
    expect(await add('--utr', `UTR ${second.slice(0, 6)} ${second.slice(6)}`)).toMatchObject({ utr: second })
  })

  it('resolves the exception of a dispute that was reported before its payment', async () => {
    const unpaid = await newOrder()
    const report = { id: 'EARLY', orderId: unpaid, status: 'open' } as const
    await createDisputes(service.db).record('direct', report, { source: 'notification', now: () => new Date() })
    const ofDispute = async () =>
      (await json('payments', 'exceptions', '--kind', 'unknown dispute')).filter(
        ({ orderId }: { orderId: string }) => orderId === unpaid,
      )
    expect(await ofDispute()).toMatchObject([{ resolution: null }])
    await notify(service, notification(unpaid, { amount: 200, UTR: newUtr() }))
    await json('disputes', 'add', '--order-id', unpaid, '--dispute', 'EARLY')
    expect(await ofDispute()).toMatchObject([{ resolution: 'the dispute is stored' }])
  })

  it('the payment of an order shows its disputes', async () => {
    await add(...FACTS, '--opened', '2026-01-26')
    const { disputes, refundable } = await json('payments', 'show', '--order-id', orderId)
    expect([disputes, refundable]).toEqual([[expect.objectContaining({ disputeId: 'D1', status: 'open' })], 200])
    const text = async () => (await ops('payments', 'show', '--order-id', orderId)).stdout
    expect(await text()).toMatch(/\nDisputes\n.*\n- +D1 +open +₹150\.50 +CHARGEBACK +goods not received /)
    await update('--status', 'lost')
    expect((await json('payments', 'show', '--order-id', orderId)).refundable).toBe(49.5)
    expect(await text()).toMatch(/^- +D1 +lost /m)
  })
})

it('the service counts the disputes that await a response by deadline', async () => {
  await add('--respond-by', new Date(service.clock.now().getTime() + 60 * 60_000).toISOString())
  expect(await service.metrics()).toMatch(/^payment_disputes_open\{deadline="within 48 hours"\} [1-9]/m)
})

describe('ops disputes rejects', () => {
  const UNKNOWN_PAYMENT = 'the order has no such payment: see ops payments show, or record it with ops payments confirm'
  it('a dispute of an unpaid order or an unknown payment, and stores nothing', async () => {
    const unpaid = await newOrder()
    expect(await rejected(['disputes', 'add', '--order-id', unpaid, '--dispute', 'D1'])).toContain(UNKNOWN_PAYMENT)
    const other = newUtr()
    expect(await rejected(['disputes', 'add', '--order-id', orderId, '--dispute', 'D1', '--utr', other])).toContain(
      UNKNOWN_PAYMENT,
    )
    const unknown = '0'.repeat(32)
    expect(await rejected(['disputes', 'add', '--order-id', unknown, '--dispute', 'D1'])).toContain('does not exist')
    expect(await stored()).toBe(0)
  })

  it('a second dispute with the same id, an amount above the payment, and an opening in the future', async () => {
    const again = ['disputes', 'add', '--order-id', orderId, '--dispute', 'D1']
    expect(await rejected([...again, '--amount', '200.01'])).toContain('the payment is only ₹200.00: check --amount')
    expect(await rejected([...again, '--opened', '2099-01-01'])).toContain(
      '--opened 2099-01-01 00:00:00 IST is after now',
    )
    expect(await stored()).toBe(0)
    await add()
    expect(await rejected(again)).toContain(
      `dispute D1 is already recorded: run ops disputes update --mid ${merchant.mid} --dispute D1`,
    )
    expect(await rejected(['disputes', 'update', ...named('--amount', '201')])).toContain('the payment is only ₹200.00')
  })

  it('another status of a final dispute, and stores no exception', async () => {
    await add('--status', 'lost')
    for (const status of ['won', 'open'])
      expect(await rejected(['disputes', 'update', ...named('--status', status)])).toContain(
        'dispute D1 is lost since ',
      )
    expect((await json('payments', 'show', '--order-id', orderId)).exceptions).toEqual([])
    expect(await update('--status', 'lost', '--amount', '10')).toMatchObject({ status: 'lost', amount: '10.00' })
  })

  it('the 21st dispute of a payment', async () => {
    for (let number = 1; number <= 20; number += 1) {
      const report = { id: `N${number}`, orderId, status: 'won' } as const
      await createDisputes(service.db).record('direct', report, { source: 'notification', now: () => new Date() })
    }
    expect(await rejected(['disputes', 'add', '--order-id', orderId, '--dispute', 'D1'])).toContain(
      'the payment already has 20 disputes: see ops disputes list',
    )
    expect(await stored()).toBe(20)
  })

  it('an update that names no fact, no known dispute, or one of several acquirer accounts', async () => {
    const { code, stderr } = await ops('disputes', 'update', ...named())
    expect([code, stderr]).toEqual([2, expect.stringContaining('give at least one of --status, --amount, --kind')])
    expect(await rejected(['disputes', 'show', ...named()])).toContain('see ops disputes list')
    await add()
    const paid = { mid: merchant.mid, utr: newUtr(), paidAt: new Date(), acquirer: 'setu' }
    await json('disputes', 'add', '--order-id', await storePaidOrder(service.db, paid), '--dispute', 'D1')
    expect(await rejected(['disputes', 'update', ...named('--status', 'won')])).toContain(
      'dispute D1 exists at several acquirer accounts: add --acquirer',
    )
    expect(await update('--status', 'won', '--acquirer', 'setu')).toMatchObject({ acquirer: 'setu', status: 'won' })
  })
})

describe('refunds of a disputed payment', () => {
  it('ops disputes add fails unsent refunds, and warns of the refunds that continue', async () => {
    const [{ refundId: open }, { refundId: unsent }] = [
      await json(...refund('--amount', '10')),
      await json(...refund('--amount', '20')),
    ]
    await service.db.query(`update refunds set acquirer = 'setu' where our_refund_id = $1`, [unsent])
    const { code, stderr } = await ops('disputes', 'add', '--order-id', orderId, '--dispute', 'D1')
    expect(code).toBe(0)
    expect(stderr).toContain('new exception "refund of a disputed payment": see ops payments exceptions --open')
    const { refunds } = await json('payments', 'show', '--order-id', orderId)
    const byId = new Map(refunds.map((one: { refundId: string }) => [one.refundId, one]))
    expect([byId.get(open), byId.get(unsent)]).toMatchObject([
      { txnStatus: 'PENDING' },
      { txnStatus: 'FAIL', reason: 'The payment is disputed' },
    ])
  })

  it('ops refunds create requires --despite-dispute while a dispute is not final, and then warns', async () => {
    await add('--amount', '150')
    expect(await rejected(refund())).toContain('add --despite-dispute to refund it nevertheless')
    const { code, stderr } = await ops(...refund('--amount', '10', '--despite-dispute'))
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('a dispute of the payment is open: the bank may return the money a second time'),
    ])
    await update('--status', 'won')
    expect((await ops(...refund('--amount', '10'))).code).toBe(0)
  })
})
