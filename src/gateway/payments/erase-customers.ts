import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { orderIdsBegin } from './intent.ts'

/**
 * Number of intents that one statement reads. Each statement is its own transaction, so that an interrupted run loses
 * no progress, and a payment waits at most 0.2 s for a locked row.
 */
const STEP_INTENTS = 1_000

/** The columns of `payment_intents` that are emptied. The type of each column is text or bytea. Null stays null. */
export const ERASED_COLUMNS = ['customer_name', 'customer_email', 'customer_mobile', 'idempotency_fingerprint']

/**
 * Selects the intents whose customer data is erased: all intents created before `before` and expired by `expiredBy`, or
 * all intents with an e-mail address or mobile number.
 */
type ToErase = { before: Date; expiredBy: Date } | { email: string } | { mobile: string }

type Progress = ((erased: number) => void) | undefined

/**
 * Empties the customer's columns in intents and the notes in their refunds. Returns the number of intents that
 * contained customer data; `onProgress` receives the number so far. Empty text means erased, because no request can
 * contain an empty value. E-mail addresses are compared case-insensitively.
 *
 * The fingerprint of an Idempotency-Key is emptied too, because it is a hash over the customer's data: an
 * attacker who has the row could try every mobile number against it. A request that repeats the key then gets
 * 422.
 */
export const eraseCustomers = (db: Queryable, criteria: ToErase, onProgress?: Progress) =>
  inSteps(db, ERASE_STEP, criteria, onProgress)

/** Returns the number of intents that `eraseCustomers` would empty, and changes nothing. */
export const countCustomers = (db: Queryable, criteria: ToErase, onProgress?: Progress) =>
  inSteps(db, COUNT_STEP, criteria, onProgress)

/**
 * Intents are read merchant by merchant in the order of the primary key, up to `before`, because orderIds begin with
 * their time. An index on the rows to empty would save reads but slow down every createPaymentIntent.
 */
async function inSteps(
  db: Queryable,
  sql: typeof ERASE_STEP,
  criteria: ToErase,
  onProgress: Progress,
): Promise<number> {
  const until = 'before' in criteria ? orderIdsBegin(criteria.before) : AFTER_ALL
  let erased = 0
  for (const { mid } of await MIDS(db, {})) {
    let step: Step = { last: '', erased: 0 }
    while (step.last !== null) {
      step = (await sql(db, { ...criteria, mid, after: step.last, until }))[0] as Step
      erased += step.erased
      if (step.erased > 0) onProgress?.(erased)
    }
  }
  return erased
}

const MIDS = query<{ mid: string }, object>('select mid from merchants order by mid')

/** Text that sorts after every orderId, because orderIds begin with a hex digit. */
const AFTER_ALL = 'g'

/** The result of a statement. `last` is the last orderId that the statement has read; null if no intent was left. */
type Step = { last: string | null; erased: number }

type Range = { mid: string; after: string; until: string } & { email?: string; mobile?: string; expiredBy?: Date }

/** SQL condition: the intent belongs to the customer whose data is erased, or has expired. */
const THEIRS = `
  (:email::text is null or lower(customer_email) = lower(:email)) and (:mobile::text is null or customer_mobile = :mobile)
    and (:expiredBy::timestamptz is null or expires_at <= :expiredBy)`

/** SQL condition: the intent contains customer data in any column. */
const REMEMBERED = `(${ERASED_COLUMNS.map((column) => `${column} <> ''`).join(' or ')})`

/** The intents of a step that contain customer data, as the first part of a statement. */
const DUE = `
  with step as (
    select order_id, ${REMEMBERED} and ${THEIRS} as remembered
      from payment_intents
     where mid = :mid and order_id > :after and order_id < :until
     order by order_id
     limit ${STEP_INTENTS}
  ), noted as (
    -- Refunds are checked too, because a refund with a note may be created after its customer's data was erased.
    select order_id
      from refunds
     where mid = :mid and note <> '' and order_id > :after and order_id <= (select max(order_id) from step)
  ), due as (
    -- Locks rows in the order of their ids, so that two concurrent runs do not deadlock.
    select order_id
      from payment_intents
     where mid = :mid and order_id in (select order_id from step where remembered union all select order_id from noted)
       and (${REMEMBERED} or order_id in (select order_id from noted)) and ${THEIRS}
     order by order_id`

const ERASE_STEP = plannedQuery<Step, Range>(`
  ${DUE}
       for no key update
  ), notes as (
    update refunds set note = '' where mid = :mid and order_id in (select order_id from due)
  ), erased as (
    update payment_intents
       set ${ERASED_COLUMNS.map((column) => `${column} = substring(${column} from 1 for 0)`)}
     where mid = :mid and order_id in (select order_id from due)
    returning 1
  )
  select (select max(order_id) from step) as last, (select count(*) from erased) as erased`)

const COUNT_STEP = plannedQuery<Step, Range>(`
  ${DUE}
  )
  select (select max(order_id) from step) as last, (select count(*) from due) as erased`)
