import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { comparable } from './references.ts'

/**
 * A credit in a statement for these merchants' bank account. `matchedPayout` is the payout that an operator has
 * assigned to the credit. `matchedElsewhere` lists payouts assigned to lines with the same day and amount in other
 * statements, because these lines may be the same credit. All three kinds of references are normalized. `amount` is in
 * paise.
 */
export type Credit = {
  mids: string[]
  account: string | null
  day: string
  amount: Paise
  references: string[]
  matchedPayout: string | null
  matchedElsewhere: string[]
}

type LineNumber = { importId: number; line: number }

/**
 * Locks a stored credit, and returns the credit with the references that all imports of the same file contain for the
 * credit. Returns undefined if no credit is stored for this line.
 */
export async function lockCredit(client: Queryable, place: LineNumber): Promise<Credit | undefined> {
  const rows = await lockCopies(client, place)
  const own = rows.find((row) => row.importId === place.importId)
  if (own === undefined || own.amount <= 0) return undefined
  const { importId: _, ...credit } = own
  return {
    ...credit,
    references: [...new Set(rows.flatMap(({ references }) => references))],
    matchedPayout: rows.find(({ matchedPayout }) => matchedPayout !== null)?.matchedPayout ?? null,
  }
}

/** If the operator imported a file twice, perhaps with two layouts, both imports contain the same line. */
const lockCopies = query<Credit & { importId: number }, LineNumber>(`
  select i.import_id, i.mids, i.account, l.day, l.amount_paise as amount, l.refs as references, l.matched_payout,
         array(select other.matched_payout
                 from statement_lines other
                 join statement_imports o on o.import_id = other.import_id
                where o.mids = i.mids and o.account is not distinct from i.account and o.sha256 <> i.sha256
                  and other.day = l.day and other.amount_paise = l.amount_paise
                  and other.matched_payout is not null) as matched_elsewhere
    from statement_imports named
    join statement_imports i on i.sha256 = named.sha256 and i.mids = named.mids and i.account is not distinct from named.account
    join statement_lines l on l.import_id = i.import_id and l.line = :line
   where named.import_id = :importId
     for update of l`)

/**
 * Stores that the line is the payout with this reference, regardless of the references that the bank printed. Null
 * removes the assignment.
 */
export const setMatch = (client: Queryable, place: LineNumber, payout: string | null) =>
  updateCopies(client, { ...place, payout: payout && comparable(payout) })

const updateCopies = query<object, LineNumber & { payout: string | null }>(`
  update statement_lines
     set matched_payout = :payout
   where line = :line
     and import_id in (
           select i.import_id
             from statement_imports named
             join statement_imports i
               on i.sha256 = named.sha256 and i.mids = named.mids and i.account is not distinct from named.account
            where named.import_id = :importId)`)
