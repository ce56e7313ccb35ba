import type { LineError } from '../../platform/csv/csv.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { intoVersions, useIndexes } from './imports.ts'

type SettlementStatus = 'SUCCESS' | 'PENDING' | 'FAILED'

/**
 * An import that changes stored settlements. `account` is the acquirer account of every row, null if unknown. `bases`
 * collects the earlier imports whose settlements this import repeats or changes. The operator cannot undo an earlier
 * import in `bases` before this one.
 */
export type Changing = { importId: number; now: Date; account: string | null; bases: Set<number> }

/**
 * Applies the rows in the temporary table `incoming` to stored settlements. Returns the number of rows that changed a
 * settlement, and an error for each row that contradicts its stored settlement.
 */
export async function storeChanges(
  client: Queryable,
  changing: Changing,
): Promise<{ updated: number; errors: LineError[] }> {
  const differences = await findDifferences(client, changing)
  for (const { storedBy } of differences)
    if (storedBy !== null && storedBy !== changing.importId) changing.bases.add(storedBy)
  const { changed, updated, errors } = separateChanges(differences, toIstDay(changing.now))
  if (changed.length > 0) await CHANGE(client, { ...changing, changed: JSON.stringify(changed) })
  return { updated, errors }
}

/** The fields that a later file may change. Dates are `YYYY-MM-DD`. Null means that no file has stated a value yet. */
type Changeable = { status: SettlementStatus } & Record<'fee' | 'tax', Paise | null> &
  Record<'payment_utr' | 'account' | 'paid_account' | 'event' | 'value_date', string | null>

/**
 * Fields that a later import may fill if earlier imports left these fields empty. A stored value is never overwritten.
 */
const ADDED = ['fee', 'tax', 'payment_utr', 'account', 'event', 'value_date'] as const

type Difference = {
  line: number
  mid: string
  utr: string
  /** The values in the file's row; null where the row states no value. */
  said: Changeable
  stored: Changeable
  /** The `payment_utr` in the file, before the stored UTR of a known payment replaced it. */
  givenPaymentUtr: string | null
  /** The IST day of the stored `initiated_at`; null unless the row states a value date. */
  initiatedOn: string | null
  /** The import that inserted or last changed the settlement. */
  storedBy: number | null
  /** Columns that no file may change and whose values in the row contradict the stored settlement. */
  others: string[]
}

/**
 * Returns, in file order, the rows that differ from the stored settlement. Also returns rows for PENDING settlements,
 * because an earlier row in the batch may have changed the settlement. Also returns rows whose settlement was stored by
 * an import that is not in `bases` yet.
 */
async function findDifferences(client: Queryable, { importId, account, bases }: Changing): Promise<Difference[]> {
  await useIndexes(client)
  return DIFFERENCES(client, { imports: [importId, ...bases], account })
}

const changeable = (of: string, account: string, paidAccount: string) =>
  `json_build_object('status', ${of}.status, 'fee', ${of}.fee_paise, 'tax', ${of}.tax_paise, 'payment_utr', ${of}.payment_utr,
                     'event', ${of}.event, 'account', ${account}, 'paid_account', ${paidAccount}, 'value_date', ${of}.value_date)`

const DIFFERENCES = plannedQuery<Difference, { imports: number[]; account: string | null }>(`
  select i.line, i.mid, i.utr, ${changeable('i', ':account::text', 'a.account')} as said,
         ${changeable('s', 's.account', 's.paid_account')} as stored, s.import_id as stored_by,
         coalesce(i.given_payment_utr, i.payment_utr) as given_payment_utr,
         case when i.value_date is not null then ist_day(s.initiated_at) end as initiated_on,
         array_remove(array[
           case when s.amount_paise <> i.amount_paise then 'amount' end,
           case when s.bank_reference_number <> i.bank_reference_number then 'bank_reference_number' end,
           case when s.initiated_at <> i.initiated_at then 'initiation_date' end], null) as others
    from incoming i
    join settlements s on s.mid = i.mid and s.utr = i.utr
    left join paid_accounts a on a.line = i.line
   where s.status = 'PENDING'
      or s.import_id <> all (:imports::integer[])
      or (s.status, s.amount_paise, s.bank_reference_number, s.initiated_at)
         <> (i.status, i.amount_paise, i.bank_reference_number, i.initiated_at)
      or i.fee_paise is not null and s.fee_paise is distinct from i.fee_paise
      or i.tax_paise is not null and s.tax_paise is distinct from i.tax_paise
      or i.payment_utr is not null and s.payment_utr is distinct from i.payment_utr
      or i.event is not null and s.event is distinct from i.event
      or i.value_date is not null and s.value_date is distinct from i.value_date
      or :account is not null and s.account is distinct from :account
   order by i.line`)

