import type { Queryable } from '../db/pool.ts'
import { orderIdsBegin } from './intent.ts'

/**
 * Intents that one statement looks at. Each is a transaction of its own: an interrupted run has done what it has done, and
 * a payment waits for its row 0.2 s at most, measured as the slowest of 1,000,000 intents; with 5,000 it was 0.5 s.
 */
const STEP_INTENTS = 1_000

/**
 * Empties name, e-mail address and mobile number of the intents created before `moment`, and returns how many it emptied.
 * Empty text is what is forgotten, as no request can send it. `onProgress` is told the number so far.
 *
 * The fingerprint of an Idempotency-Key is emptied too: it is a hash of these data and of what stands beside them, and all
 * mobile numbers can be tried against it. It then equals no request's, so that a repeat of the key is 422. All else stays:
 * the order guard, the history, and that the key is taken.
 *
 * One merchant after the other in the order of its primary key, and never beyond `moment`, because orderIds begin with
 * their time. An index of what is still to be forgotten would cost every createPaymentIntent; without one, looking at
 * 1,000,000 intents that were forgotten before was measured at 3 s, forgetting them at 28 s.
 */
export async function forgetCustomers(
  db: Queryable,
  moment: Date,
  onProgress?: (forgotten: number) => void,
): Promise<number> {
  const until = orderIdsBegin(moment)
  let forgotten = 0
  const merchants = await db.query<{ mid: string }>('select mid from merchants order by mid')
  for (const { mid } of merchants.rows) {
    let after: string | null = ''
    while (after !== null) {
      const step: Step = await forgetStep(db, { mid, after, until })
      after = step.last
      forgotten += step.forgotten
      if (step.forgotten > 0) onProgress?.(forgotten)
    }
  }
  return forgotten
}

/** `last` is the orderId that the step ended at, null when there was none left. */
type Step = { last: string | null; forgotten: number }

/** Also by its fingerprint alone, which version 1.0.0 kept when it emptied the rest. */
const REMEMBERED = `(customer_mobile <> '' or idempotency_fingerprint <> '')`

async function forgetStep(db: Queryable, range: { mid: string; after: string; until: string }): Promise<Step> {
  const { rows } = await db.query<Step>(
    `with step as (
       select order_id, ${REMEMBERED} as remembered
         from payment_intents
        where mid = $1 and order_id > $2 and order_id < $3
        order by order_id
        limit ${STEP_INTENTS}
     ), due as (
       -- Locked in their order, so that two runs at once wait for each other and do not deadlock.
       select order_id
         from payment_intents
        where mid = $1 and order_id in (select order_id from step where remembered) and ${REMEMBERED}
        order by order_id
          for no key update
     ), forgotten as (
       update payment_intents
          set customer_name = '', customer_email = '', customer_mobile = '',
              -- Null where there is no key: a constraint holds the two together.
              idempotency_fingerprint = case when idempotency_key is not null then ''::bytea end
        where mid = $1 and order_id in (select order_id from due)
       returning 1
     )
     select (select max(order_id) from step) as last, (select count(*)::integer from forgotten) as forgotten`,
    [range.mid, range.after, range.until],
  )
  return rows[0] as Step
}
