import type { FakeCashfree } from './cashfree-bank.ts'

/** The parts of an event of Cashfree's reconciliation. */
export type ReconEvent = Record<string, Record<string, unknown>>

/** A response; without `cursor` it is the last page. */
export type ReconPage = { data?: unknown; cursor?: unknown; limit?: unknown }

/**
 * Makes Cashfree return these pages in turn, then the last one again. Returns the bodies of the calls as they arrive.
 */
export function serveRecon(bank: FakeCashfree, ...pages: ReconPage[]) {
  const requested: { pagination: { limit: number; cursor?: string }; filters: Record<string, string> }[] = []
  bank.recon = (body) =>
    pages[Math.min(requested.push(body as (typeof requested)[number]), pages.length) - 1] as ReconPage
  return requested
}

let lastEvent = 43_594

/**
 * An event of ₹200 paid out on 2026-01-15, with the fields and oddities of Cashfree's samples; `changes` apply to its
 * parts.
 */
export function reconEvent(type: string, changes: ReconEvent = {}): ReconEvent {
  const event: ReconEvent = {
    cutomer_details: { customer_name: 'Asha Rao', customer_phone: '9876543210' },
    dispute_details: { closed_in_favor_of: null, resolved_on: null },
    event_details: {
      entity: 'recon',
      event_id: String(++lastEvent),
      event_type: type,
      event_amount: 200,
      event_settlement_amount: 200,
      event_service_charge: 0,
      event_service_tax: 0,
      event_currency: 'INR',
      event_remarks: 'null,',
      event_status: 'SUCCESS',
      event_time: '2026-01-14T12:00:00+05:30',
      sale_type: ['REFUND', 'DISPUTE', 'CHARGEBACK'].includes(type) ? 'DEBIT' : 'CREDIT',
    },
    order_details: { order_id: 'somebody_elses_1', order_amount: 200, order_currency: 'INR', order_tags: null },
    payment_details: { bank_reference: 523504870405, cf_payment_id: '1234881617186388204', payment_time: null },
    refund_details: { refund_arn: 'null,', refund_id: 'null,', refund_processed_at: null },
    settlement_details: {
      cf_settlement_id: 1639775422,
      utr: 'PGI45406',
      settlement_initiated_on: '2026-01-15T10:00:00+05:30',
      settlement_date: '2026-01-15T18:33:51+05:30',
    },
  }
  return Object.fromEntries(Object.entries(event).map(([part, fields]) => [part, { ...fields, ...changes[part] }]))
}