type Changed = Changeable & { mid: string; utr: string }

/**
 * Separates the rows that change a settlement from the rows that contradict the stored settlement, which become
 * `errors`. `changed` contains each settlement once, in the state after its last row. `updated` is the number of rows
 * that change a settlement, and `today` is the day of the import.
 */
function separateChanges(
  differences: Difference[],
  today: string,
): { changed: Changed[]; updated: number; errors: LineError[] } {
  const changed = new Map<string, Changed>()
  const errors: LineError[] = []
  let updated = 0
  for (const { line, mid, utr, said, stored, givenPaymentUtr, initiatedOn, others: fixed } of differences) {
    const key = `${mid} ${utr}`
    const current: Changeable = changed.get(key) ?? stored
    const next: Changeable = { ...current, status: said.status }
    // The settlement was stored under the file's own `payment_utr` before its payment was known, so the payment's
    // stored UTR replaces the file's value.
    if (next.payment_utr !== null && next.payment_utr === givenPaymentUtr) next.payment_utr = null
    const fill = <Field extends (typeof ADDED)[number]>(field: Field) => {
      next[field] ??= said[field]
    }
    ADDED.forEach(fill)
    // A payment that was recorded after the row does not change the account that a file names.
    if (next.account === null) next.paid_account ??= said.paid_account
    next.value_date = valueDate(current, said, { initiatedOn, today })
    const isOther = (field: (typeof ADDED)[number]) =>
      said[field] !== null && next[field] !== null && said[field] !== next[field]
    const others = [...fixed, ...ADDED.filter(isOther)]
    if (others.includes('account')) {
      errors.push({
        line,
        text: 'this mid and utr are stored for another acquirer account: import the file with that account',
      })
    } else if (others.length > 0) {
      const what = others.includes('payment_utr') ? ': give each row its own utr' : ''
      errors.push({ line, text: `this mid and utr are stored with another ${others.join(' and ')}${what}` })
    } else if (said.status !== current.status && !NEXT[current.status].includes(said.status)) {
      errors.push({ line, text: `status cannot change from ${current.status} to ${said.status}${WHAT_TO_DO}` })
    } else if (next.status !== current.status || ADDED.some((field) => next[field] !== current[field])) {
      changed.set(key, { ...next, mid, utr })
      updated += 1
    }
  }
  return { changed: [...changed.values()], updated, errors }
}

/**
 * Returns the value date to store. Only a row with SUCCESS sets a date, and a stored date never changes. A settlement
 * that is already SUCCESS keeps its initiation day, because a closed month may include the settlement.
 */
function valueDate(
  current: Changeable,
  said: Changeable,
  { initiatedOn, today }: { initiatedOn: string | null; today: string },
): string | null {
  if (current.value_date !== null || said.status !== 'SUCCESS') return current.value_date
  if (current.status === 'PENDING') return said.value_date ?? today
  return initiatedOn
}

/** The status changes that are allowed. A bank reverses a payout by reporting FAILED after SUCCESS. */
const NEXT: Record<SettlementStatus, readonly SettlementStatus[]> = {
  PENDING: ['SUCCESS', 'FAILED'],
  SUCCESS: ['FAILED'],
  FAILED: [],
}
const WHAT_TO_DO = ': remove the line if its file is older than the last import, otherwise ask the bank for a new utr'

/** Updates settlements, and stores their previous state as a version so that the import can be undone. */
const CHANGE = plannedQuery<object, Changing & { changed: string }>(`
  with changed as (
    select *
      from json_to_recordset(:changed)
           as c (mid text, utr text, status text, fee bigint, tax bigint, payment_utr text, account text,
                 event text, paid_account text, value_date date)
  ), before as (
    ${intoVersions({ undone: false })}
      from changed c
      join settlements s on s.mid = c.mid and s.utr = c.utr
     where s.import_id is distinct from :importId
  )
  update settlements s
     set status = c.status, fee_paise = c.fee, tax_paise = c.tax, payment_utr = c.payment_utr, account = c.account,
         paid_account = c.paid_account, event = c.event, value_date = c.value_date, import_id = :importId,
         recorded_at = greatest(s.recorded_at, :now)
    from changed c
   where s.mid = c.mid and s.utr = c.utr`)
