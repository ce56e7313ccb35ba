import type { Queryable } from '../db/pool.ts'
import type { Intent } from './intent.ts'
import type { ExceptionKind, FinalStatus, Report, ReportedIntent, Status } from './outcome.ts'

/** Who told us of a change. */
export type ChangeReason = 'notification' | 'operator' | 'sandbox'

export type PaymentHistory = Pick<
  Intent,
  'mid' | 'orderId' | 'merchantOrderId' | 'amount' | 'note' | 'createdAt' | 'expiresAt'
> & {
  status: Status
  utr: string | null
  changes: { status: FinalStatus; utr: string | null; paidAt: Date | null; reason: ChangeReason; changedAt: Date }[]
  exceptions: PaymentException[]
}

/** A report that was refused, or a second payment. `amount` is decimal text; `mid` is empty where no intent is known. */
export type PaymentException = {
  mid: string
  orderId: string
  kind: ExceptionKind
  utr: string
  amount: string
  paidAt: Date | null
  receivedAt: Date
}

const UNIQUE_VIOLATION = '23505'

/** What the bank and the operator say of payments: it changes intents, and what it cannot change is kept. */
export function createReports(db: Queryable) {
  return {
    /** What a report about our orderId is judged by; undefined when there is no such intent. */
    async findReported(orderId: string, utr: string | undefined): Promise<ReportedIntent | undefined> {
      const { rows } = await db.query<ReportedIntent>(
        `select i.mid, i.order_id as "orderId", i.amount, i.status, i.utr,
                exists (select from payment_intents o where o.mid = i.mid and o.utr = $2 and o.order_id <> i.order_id)
                  as "utrOfAnother"
           from payment_intents i
          where i.order_id = $1`,
        [orderId, utr],
      )
      return rows[0]
    },

    /**
     * Moves an intent from the status that it was seen in, and writes that down, in one statement. False when it was
     * no longer so, or another order took the UTR meanwhile: look again and judge anew.
     */
    async change(intent: ReportedIntent, report: Report, { reason, now }: { reason: ChangeReason; now: Date }) {
      try {
        const { rowCount } = await db.query(
          `with changed as (
             update payment_intents
                set status = $4, utr = case when $4 = 'SUCCESS' then $5 end
              where mid = $1 and order_id = $2 and status = $3
             returning mid, order_id, status
           )
           insert into payment_changes (mid, order_id, status, utr, paid_at, reason, changed_at)
           select mid, order_id, status, $5, $6, $7, $8 from changed`,
          [intent.mid, intent.orderId, intent.status, report.status, report.utr, report.paidAt, reason, now],
        )
        return rowCount === 1
      } catch (error) {
        if ((error as { code?: unknown }).code === UNIQUE_VIOLATION) return false
        throw error
      }
    },

    /** Keeps what the operator has to look into; the repeat of a fact is the same row. */
    async keepException(mid: string, kind: ExceptionKind, report: Report, now: Date): Promise<void> {
      await db.query(
        `insert into payment_exceptions (mid, order_id, kind, utr, amount, paid_at, received_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict do nothing`,
        [mid, report.orderId, kind, report.utr ?? '', report.amount, report.paidAt, now],
      )
    },

    /** All that is known of one intent, without its customer; undefined when there is none. */
    async findHistory(orderId: string): Promise<PaymentHistory | undefined> {
      const { rows } = await db.query<Omit<PaymentHistory, 'changes' | 'exceptions'>>(
        `select mid, order_id as "orderId", merchant_order_id as "merchantOrderId", amount, note, status, utr,
                created_at as "createdAt", expires_at as "expiresAt"
           from payment_intents
          where order_id = $1`,
        [orderId],
      )
      const [intent] = rows
      if (intent === undefined) return undefined
      const changes = await db.query<PaymentHistory['changes'][number]>(
        `select status, utr, paid_at as "paidAt", reason, changed_at as "changedAt"
           from payment_changes
          where mid = $1 and order_id = $2
          order by changed_at`,
        [intent.mid, orderId],
      )
      const exceptions = await db.query<PaymentException>(
        `select ${EXCEPTION} from payment_exceptions where mid = $1 and order_id = $2 order by received_at`,
        [intent.mid, orderId],
      )
      return { ...intent, changes: changes.rows, exceptions: exceptions.rows }
    },

    /** Every exception ever kept, oldest first. */
    async listExceptions(): Promise<PaymentException[]> {
      const { rows } = await db.query<PaymentException>(
        `select ${EXCEPTION} from payment_exceptions order by received_at, mid, order_id`,
      )
      return rows
    },
  }
}

export type Reports = ReturnType<typeof createReports>

const EXCEPTION = `
  mid, order_id as "orderId", kind, utr, amount, paid_at as "paidAt", received_at as "receivedAt"`
