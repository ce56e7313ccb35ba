import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import { saveException } from './exceptions.ts'
import type { ExceptionKind } from './outcome.ts'
import { resolveByPaymentsOf } from './unknown-orders.ts'

/** A payment whose UTR has paid an order of another merchant. */
type Payment = { mid: string; orderId: string; utr: string; amount: Paise; paidAt: Date | null; acquirer: string }

const KIND = 'UTR of another merchant' satisfies ExceptionKind

/** Time between two searches, and also the length of the period whose payments one statement compares. */
const MINUTE_MS = 60_000
/** Length of the period that is searched again, because payments may be stored late and clocks differ. */
const AGAIN_MS = 5 * MINUTE_MS
/**
 * Length of the period that an instance searches at startup, because another instance may have been killed before its
 * search.
 */
const STARTUP_MS = 60 * MINUTE_MS

/**
 * Searches once a minute for payments whose UTR has paid an order of another merchant, and stores an exception for each
 * such payment. Also resolves exceptions `unknown order` that a payment explains. Recording a payment cannot include
 * these searches, because two concurrent transactions would not see each other's payments and exceptions. `onException`
 * is called once for each new exception.
 */
export function comparisonJobs(
  db: Queryable,
  now: () => Date,
  onException: (kind: ExceptionKind, acquirerAccount: string) => void,
): JobSource {
  let comparedUntil = 0

  return {
    name: 'UTRs of other merchants',
    concurrency: { ofQueue: 1, ofGroup: 1 },
    async findQueues({ isStopped = () => false } = {}) {
      const until = now().getTime()
      // Compares the absolute difference, because the clock may have been set back.
      if (Math.abs(until - comparedUntil) < MINUTE_MS) return []
      let from = Math.max(Math.min(comparedUntil, until) - AGAIN_MS, until - STARTUP_MS)
      for (; from < until; from += MINUTE_MS) {
        if (isStopped()) return []
        const received = { from: new Date(from), until: new Date(from + MINUTE_MS) }
        for (const { acquirer, ...payment } of await findLater(db, received)) {
          if (isStopped()) return []
          const exception = { ...payment, status: 'SUCCESS' as const }
          if (await saveException(db, KIND, exception, now())) onException(KIND, acquirer)
        }
        if (isStopped()) return []
        await resolveByPaymentsOf(db, received, now())
      }
      comparedUntil = until
      return []
    },
  }
}

/**
 * Returns all payments except the first with a given UTR, if a payment with this UTR was stored from `from` until
 * before `until`. If two payments have the same time, the payment with the greater mid is treated as the later payment.
 */
async function findLater(db: Queryable, received: Period): Promise<Payment[]> {
  const payments = await SHARED(db, received)
  return payments.filter(({ utr }, index) => payments[index - 1]?.utr === utr)
}

type Period = { from: Date; until: Date }

const SHARED = plannedQuery<Payment, Period>(`
  with shared as (
    select utr
      from payments
     where utr in (select utr from payments where received_at >= :from and received_at < :until)
     group by utr
    having count(*) > 1
  )
  select mid, order_id, utr, amount_paise as amount, paid_at, acquirer
    from payments
   where utr in (select utr from shared)
   order by utr, received_at, mid`)
