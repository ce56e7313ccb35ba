import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { saveRefundException } from '../../src/gateway/refunds/record-update.ts'
import { listRefunds } from '../../src/gateway/refunds/store.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

let service: TestService
let merchant: NewMerchant
let orderId: string
const { ops, json } = opsOn(() => service.databaseUrl, [])

beforeAll(async () => {
  service = await startService()
})
beforeEach(async () => {
  merchant = await newMerchant(service.db)
  orderId = await paidOrder()
})

async function paidOrder(): Promise<string> {
  const fields = intentFields(merchant.mid, { amount: '200' })
  const { orderId } = (await post(service.app, CREATE, fields, merchant.key)).body.data as { orderId: string }
  await pay(orderId)
  return orderId
}

const pay = (orderId: string) => notify(service, notification(orderId, { amount: 200, UTR: newUtr() }))

const create = (...more: string[]) =>
  json('refunds', 'create', '--order-id', orderId, '--note', 'One cup was cold', ...more)

/** Moves an open refund to another acquirer than `direct`. Without `dueAt` the service does not check its status. */
const heldBy = (acquirer: string, refundId: string, dueAt?: Date) =>
  service.db.query('update refunds set acquirer = $2, due_at = $3 where our_refund_id = $1', [
    refundId,
    acquirer,
    dueAt,
  ])

