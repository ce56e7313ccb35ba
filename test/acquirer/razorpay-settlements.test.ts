import { beforeEach, describe, expect, it } from 'vitest'
import type { AcquirerError } from '../../src/errors.ts'
import type { SettledEvent } from '../../src/gateway/acquirers/acquirer.ts'
import { createRazorpayRequest } from '../../src/gateway/acquirers/razorpay/http.ts'
import { razorpaySettled } from '../../src/gateway/acquirers/razorpay/settlements.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import { seeded } from '../support/bank-faults.ts'
import { RAZORPAY_RECON, type ReconRow, reconRow, startRecon } from '../support/razorpay-recon.ts'
import { allow } from '../support/webhooks.ts'

const [WEDNESDAY, THURSDAY] = ['2026-01-14', '2026-01-15']

const recon = await startRecon()
beforeEach(() => {
  recon.rows.clear()
  recon.pageOf = undefined
  recon.requested.splice(0)
})

/** Reads the settlements of two days. Returns the pages and the pauses between calls. */
async function read(clientSecret = RAZORPAY_RECON.clientSecret) {
  const http = createOutboundClient({ allowedNetworks: allow(), limits: LIMITS.outbound, now: () => new Date() })
  const account = { ...RAZORPAY_RECON, apiUrl: recon.apiUrl, clientSecret, notificationSecrets: [], linkMinutes: 10 }
  const pages: SettledEvent[][] = []
  const pauses: number[] = []
  const settled = razorpaySettled(createRazorpayRequest(account, http))
  for await (const page of settled({ from: WEDNESDAY, to: THURSDAY }, async (ms) => pauses.push(ms))) pages.push(page)
  return { pages, pauses }
}

const errorOf = (secret?: string): Promise<AcquirerError> =>
  read(secret).then(
    () => expect.unreachable('the pages were accepted'),
    (error) => error,
  )

/** Returns a single row as the reader returns it. */
async function readOne(type: string, changes: ReconRow = {}) {
  const row = reconRow(type, changes)
  recon.rows.set(WEDNESDAY, [row])
  const [[event] = []] = (await read()).pages
  return { ...(event as SettledEvent), id: String(row.entity_id) }
}

const rowsOf = (count: number) => Array.from({ length: count }, () => reconRow('payment'))

describe('reading the pages of Razorpay’s combined reconciliation', () => {
  it('reads each day in pages of 1,000 rows, with a pause between the calls', async () => {
    recon.rows.set(WEDNESDAY, rowsOf(2_001)).set(THURSDAY, rowsOf(1_000))
    const { pages, pauses } = await read()
    expect(pages.map((events) => events.length)).toEqual([1_000, 1_000, 1, 1_000])
    expect(pauses).toEqual(Array(4).fill(1_000))
    expect(recon.requested).toEqual([
      ...[`${WEDNESDAY} 1000 0`, `${WEDNESDAY} 1000 1000`, `${WEDNESDAY} 1000 2000`],
      ...[`${THURSDAY} 1000 0`, `${THURSDAY} 1000 1000`],
    ])
  })

  it('returns no pages for days without settlements', async () => {
    expect((await read()).pages).toEqual([])
    expect(recon.requested).toHaveLength(2)
  })

  it('reads the days across the end of a year', async () => {
    const http = createOutboundClient({ allowedNetworks: allow(), limits: LIMITS.outbound, now: () => new Date() })
    const account = { ...RAZORPAY_RECON, apiUrl: recon.apiUrl, notificationSecrets: [], linkMinutes: 10 }
    const settled = razorpaySettled(createRazorpayRequest(account, http))
    for await (const _ of settled({ from: '2025-12-30', to: '2026-01-02' }, async () => undefined)) expect.unreachable()
    expect(recon.requested.map((one) => one.slice(0, 10))).toEqual([
      ...['2025-12-30', '2025-12-31', '2026-01-01', '2026-01-02'],
    ])
  })

  it('stops with an error when Razorpay returns the same page again', async () => {
    const items = rowsOf(1_000)
    recon.pageOf = () => ({ body: { items } })
    expect(await errorOf()).toMatchObject({ outcome: 'bad answer', message: expect.stringContaining('do not end') })
    expect(recon.requested).toHaveLength(2)
  })

  it.each<[string, { status?: number; body: unknown }, AcquirerError['outcome']]>([
    ['429', { status: 429, body: {} }, 'unavailable'],
    ['500', { status: 500, body: {} }, 'unavailable'],
    ['400', { status: 400, body: { error: { code: 'BAD_REQUEST_ERROR' } } }, 'refused'],
    ['a page without rows', { body: { count: 0 } }, 'bad answer'],
    ['text', { body: 'maintenance' }, 'bad answer'],
  ])('stops with an error when Razorpay returns %s', async (_what, page, outcome) => {
    recon.pageOf = () => page
    expect(await errorOf()).toMatchObject({ outcome })
  })

  it('stops with an error when Razorpay rejects the key', async () => {
    expect(await errorOf('another secret')).toMatchObject({ outcome: 'refused', facts: { status: 401 } })
  })
})

