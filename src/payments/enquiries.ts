import type { Queryable } from '../db/pool.ts'
import type { Intent, IssuedLink } from './intent.ts'

/**
 * When an acquirer is asked about an intent of whose end nothing was heard, counted from its expiry: 90 s, 8 minutes, 2
 * hours. NPCI allows three questions about a payment, the first one not before 90 s.
 */
const AFTER_EXPIRY_SECONDS = [90, 8 * 60, 2 * 60 * 60] as const

/** Between two questions about one intent, when the first one came late. */
const PAUSE_SECONDS = 60

/** An intent to ask about. Of its three questions this is number `enquiries`. */
export type Enquiry = { orderId: string; issued: IssuedLink; enquiries: number }

/** When the acquirer is asked about a new intent. */
export function firstEnquiry({ expiresAt }: Pick<Intent, 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() + AFTER_EXPIRY_SECONDS[0] * 1000)
}

/**
 * The questions that wait to be asked. Each is counted before it is asked, so that crashes and other instances never make
 * a fourth one.
 */
export function createEnquiries(db: Queryable) {
  return {
    /**
     * Takes up to `limit` questions that are due, of these acquirers, longest due first. An intent that is paid by now is
     * not asked about any more.
     */
    async takeDue(acquirers: readonly string[], limit: number, now: Date): Promise<Enquiry[]> {
      const { rows } = await db.query<EnquiryRow & { paid: boolean }>(
        `with due as (
           select mid, order_id
             from acquirer_intents
            where enquire_at <= $3 and acquirer = any ($1)
            order by enquire_at
            limit $2
              for update skip locked
         )
         update acquirer_intents a
            set enquiries = a.enquiries + case when i.status = 'SUCCESS' then 0 else 1 end,
                enquire_at = case
                  when i.status = 'SUCCESS' then null
                  when a.enquiries = 0 then greatest(i.expires_at + $4 * interval '1 second', $6)
                  when a.enquiries = 1 then greatest(i.expires_at + $5 * interval '1 second', $6)
                end
           from due
           join payment_intents i on i.mid = due.mid and i.order_id = due.order_id
          where a.mid = due.mid and a.order_id = due.order_id
         returning ${ENQUIRY}, i.status = 'SUCCESS' as paid`,
        [
          acquirers,
          limit,
          now,
          AFTER_EXPIRY_SECONDS[1],
          AFTER_EXPIRY_SECONDS[2],
          new Date(now.getTime() + PAUSE_SECONDS * 1000),
        ],
      )
      return rows.filter(({ paid }) => !paid).map(toEnquiry)
    },

    /** When the next question is due; undefined when none waits. */
    async nextDue(acquirers: readonly string[]): Promise<Date | undefined> {
      const { rows } = await db.query<{ next: Date | null }>(
        `select min(enquire_at) as next from acquirer_intents where enquire_at is not null and acquirer = any ($1)`,
        [acquirers],
      )
      return rows[0]?.next ?? undefined
    },

    /** Takes a question about one order, due or not; undefined when all three are asked. */
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

type EnquiryRow = IssuedLink & { orderId: string; enquiries: number }

function toEnquiry({ orderId, enquiries, acquirer, merchantId, id, reference, link }: EnquiryRow): Enquiry {
  return { orderId, enquiries, issued: { acquirer, merchantId, id, reference, link } }
}
