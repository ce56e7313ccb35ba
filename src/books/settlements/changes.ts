import type { LineFault } from '../../platform/csv/csv.ts'
import { type Queryable, setLocally } from '../../platform/db/pool.ts'
import { toIstDay } from '../../platform/time.ts'
import { intoVersions } from './imports.ts'
import type { SettlementStatus } from './settlements.ts'

/**
 * `account` is the acquirer's of every row, null if it is not known; `bases` are the earlier imports whose settlements the
 * import has repeated or changed so far.
 */
export type Changing = { importId: number; now: Date; account: string | null; bases: Set<number> }

/**
 * Changes the stored settlements as the rows of `incoming` say. Returns how many rows changed one, and a fault for each row
 * that contradicts what is stored.
 */
export async function storeChanges(
  client: Queryable,
  changing: Changing,
): Promise<{ updated: number; faults: LineFault[] }> {
  const differences = await findDifferences(client, changing)
  for (const { storedBy } of differences)
    if (storedBy !== null && storedBy !== changing.importId) changing.bases.add(storedBy)
  const { changed, updated, faults } = separateChanges(differences, toIstDay(changing.now))
  await change(client, changed, changing)
  return { updated, faults }
}

/**
 * The fields that a later file may change. Amounts are decimal text with two decimals, days `YYYY-MM-DD`; null where no
 * file has given one yet.
 */
type Changeable = { status: SettlementStatus } & Record<(typeof ADDED)[number], string | null>

/** What an import may leave open, and a later one may fill. */
const ADDED = ['fee', 'tax', 'payment_utr', 'account', 'value_date'] as const

type Difference = {
  line: number
  mid: string
  utr: string
  /** The fields in the file's row; null where the file says nothing. */
  said: Changeable
  stored: Changeable
  /** The payment_utr of the row before it has got that of a known payment. */
  givenPaymentUtr: string | null
  /** The day of India on which the bank began it, where the row has a value date to compare. */
  initiatedOn: string | null
  /** The import that stored or last changed the settlement. */
  storedBy: number | null
  /** The columns in which the file contradicts the table and that no file may change. */
  others: string[]
}

/**
 * Returns three kinds of rows, in the order of the file: rows that differ from the stored settlement; rows whose
 * settlement is PENDING, so that an earlier row of the batch may change it; and rows whose settlement comes from an
 * import that is not among the bases yet.
 */
async function findDifferences(client: Queryable, { importId, account, bases }: Changing): Promise<Difference[]> {
  // Each settlement is one look-up in the index: a scan for every batch would read a table of millions a hundred times.
  await setLocally(client, ['enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off'])
  const changeable = (of: string, account: string) =>
    `json_build_object('status', ${of}.status, 'fee', ${of}.fee::text, 'tax', ${of}.tax::text,
                       'payment_utr', ${of}.payment_utr, 'account', ${account}, 'value_date', ${of}.value_date)`
  const { rows } = await client.query<Difference>(
    `select i.line::float8 as line, i.mid, i.utr, ${changeable('i', '$2::text')} as said,
            ${changeable('s', 's.account')} as stored, s.import_id as "storedBy",
            coalesce(i.given_payment_utr, i.payment_utr) as "givenPaymentUtr",
            case when i.value_date is not null
                 then to_char(s.initiated_at at time zone interval '330 minutes', 'YYYY-MM-DD') end as "initiatedOn",
            array_remove(array[
              case when s.amount <> i.amount then 'amount' end,
              case when s.bank_reference_number <> i.bank_reference_number then 'bank_reference_number' end,
              case when s.initiated_at <> i.initiated_at then 'initiation_date' end], null) as others
       from incoming i
       join settlements s on s.mid = i.mid and s.utr = i.utr
      where s.status = 'PENDING'
         or s.import_id <> all ($1::integer[])
         or (s.status, s.amount, s.bank_reference_number, s.initiated_at)
            <> (i.status, i.amount, i.bank_reference_number, i.initiated_at)
         or i.fee is not null and s.fee is distinct from i.fee
         or i.tax is not null and s.tax is distinct from i.tax
         or i.payment_utr is not null and s.payment_utr is distinct from i.payment_utr
         or i.value_date is not null and s.value_date is distinct from i.value_date
         or $2 is not null and s.account is distinct from $2
      order by i.line`,
    [[importId, ...bases], account],
  )
  return rows
}

