import type { Database } from '../db/pool.ts'
import { findDueMerchants } from './due-merchants.ts'
import type { Intent, PaymentLink } from './intent.ts'

/**
 * Seconds from an intent's expiry to each query of its payment, unless an end is reported before: 90 s, 8 minutes and
 * 2 hours. NPCI allows three queries of a payment, the first one after 90 s at the earliest.
 */
const AFTER_EXPIRY_SECONDS = [90, 8 * 60, 2 * 60 * 60] as const

/** Shortest pause before the next enquiry about an intent, where the enquiry before was made later than planned. */
const PAUSE_SECONDS = 60

/** A query of an order's payment at its acquirer. `enquiries` is the query's number, 1 to 3. */
export type Enquiry = { orderId: string; paymentLink: PaymentLink; enquiries: number }

export function firstEnquiry({ expiresAt }: Pick<Intent, 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() + AFTER_EXPIRY_SECONDS[0] * 1000)
}

/** The queue of enquiries. Each is counted before it is sent, so that a crash or another instance causes no fourth. */
export function createEnquiries(db: Database) {
  return {
    findDue: (acquirer: string, limit: number, now: Date) =>
      findDueMerchants(db, 'acquirer_intents', acquirer, limit, now),

    /**
     * Claims up to `limit` enquiries of a merchant that are due at an acquirer, longest due first. Enquiries about paid
     * intents are dropped for good.
     */
    async claimDue(acquirer: string, mid: string, limit: number, now: Date): Promise<Enquiry[]> {
      const { rows } = await db.query<EnquiryRow & { paid: boolean }>(
        // The select computes the new values, because Citus does not support an interval in the `case` of an update.
        `with due as materialized (
           select a.order_id, i.status = 'SUCCESS' as paid,
                  case when i.status <> 'SUCCESS' and a.enquiries < 2 then
                    greatest(i.expires_at + ($5::integer[])[a.enquiries + 2] * interval '1 second',
                             $4::timestamptz + interval '${PAUSE_SECONDS} seconds') end as next
             from acquirer_intents a
             join payment_intents i on i.mid = $2 and i.order_id = a.order_id
            where a.mid = $2 and a.enquire_at <= $4 and a.acquirer = $1
            order by a.enquire_at
            limit $3
              for update of a skip locked
         )
         update acquirer_intents a
            set enquiries = a.enquiries + case when due.paid then 0 else 1 end, enquire_at = due.next
           from due
          where a.mid = $2 and a.order_id = due.order_id
         returning ${ENQUIRY}, due.paid`,
        [acquirer, mid, limit, now, AFTER_EXPIRY_SECONDS],
      )
      return rows.filter(({ paid }) => !paid).map(toEnquiry)
    },

    /** Claims an enquiry about one order, even before it is due. Undefined if all three were sent. */
    async take(orderId: string): Promise<Enquiry | undefined> {
      const { rows } = await db.query<EnquiryRow>(
        `update acquirer_intents a
            set enquiries = a.enquiries + 1, enquire_at = case when a.enquiries < 2 then a.enquire_at end
          where a.order_id = $1 and a.enquiries < 3
         returning ${ENQUIRY}`,
        [orderId],
      )
      return rows[0] && toEnquiry(rows[0])
    },
  }
}

export type Enquiries = ReturnType<typeof createEnquiries>

const ENQUIRY = `
  a.order_id as "orderId", a.acquirer, a.acquirer_merchant_id as "merchantId", a.acquirer_id as id, a.reference, a.link, a.enquiries`

type EnquiryRow = PaymentLink & { orderId: string; enquiries: number }

function toEnquiry({ orderId, enquiries, acquirer, merchantId, id, reference, link }: EnquiryRow): Enquiry {
  return { orderId, enquiries, paymentLink: { acquirer, merchantId, id, reference, link } }
}
