import { beforeAll, describe, expect, it } from 'vitest'
import { readPages } from '../../src/books/settlements/pull.ts'
import type { AcquirerError } from '../../src/errors.ts'
import type { ReadSettled, SettledEvent } from '../../src/gateway/acquirers/acquirer.ts'
import { settledReader } from '../../src/gateway/acquirers/acquirers.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import type { CallFault } from '../support/bank-faults.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { number } from '../support/cashfree-forms.ts'
import { type ReconEvent, type ReconPage, reconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { CASHFREE, cashfreeSettings } from '../support/fake-cashfree.ts'
import { startBank } from '../support/service-with-bank.ts'
import { allow } from '../support/webhooks.ts'

const NOW = new Date('2026-02-01T06:00:00Z')

let bank: FakeCashfree

beforeAll(async () => {
  bank = await startBank(CASHFREE, () => NOW)
})

/** The acquirer account configured by the environment. */
const accountOfBank = () => ({
  name: 'cashfree',
  settings: { direct: [], cashfree: cashfreeSettings(bank) },
  version: '',
  disabledAt: null,
})

/** Reads the settlements of two days. Returns the pages and the pauses between calls. */
async function read(limits: Partial<typeof LIMITS.outbound> = {}) {
  const http = createOutboundClient({
    allowedNetworks: allow(),
    limits: { ...LIMITS.outbound, ...limits },
    now: () => NOW,
  })
  const settled = settledReader(accountOfBank(), http)
  const pages: SettledEvent[][] = []
  const pauses: number[] = []
  const pause = async (ms: number) => pauses.push(ms)
  for await (const page of settled?.({ from: '2026-01-14', to: '2026-01-15' }, pause) ?? []) pages.push(page)
  return { pages, pauses }
}

const errorOf = (...pages: ReconPage[]): Promise<AcquirerError> => {
  serveRecon(bank, ...pages)
  return read().then(
    () => expect.unreachable('the pages were accepted'),
    (fault) => fault,
  )
}

/** Returns a single event as the reader returns it. */
async function readOne(type: string, changes: ReconEvent = {}): Promise<SettledEvent> {
  serveRecon(bank, { data: [reconEvent(type, changes)] })
  const [[event] = []] = (await read()).pages
  return event as SettledEvent
}

describe('reading the pages of Cashfree’s reconciliation', () => {
  const page = (count: number, cursor?: unknown) => ({
    data: Array.from({ length: count }, () => reconEvent('PAYMENT')),
    cursor,
  })

  it.each<[string, ReconPage]>([
    ['has no cursor', page(1)],
    ['has an empty cursor', page(1, '')],
    ['has null for a cursor', page(1, null)],
    ['has a cursor but no event', page(0, 'c1')],
    ['has a cursor but no data', { cursor: 'c9' }],
  ])('reads pages with a pause that allows 30 calls per minute, until a page %s', async (_what, last) => {
    const requested = serveRecon(bank, page(2, 'c1'), page(3, 'c2'), last)
    const { pages, pauses } = await read()
    expect(pages.map((events) => events.length)).toEqual(last.data && (last.data as []).length > 0 ? [2, 3, 1] : [2, 3])
    expect(pauses).toEqual([2_000, 2_000])
    const filters = { start_date: '2026-01-14T00:00:00+05:30', end_date: '2026-01-15T23:59:59+05:30' }
    expect(requested).toEqual(
      [{}, { cursor: 'c1' }, { cursor: 'c2' }].map((at) => ({ pagination: { limit: 1_000, ...at }, filters })),
    )
  })

  it('returns no pages from Cashfree for days without settlements', async () => {
    serveRecon(bank, { data: [] })
    expect(await read()).toEqual({ pages: [], pauses: [] })
  })

  it('accepts a page with 1,000 events, within a longer time limit than for other Cashfree calls', async () => {
    serveRecon(bank, page(1_000))
    bank.nextFaults.recon = [{ afterMs: 300 }]
    const { pages } = await read({ acquirerMs: 200 })
    expect(pages[0]).toHaveLength(1_000)
  })

  it('stops with an error when Cashfree returns the same cursor again', async () => {
    const fault = await errorOf(page(1, 'c1'), page(1, 'c2'), page(1, 'c1'))
    expect(fault).toMatchObject({ outcome: 'bad answer', message: expect.stringContaining('do not end') })
  })

  it('stops with an error after 500 pages, whatever cursors Cashfree returns', async () => {
    let requested = 0
    const response = { status: 200, retryAfterSeconds: undefined, text: '' }
    const request = async () => ({ ...response, body: Buffer.from(JSON.stringify(page(1, `c${++requested}`))) })
    const settled = settledReader(accountOfBank(), { request }) as ReadSettled
    const pages = settled({ from: '2026-01-14', to: '2026-01-15' }, async () => undefined)
    const fault = await readPages(pages, undefined).catch((fault) => fault)
    expect(fault).toMatchObject({ outcome: 'bad answer', message: expect.stringContaining('pull fewer days') })
    expect(requested).toBe(500)
  })

  it.each<[string, CallFault[], AcquirerError['outcome']]>([
    ['429', [{ status: 429 }], 'unavailable'],
    ['500', [{ status: 500 }], 'unavailable'],
    ['401', [{ status: 401 }], 'refused'],
    ['half a page', ['half a body'], 'unavailable'],
    ['a page that is not JSON', ['no JSON'], 'bad answer'],
    ['a page without fields', ['no fields'], 'bad answer'],
  ])('stops with an error when Cashfree returns %s', async (_what, faults, outcome) => {
    bank.nextFaults.recon = faults
    expect(await errorOf(page(1))).toMatchObject({ outcome })
  })
})

describe('reading an event of Cashfree’s reconciliation', () => {
  it('converts a PAYMENT event to a settlement line, whether Cashfree sends values as numbers or as text', async () => {
    const event = {
      event_amount: '200.00',
      event_settlement_amount: number('197.64'),
      event_service_charge: number('2.0'),
      event_service_tax: '0.36',
    }
    const payment = await readOne('PAYMENT', {
      event_details: event,
      order_details: { order_id: 'order_1' },
      settlement_details: { utr: 1234 },
    })
    expect(payment).toEqual({
      kind: 'PAYMENT',
      amount: 197_64,
      payoutUtr: '1234',
      paidOutAt: '2026-01-15T10:00:00+05:30',
      line: {
        ...{ orderId: 'order_1', event: 'payment', payment: { id: '1234881617186388204', utr: '523504870405' } },
        ...{ fee: 2_00, tax: 36, initiatedAt: '2026-01-15T10:00:00+05:30', createdAt: '2026-01-15T18:33:51+05:30' },
      },
    })
  })

  it('converts a PAYMENT event with null fee, tax and payout to a settlement line without fee, tax and payout', async () => {
    const { line, payoutUtr } = await readOne('PAYMENT', {
      event_details: { event_service_charge: null, event_service_tax: 'null,' },
      settlement_details: { utr: 'null,', settlement_date: null, settlement_initiated_on: '' },
    })
    expect(line).toMatchObject({ fee: undefined, tax: undefined })
    expect(payoutUtr).toBeUndefined()
    expect((await readOne('PAYMENT', { settlement_details: {} })).payoutUtr).toBe('PGI45406')
  })

  it.each([
    // Columns: amount deducted from the payout, refunded amount, fee, tax, and the stored fee and tax.
    ['no fee', 50, 50, 0, 0, [0, 0]],
    ['a fee for the refund', number('52.36'), 50, 2, number('0.36'), [2_00, 36]],
    ['the payment’s fee returned', number('47.64'), 50, 2, number('0.36'), [-2_00, -36]],
    ['negative numbers', number('-47.64'), -50, -2, number('-0.36'), [-2_00, -36]],
    ['no fee, formatted as -0.0', -50, -50, number('-0.0'), null, [0, 0]],
    ['a fee that is billed elsewhere', 50, 50, 2, number('0.36'), [0, 0]],
  ])(
    'converts a deduction with %s to a settlement line whose amount, fee and tax add up to the customer’s refund',
    async (_what, settled, whole, fee, tax, stored) => {
      const sums = {
        event_settlement_amount: settled,
        event_amount: whole,
        event_service_charge: fee,
        event_service_tax: tax,
      }
      for (const type of ['REFUND', 'DISPUTE', 'CHARGEBACK']) {
        const { amount, line } = await readOne(type, { event_details: sums })
        expect([line?.fee, line?.tax].map((paise) => (paise ?? 0) + 0)).toEqual(stored)
        expect(amount + (line?.fee ?? 0) + (line?.tax ?? 0)).toBe(-50_00)
      }
    },
  )

  it('identifies the settlement line for a refund by the refund’s ARN, or by the event id if the refund has no ARN', async () => {
    const refund = (arn: unknown) =>
      readOne('REFUND', { event_details: { event_id: 77 }, refund_details: { refund_arn: arn } })
    expect((await refund('ARN1')).line).toMatchObject({ utr: 'ARN1', earlierUtr: 'E77' })
    expect((await refund(523504870499)).line?.utr).toBe('523504870499')
    for (const none of [null, 'null,', '', 'not yet']) expect((await refund(none)).line?.utr).toBe('E77')
    // The ARN belongs to an earlier refund of the payment, so a dispute must not reuse it.
    const dispute = { event_details: { event_id: 78 }, refund_details: { refund_arn: 'ARN1' } }
    expect((await readOne('DISPUTE', dispute)).line).toMatchObject({ utr: 'E78' })
  })

  it.each(['REFUND', 'DISPUTE', 'CHARGEBACK'].flatMap((type) => [`${type}_REVERSAL`, `${type}_REVERSE`]))(
    'converts a %s event to a settlement line with the event’s id',
    async (type) => {
      const event_details = { event_id: 4712, event_settlement_amount: number('197.64') }
      const charges = { event_service_charge: 2, event_service_tax: number('0.36') }
      const event = await readOne(type, {
        event_details: { ...event_details, ...charges },
        order_details: { order_id: 'order_1' },
        refund_details: { refund_arn: 'ARN1' },
      })
      expect(event).toMatchObject({
        ...{ kind: type, amount: 197_64, payoutUtr: 'PGI45406' },
        line: { orderId: 'order_1', utr: 'E4712', payment: { utr: '523504870405' }, fee: 2_00, tax: 36 },
      })
    },
  )

  it.each([
    // Columns: amount in the payout, amount of the dispute, and the stored fee and tax.
    ['no charges', 200, 200, [0, 0]],
    ['charges that the payout deducts', number('197.64'), 200, [2_00, 36]],
    // A row that pays money out has no negative fee.
    ['charges that the payout returns', number('202.36'), 200, [0, 0]],
    ['an amount of its own', 150, 200, [0, 0]],
  ])('converts a DISPUTE_REVERSAL event with %s to a settlement line', async (_what, settled, whole, stored) => {
    const charges = { event_service_charge: 2, event_service_tax: number('0.36') }
    const sums = { event_settlement_amount: settled, event_amount: whole }
    const { line } = await readOne('DISPUTE_REVERSAL', { event_details: { ...sums, ...charges } })
    expect([line?.fee, line?.tax]).toEqual(stored)
  })

  it.each([
    ['PAYMENT', { event_status: 'FAILED' }, 'PAYMENT FAILED', 200_00],
    ['PAYMENT', { event_status: null }, 'PAYMENT ?', 200_00],
    ['PAYMENT', { sale_type: 'DEBIT' }, 'PAYMENT', -200_00],
    ['REFUND', { event_status: 'CANCELLED' }, 'REFUND CANCELLED', -200_00],
    ['REFUND', { sale_type: 'CREDIT' }, 'REFUND', 200_00],
    ['DISPUTE', { event_settlement_amount: 0 }, 'DISPUTE', -0],
    // Cashfree deducted more than the customer paid.
    ['PAYMENT', { event_settlement_amount: number('-1.18') }, 'PAYMENT', -1_18],
    ['DISPUTE_REVERSAL', { event_status: 'PENDING' }, 'DISPUTE_REVERSAL PENDING', 200_00],
    ['DISPUTE_REVERSAL', { sale_type: 'DEBIT' }, 'DISPUTE_REVERSAL', -200_00],
    ['DISPUTE_REVERSAL', { event_settlement_amount: 0 }, 'DISPUTE_REVERSAL', 0],
    // A line without a name of its own would repeat the line of its payment.
    ['DISPUTE_REVERSAL', { event_id: null }, 'DISPUTE_REVERSAL', 200_00],
    ['DISPUTE_REVERSAL', { event_id: 'a/b' }, 'DISPUTE_REVERSAL', 200_00],
    ['RISK_REVERSE', {}, 'RISK_REVERSE', 200_00],
    ['OTHER_ADJUSTMENT', { sale_type: 'DEBIT', event_settlement_amount: number('-1.50') }, 'OTHER_ADJUSTMENT', -1_50],
    ['FUND_SWEEP_REVERSAL', { event_service_charge: null }, 'FUND_SWEEP_REVERSAL', 200_00],
    ['\u001b[2J', {}, '?', 200_00],
  ])(
    'adds the event %j with the fields %j to the sums of events that are not stored, but creates no settlement line',
    async (type, details, kind, amount) => {
      const nothing = { order_details: { order_id: null }, payment_details: { bank_reference: null } }
      expect(await readOne(type, { ...nothing, event_details: details })).toEqual({
        ...{ kind, amount, payoutUtr: kind.includes(' ') ? undefined : 'PGI45406' },
        paidOutAt: '2026-01-15T10:00:00+05:30',
      })
    },
  )

  it.each([
    ['event_settlement_amount', number('199.999'), 'must be rupees with at most two decimals'],
    ['event_service_tax', number('0.360'), 'must be rupees with at most two decimals'],
    ['event_service_charge', '2.00001', 'must be rupees with at most two decimals'],
    ['event_amount', number('1e3'), 'must be rupees with at most two decimals'],
    ['event_settlement_amount', null, 'is required with utr'],
  ])('rejects the whole page if the field %s of an event is %j', async (field, value, rule) => {
    const event = reconEvent('PAYMENT', { event_details: { event_id: '4711', [field]: value } })
    const fault = await errorOf({ data: [reconEvent('PAYMENT'), event] })
    expect([fault.outcome, fault.message]).toEqual([
      'bad answer',
      `Cashfree returned settlements in an unknown format: ${field} of the row with id 4711 ${rule}`,
    ])
  })
})