type Changed = Changeable & { mid: string; utr: string }

/**
 * Separates lines that change a settlement from lines that contradict what is stored: those become `faults`. `updated`
 * counts the lines that change one. `changed` holds each settlement once, as its last line leaves it. `today` is the day of
 * the import.
 */
function separateChanges(
  differences: Difference[],
  today: string,
): { changed: Changed[]; updated: number; faults: LineFault[] } {
  const changed = new Map<string, Changed>()
  const faults: LineFault[] = []
  let updated = 0
  for (const { line, mid, utr, said, stored, givenPaymentUtr, initiatedOn, others: fixed } of differences) {
    const key = `${mid} ${utr}`
    const current: Changeable = changed.get(key) ?? stored
    const next: Changeable = { ...current, status: said.status }
    // Stored before its payment was known.
    if (next.payment_utr !== null && next.payment_utr === givenPaymentUtr) next.payment_utr = null
    for (const field of ADDED) next[field] ??= said[field]
    next.value_date = valueDate(current, said, { initiatedOn, today })
    const isOther = (field: (typeof ADDED)[number]) =>
      said[field] !== null && next[field] !== null && said[field] !== next[field]
    const others = [...fixed, ...ADDED.filter(isOther)]
    if (others.includes('account')) {
      faults.push({ line, text: 'this mid and utr are known of another acquirer account' })
    } else if (others.length > 0) {
      const what = others.includes('payment_utr') ? ': each row needs a utr of its own' : ''
      faults.push({ line, text: `this mid and utr are known with another ${others.join(' and ')}${what}` })
    } else if (said.status !== current.status && !NEXT[current.status].includes(said.status)) {
      faults.push({ line, text: `status cannot go from ${current.status} to ${said.status}${WHAT_TO_DO}` })
    } else if (next.status !== current.status || ADDED.some((field) => next[field] !== current[field])) {
      changed.set(key, { ...next, mid, utr })
      updated += 1
    }
  }
  return { changed: [...changed.values()], updated, faults }
}

/**
 * The value date once a line is stored. A stored one stays, and money that counts already stays on its day, because books
 * may have been closed with it; only a line that says SUCCESS gives one.
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

/** What a status may become. A bank takes a payout back by FAILED. */
const NEXT: Record<SettlementStatus, readonly SettlementStatus[]> = {
  PENDING: ['SUCCESS', 'FAILED'],
  SUCCESS: ['FAILED'],
  FAILED: [],
}
const WHAT_TO_DO =
  ': remove the line if its file is older than the one imported before, else ask the bank for a utr of its own'

/** Changes settlements, and keeps what they were before this import. */
async function change(client: Queryable, changed: Changed[], { importId, now }: Changing): Promise<void> {
  if (changed.length === 0) return
  await client.query(
    `with changed as (
       select *
         from json_to_recordset($3)
              as c (mid text, utr text, status text, fee numeric, tax numeric, payment_utr text, account text,
                    value_date date)
     ), before as (
       ${intoVersions({ undone: false })}
         from changed c
         join settlements s on s.mid = c.mid and s.utr = c.utr
        where s.import_id is distinct from $1
     )
     update settlements s
        set status = c.status, fee = c.fee, tax = c.tax, payment_utr = c.payment_utr, account = c.account,
            value_date = c.value_date, import_id = $1, known_at = greatest(s.known_at, $2)
       from changed c
      where s.mid = c.mid and s.utr = c.utr`,
    [importId, now, JSON.stringify(changed)],
  )
}
