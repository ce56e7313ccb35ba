import type { Database } from '../db/pool.ts'
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

/** When the question after number `asked` + 1 is due; null after the last one. */
function nextEnquiry(expiresAt: Date, asked: number, now: Date): Date | null {
  const afterSeconds = AFTER_EXPIRY_SECONDS[asked + 1]
  if (afterSeconds === undefined) return null
  return new Date(Math.max(expiresAt.getTime() + afterSeconds * 1000, now.getTime() + PAUSE_SECONDS * 1000))
}

/**
 * The questions that wait to be asked. Each is counted before it is asked, so that crashes and other instances never make
 * a fourth one.
 */
export function createEnquiries(db: Database) {
  /** None when the intent is paid, or another instance was faster: its count is not what it was then. */
  async function takeOne({ mid, orderId, enquiries, expiresAt, paid }: DueRow, now: Date): Promise<Enquiry[]> {
    const { rows } = await db.query<EnquiryRow>(
      `update acquirer_intents a
          set enquiries = $4, enquire_at = $5
        where a.mid = $1 and a.order_id = $2 and a.enquiries = $3 and a.enquire_at <= $6
       returning ${ENQUIRY}`,
      [
        mid,
        orderId,
        enquiries,
        paid ? enquiries : enquiries + 1,
        paid ? null : nextEnquiry(expiresAt, enquiries, now),
        now,
      ],
    )
    return paid ? [] : rows.map(toEnquiry)
  }

  return {
    /**
     * Takes up to `limit` questions that are due, of these acquirers, longest due first. An intent that is paid by now is
     * not asked about any more.
     */
    async takeDue(acquirers: readonly string[], limit: number, now: Date): Promise<Enquiry[]> {
      const { rows } = await db.query<DueRow>(
        `select a.mid, a.order_id as "orderId", a.enquiries, i.expires_at as "expiresAt", i.status = 'SUCCESS' as paid
           from acquirer_intents a
           join payment_intents i on i.mid = a.mid and i.order_id = a.order_id
          where a.enquire_at <= $2 and a.acquirer = any ($1)
          order by a.enquire_at
          limit $3`,
        [acquirers, now, limit],
      )
      const taken = await Promise.allSettled(rows.map((due) => takeOne(due, now)))
      const failed = taken.find((one) => one.status === 'rejected')
      const questions = taken.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
      // Those that were counted have to be asked, whatever became of the others.
      if (failed && questions.length === 0) throw failed.reason
      return questions
    },

    /** When the next question is due; undefined when none waits. */
    async nextDue(acquirers: readonly string[]): Promise<Date | undefined> {
      const { rows } = await db.query<{ next: Date | null }>(
        `select min(enquire_at) as next
           from acquirer_intents
          where enquire_at is not null and acquirer = any ($1)`,
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

/** `enquiries` are those that were asked. */
type DueRow = { mid: string; orderId: string; enquiries: number; expiresAt: Date; paid: boolean }

type EnquiryRow = IssuedLink & { orderId: string; enquiries: number }

function toEnquiry({ orderId, enquiries, acquirer, merchantId, id, reference, link }: EnquiryRow): Enquiry {
  return { orderId, enquiries, issued: { acquirer, merchantId, id, reference, link } }
}
