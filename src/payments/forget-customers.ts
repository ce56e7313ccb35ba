import type { Queryable } from '../db/pool.ts'
import { orderIdsBegin } from './intent.ts'

/**
 * Intents that one statement reads. Each statement is a transaction of its own, so an interrupted run loses nothing, and a payment
 * waits for a locked row for at most 0.2 s.
 */
const STEP_INTENTS = 1_000

/** The columns of `payment_intents` that are emptied, each of text or bytes; null stays null. */
export const FORGOTTEN_COLUMNS = ['customer_name', 'customer_email', 'customer_mobile', 'idempotency_fingerprint']

/** Which intents: created before a moment, or of any age with this e-mail address or mobile number. */
export type Forgotten = { before: Date } | { email: string } | { mobile: string }

/**
 * Empties the customer's columns of intents and the notes of their refunds, and returns the number of intents that held such data. No
 * request can send empty text, so empty means forgotten. E-mail addresses are compared without regard to case. `onProgress` receives
 * the number so far.
 *
 * The fingerprint of an Idempotency-Key is emptied too: it is a hash over the customer's data, and an attacker who has the row can try
 * every mobile number against it. An empty fingerprint equals that of no request, so a repeat of the key is 422.
 *
 * Reads one merchant after the other in the order of the primary key, up to `before`, because orderIds begin with their time. There
 * is no index of rows still to be emptied, since every createPaymentIntent would pay for it.
 */
export async function forgetCustomers(
  db: Queryable,
  whose: Forgotten,
  onProgress?: (forgotten: number) => void,
): Promise<number> {
  const until = 'before' in whose ? orderIdsBegin(whose.before) : AFTER_ALL
  const customer = ['email' in whose ? whose.email : null, 'mobile' in whose ? whose.mobile : null]
  let forgotten = 0
  const merchants = await db.query<{ mid: string }>('select mid from merchants order by mid')
  for (const { mid } of merchants.rows) {
    let step: Step = { last: '', forgotten: 0 }
    while (step.last !== null) {
      const { rows } = await db.query<Step>(FORGET_STEP, [mid, step.last, until, ...customer])
      step = rows[0] as Step
      forgotten += step.forgotten
      if (step.forgotten > 0) onProgress?.(forgotten)
    }
  }
  return forgotten
}

/** A text that sorts after every orderId, since orderIds begin with a hex digit. */
const AFTER_ALL = 'g'

/** `last` is the last orderId of the step; null when no intent was left. */
type Step = { last: string | null; forgotten: number }

/** SQL condition: the intent is of the customer to forget. */
const THEIRS = `
  ($4::text is null or lower(customer_email) = lower($4)) and ($5::text is null or customer_mobile = $5)`

/** SQL condition: the intent still holds customer data. An older version may have left any column. */
const REMEMBERED = `(${FORGOTTEN_COLUMNS.map((column) => `${column} <> ''`).join(' or ')})`

const FORGET_STEP = `
  with step as (
    select order_id, ${REMEMBERED} and ${THEIRS} as remembered
      from payment_intents
     where mid = $1 and order_id > $2 and order_id < $3
     order by order_id
     limit ${STEP_INTENTS}
  ), noted as (
    -- A refund may be created after its customer was forgotten, with a new note.
    select order_id
      from refunds
     where mid = $1 and note <> '' and order_id > $2 and order_id <= (select max(order_id) from step)
  ), due as (
    -- Rows are locked in the order of their ids, so that two runs at once wait for each other and do not deadlock.
    select order_id
      from payment_intents
     where mid = $1 and order_id in (select order_id from step where remembered union all select order_id from noted)
       and (${REMEMBERED} or order_id in (select order_id from noted)) and ${THEIRS}
     order by order_id
       for no key update
  ), notes as (
    update refunds set note = '' where mid = $1 and order_id in (select order_id from due)
  ), forgotten as (
    update payment_intents
       set ${FORGOTTEN_COLUMNS.map((column) => `${column} = substring(${column} from 1 for 0)`)}
     where mid = $1 and order_id in (select order_id from due)
    returning 1
  )
  select (select max(order_id) from step) as last, (select count(*)::integer from forgotten) as forgotten`