describe('reading a row of Razorpay’s combined reconciliation', () => {
  it('converts a payment to a settlement line whose fee does not include the tax', async () => {
    const { id, ...event } = await readOne('payment', { order_receipt: 'order_1' })
    const utr = id.replace('_', '').toUpperCase()
    expect(event).toEqual({
      ...{ kind: 'payment', amount: 195_28, payoutUtr: '1568176960vxp0rj', paidOutAt: '2026-01-15T04:00:00.000Z' },
      line: {
        ...{
          orderId: 'order_1',
          event: 'payment',
          payment: { id, utr: undefined },
          earlierUtr: utr,
          instrument: undefined,
        },
        ...{ fee: 4_00, tax: 72, initiatedAt: '2026-01-15T04:00:00.000Z', createdAt: undefined },
      },
    })
  })

  it.each([
    ['no fee', 'payment', { credit: 200_00, fee: 0, tax: 0 }, 200_00, [0, 0]],
    ['a fee of null', 'payment', { credit: 200_00, fee: null, tax: null }, 200_00, [0, 0]],
    ['a fee that is billed elsewhere', 'payment', { credit: 200_00 }, 200_00, [0, 0]],
    ['a fee without tax', 'payment', { credit: 197_10, fee: 2_90, tax: 0 }, 197_10, [2_90, 0]],
    ['a refund', 'refund', {}, -200_00, [0, 0]],
    ['a refund with a fee', 'refund', { debit: 205_90, fee: 5_90, tax: 90 }, -205_90, [5_00, 90]],
  ])('reads %s', async (_what, type, changes, amount, [fee, tax]) => {
    const event = await readOne(type, changes)
    expect([event.amount, event.line?.fee, event.line?.tax]).toEqual([amount, fee, tax])
    expect(amount + Number(fee) + Number(tax)).toBe(type === 'payment' ? 200_00 : -200_00)
  })

  it.each([
    ['refund', {}, 'refund', -200_00],
    ['adjustment', { dispute_id: 'disp_1' }, 'dispute', -200_00],
    ['adjustment', { dispute_id: 'disp_1', debit: 0, credit: 200_00 }, 'dispute reversal', 200_00],
  ])(
    'converts the row %s with %j to a line of the event %s, with the row’s id',
    async (type, changes, name, amount) => {
      const { id, ...event } = await readOne(type, { payment_id: 'pay_1', order_receipt: 'order_1', ...changes })
      const utr = `E${id.replace('_', '')}`.toUpperCase()
      expect(event).toMatchObject({ amount, line: { orderId: 'order_1', utr, event: name, payment: { id: 'pay_1' } } })
    },
  )

  it.each([
    ['adjustment', {}, 'adjustment', -200_00],
    ['adjustment', { dispute_id: 'disp_1', debit: 0 }, 'adjustment of a dispute', 0],
    ['transfer', { debit: 200_59, fee: 59, tax: 9 }, 'transfer', -200_59],
    // The refund was returned: a line would replace that of the refund, which has the same id.
    ['refund', { debit: 0, credit: 200_00 }, 'refund', 200_00],
    ['payment', { debit: 10_00, credit: 0 }, 'payment', -10_00],
    ['\u001b[2J', {}, '?', -200_00],
  ])('adds the row %j with %j to the sums, but creates no settlement line', async (type, changes, kind, amount) => {
    const { id: _, ...event } = await readOne(type, changes)
    expect(event).toEqual({
      ...{ kind, amount, payoutUtr: '1568176960vxp0rj', paidOutAt: '2026-01-15T04:00:00.000Z' },
    })
  })

  it.each(['payment', 'adjustment'])('reports no payout for the row %s without settlement_utr', async (type) => {
    for (const settlement_utr of [null, '']) expect((await readOne(type, { settlement_utr })).payoutUtr).toBeUndefined()
  })

  it.each([0, null, ''])('reports no time of the payout for settled_at %j', async (settled_at) => {
    expect((await readOne('payment', { settled_at })).paidOutAt).toBeUndefined()
  })

  it.each([
    ['credit', 195.28, 'must be a whole number of paise'],
    ['credit', '19528', 'must be a whole number of paise'],
    ['debit', -1, 'must be a whole number of paise'],
    ['amount', null, 'must be a whole number of paise'],
    ['fee', -4_72, 'must be a whole number of paise'],
    ['tax', 1e15, 'must be a whole number of paise'],
    ['currency', 'USD', 'must be INR'],
    ['settled_at', '2026-01-15', 'must be seconds since 1970'],
  ])('rejects the whole page if the field %s of a row is %j, and names the row', async (field, value, rule) => {
    recon.rows.set(WEDNESDAY, [reconRow('payment'), reconRow('payment', { entity_id: 'pay_4711', [field]: value })])
    const { outcome, message } = await errorOf()
    expect([outcome, message]).toEqual([
      'bad answer',
      `Razorpay returned settlements in an unknown format: ${field} of the row with id pay_4711 ${rule}`,
    ])
  })

  it.each([null, 7, 'pay/1', 'p'.repeat(35)])('rejects the whole page if the id of a row is %j', async (entity_id) => {
    recon.rows.set(WEDNESDAY, [reconRow('payment', { entity_id })])
    expect((await errorOf()).message).toContain('Razorpay returned settlements in an unknown format')
  })

  it('reads 10,000 rows exactly, and their sums are those of the payout', async () => {
    const random = seeded(20)
    const rows = Array.from({ length: 10_000 }, (_, index) => {
      const amount = 100 + Math.floor(random() * 50_000_000)
      const fee = Math.floor((amount * 2) / 100)
      const [charge, tax] = [fee + Math.round(fee * 0.18), Math.round(fee * 0.18)]
      if (index % 5 === 0) return reconRow('refund', { amount, debit: amount })
      return reconRow('payment', { amount, credit: amount - charge, fee: charge, tax })
    })
    recon.rows.set(THURSDAY, rows)
    const events = (await read()).pages.flat()
    expect(events).toHaveLength(10_000)
    const gross = events.map(({ amount, line }) => amount + (line?.fee ?? 0) + (line?.tax ?? 0))
    expect(gross).toEqual(rows.map(({ type, amount }) => Number(amount) * (type === 'refund' ? -1 : 1)))
    const sum = rows.reduce((paise, { credit, debit }) => paise + Number(credit) - Number(debit), 0)
    expect(events.reduce((paise, { amount }) => paise + amount, 0)).toBe(sum)
    expect(events.map(({ line }) => line?.tax)).toEqual(rows.map(({ tax }) => tax))
  })
})