describe('ops refunds', () => {
  it('ops refunds creates and shows a refund, and marks the refund done with the bank’s reference', async () => {
    const created = await create('--amount', '50.5')
    expect(created).toEqual({
      ...{ refundId: expect.stringMatching(/^[0-9a-f]{32}$/), refund_id: created.refundId, orderId },
      ...{ order_id: created.order_id, amount: 50.5, txnStatus: 'PENDING', reference: '', reason: '' },
    })
    expect(await json('refunds', 'list', '--open', '--mid', merchant.mid)).toEqual([created])
    const ended = { ...created, txnStatus: 'SUCCESS', reference: '523504870777' }
    expect(
      await json('refunds', 'done', '--refund', created.refundId, '--reference', 'Ref. No. 5235 0487 0777.'),
    ).toEqual(ended)
    expect(await json('refunds', 'show', '--refund', created.refundId)).toEqual(ended)
    expect(await json('refunds', 'list', '--open', '--mid', merchant.mid)).toEqual([])
    for (const again of [
      ['done', '--reference', '1'],
      ['fail', '--reason', 'no'],
    ]) {
      const { code, stderr } = await ops('refunds', ...again, '--refund', created.refundId)
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/already has the final status SUCCESS since 20.* IST: reference 523504870777\n$/),
      ])
    }
  })

  it('ops refunds and ops payments print rupees with Indian digit groups', async () => {
    const fields = intentFields(merchant.mid, { amount: '12345', order_id: 'BIG-1' })
    orderId = ((await post(service.app, CREATE, fields, merchant.key)).body.data as { orderId: string }).orderId
    const UTR = newUtr()
    await notify(service, notification(orderId, { amount: 12_345, UTR }))
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, fee_paise, tax_paise, bank_reference_number, status, initiated_at, created_at, payment_utr)
       values ($1, 'ROW1', 1000000, 200000, 34500, 'BRN', 'SUCCESS', now(), now(), $2)`,
      [merchant.mid, UTR],
    )
    const { refundId } = await create('--amount', '11000.5')
    const said = [
      await ops('refunds', 'list', '--mid', merchant.mid),
      await ops('refunds', 'show', '--refund', refundId),
      await ops('payments', 'find', '--utr', UTR),
      await ops('payments', 'find', '--merchant-order-id', 'BIG-1'),
    ]
    const text = said.map(({ stdout }) => stdout).join('')
    expect(text.match(/₹11,000\.50/g)).toHaveLength(10)
    expect(text).toMatch(/^amount +₹12,345\.00$/m)
    expect(text).toContain('settled: SUCCESS, UTR ROW1, ₹10,000.00, fee ₹2,000.00, tax ₹345.00')
    expect(text).not.toMatch(/\b(12345|11000|10000|2000)(\.|\b)/)
    await service.db.query(`update settlements set payment_utr = 'OTHER' where mid = $1`, [merchant.mid])
    expect((await ops('payments', 'find', '--utr', 'OTHER')).stdout).toMatch(/₹10,000\.00 +₹2,000\.00 +₹345\.00/)
  })

  it('refunds create rejects an amount above the remaining amount, and a failed refund increases the remaining amount again', async () => {
    const { refundId } = await create()
    expect((await ops('refunds', 'create', '--order-id', orderId, '--note', 'again')).stderr).toContain(
      'exceeds the unrefunded rest of the payment',
    )
    const failed = await json('refunds', 'fail', '--refund', refundId, '--reason', 'the account is closed')
    expect(failed).toMatchObject({ txnStatus: 'FAIL', reference: '', reason: 'the account is closed' })
    expect((await ops('refunds', 'done', '--refund', refundId, '--reference', '1')).stderr).toContain(
      'already has the final status FAIL',
    )
    expect(await create('--amount', '200')).toMatchObject({ amount: 200 })
  })

  it('of refunds done and refunds fail run concurrently, exactly one succeeds, with one webhook', async () => {
    await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/hook' }, new Date())
    const refunds = [await create('--amount', '1')]
    for (let number = 2; number <= 20; number += 1) refunds.push(await create('--amount', '1'))
    const ended = await Promise.all(
      refunds.map(({ refundId }) =>
        Promise.all([
          ops('refunds', 'done', '--refund', refundId, '--reference', '523504870777'),
          ops('refunds', 'fail', '--refund', refundId, '--reason', 'closed'),
        ]),
      ),
    )
    expect(ended.map((pair) => pair.map(({ code }) => code).sort())).toEqual(refunds.map(() => [0, 1]))
    const errors = ended.flat().filter(({ code }) => code === 1)
    for (const { stderr } of errors) expect(stderr).toMatch(/already has the final status (SUCCESS|FAIL) since/)
    const { rows } = await service.db.query(
      `select count(*) as events from webhook_deliveries where mid = $1 and our_refund_id is not null group by our_refund_id`,
      [merchant.mid],
    )
    expect(rows.map(({ events }) => Number(events))).toEqual(refunds.map(() => 1))
  })

  it('ops refunds rejects an unknown refund, an unknown exception and an unpaid order', async () => {
    const { refundId: _, ...created } = await create('--amount', '1')
    expect((await ops('refunds', 'show', '--refund', created.order_id)).stderr).toContain('see ops refunds list')
    expect((await ops('refunds', 'create', '--exception', '0123456789ab')).stderr).toContain(
      'exception 0123456789ab does not exist',
    )
    expect((await ops('refunds', 'create', '--order-id', orderId)).code).toBe(2)
    const unpaid = (await post(service.app, CREATE, intentFields(merchant.mid, { amount: '1' }), merchant.key)).body
      .data
    const { stderr } = await ops('refunds', 'create', '--order-id', (unpaid as typeof created).orderId, '--note', 'why')
    expect(stderr).toContain('the order has no successful payment')
  })

  it('refunds create accepts a disabled merchant’s order, and stores no note in the audit', async () => {
    await json('merchants', 'disable', '--mid', merchant.mid)
    const { refundId } = await create()
    const audit = await json('audit')
    const row = audit.find(({ detail }: { detail: { refundId?: string } }) => detail?.refundId === refundId)
    expect(row).toMatchObject({ command: 'refunds create', outcome: 'done', arguments: { note: 'withheld' } })
  })

  it('refunds done and refunds retry reject a refund whose status the acquirer still reports', async () => {
    const { refundId } = await create()
    await heldBy('setu', refundId, new Date())
    const done = ['refunds', 'done', '--refund', refundId, '--reference', 'ARN1']
    expect((await ops(...done)).stderr).toContain('setu still reports the status of')
    await heldBy('setu', refundId)
    const [refund] = await listRefunds(service.db, { ourRefundId: refundId })
    if (!refund) throw new Error('the refund is not stored')
    await saveRefundException(service.db, 'refund unsure', refund, { source: 'enquiry', now: new Date() })
    expect(await json('refunds', 'retry', '--refund', refundId)).toMatchObject({ refundId, txnStatus: 'PENDING' })
    expect((await ops('refunds', 'retry', '--refund', refundId)).stderr).toContain(
      'has no open exception "refund unsure"',
    )
    expect(await json('payments', 'exceptions', '--open', '--mid', merchant.mid)).toEqual([])
    expect((await ops(...done)).stderr).toContain('setu still reports the status of')
    await heldBy('setu', refundId)
    expect(await json(...done)).toMatchObject({ txnStatus: 'SUCCESS' })
    expect((await ops('refunds', 'retry', '--refund', refundId)).stderr).toContain(
      'already has the final status SUCCESS',
    )
    expect(await json('payments', 'exceptions', '--open', '--mid', merchant.mid)).toEqual([])
  })

  it('refunds done accepts a refund that has no status checks, even after an operator has resolved the refund’s exception', async () => {
    const { refundId } = await create()
    await heldBy('setu', refundId)
    const [refund] = await listRefunds(service.db, { ourRefundId: refundId })
    if (!refund) throw new Error('the refund is not stored')
    await saveRefundException(service.db, 'refund unsure', refund, { source: 'enquiry', now: new Date() })
    const [{ id }] = await json('payments', 'exceptions', '--open', '--mid', merchant.mid)
    await json('payments', 'resolve', '--exception', id, '--reason', 'refunded at the bank, RRN 523504870777')
    const done = await json('refunds', 'done', '--refund', refundId, '--reference', '523504870777')
    expect(done).toMatchObject({ txnStatus: 'SUCCESS', reference: '523504870777' })
  })

  it('refunds done resolves the double payment that the refund was created for', async () => {
    await pay(orderId)
    const [{ id }] = await json('payments', 'exceptions', '--mid', merchant.mid)
    const { refundId } = await json('refunds', 'create', '--exception', id)
    expect(await json('payments', 'exceptions', '--open', '--mid', merchant.mid)).toHaveLength(1)
    await json('refunds', 'done', '--refund', refundId, '--reference', 'ARN9')
    expect(await json('payments', 'exceptions', '--mid', merchant.mid)).toMatchObject([
      { id, resolution: expect.stringContaining('ARN9') },
    ])
    expect(await create()).toMatchObject({ amount: 200 })
  })
})

it('payments show lists the refunds in an order’s history', async () => {
  const { refundId } = await create('--amount', '50')
  const steps = async () => (await json('payments', 'show', '--order-id', orderId)).steps.map((one: Step) => one.what)
  type Step = { what: string }
  expect(await steps()).toContain(`refund ${refundId} of ₹50.00 requested: One cup was cold; still open`)
  await json('refunds', 'done', '--refund', refundId, '--reference', 'ARN1')
  expect(await steps()).toEqual(expect.arrayContaining([`refund ${refundId} SUCCESS, reference ARN1`]))
})

it('payments show prints refunded and open amounts without refunds of a duplicate payment, and the settlement day', async () => {
  const show = () => json('payments', 'show', '--order-id', orderId)
  const { refundId } = await create('--amount', '50')
  await json('refunds', 'done', '--refund', refundId, '--reference', 'ARN1')
  await create('--amount', '20.50')
  const { refundId: failed } = await create('--amount', '10')
  await json('refunds', 'fail', '--refund', failed, '--reason', 'the account is closed')
  await notify(service, notification(orderId, { UTR: newUtr() }))
  const [duplicate] = (await show()).exceptions
  await json('refunds', 'create', '--exception', duplicate.id)
  const figures = { amount: 200, refunded: 50, refundsOpen: 20.5, refundable: 129.5 }
  expect(await show()).toMatchObject({ ...figures, settlementDueOn: expect.stringMatching(/^20\d\d-\d\d-\d\d$/) })
})

it('ops today counts open refunds, and warns like /readyz if the refunds’ acquirer is not configured', async () => {
  const { refundId } = await create('--amount', '50')
  await heldBy('setu', refundId)
  const today = await json('today')
  expect(today.refunds).toMatchObject({ open: expect.any(Number), overdue: 0 })
  const warning = expect.stringMatching(/^Refunds at the acquirer setu are waiting: set SETU_/)
  expect(today.warnings).toEqual([warning])
  const { body } = await service.app.inject('/readyz')
  expect(JSON.parse(body).data.warnings).toContainEqual(warning)
  expect(await service.metrics()).toMatch(/^payment_refunds_open\{age="up to T\+5 days"\} [1-9]/m)
  expect((await ops('today')).stdout).toMatch(/^today +refunds +\d+ open, ₹[\d,.]+; 0 older than T\+5 days$/m)
})
