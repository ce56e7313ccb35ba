import type { Queryable } from '../../platform/db/pool.ts'
import { comparable } from './references.ts'

/**
 * A credit of a statement to the bank account of these merchants and this acquirer account; its references are comparable, also the one
 * of the payout that a person has matched with it, and those of payouts that are matched with a line of its day and amount in other
 * statements, which may be the same line. `amount` is in paise.
 */
export type Credit = {
  mids: string[]
  account: string | null
  day: string
  amount: bigint
  references: string[]
  matchedPayout: string | null
  matchedElsewhere: string[]
}

export type LineNumber = { importId: number; line: number }

/** A file that was imported twice, perhaps by two layouts, has one line in both imports. */
const COPIES = `
  from statement_imports i
  join statement_imports named on named.import_id = $1 and named.sha256 = i.sha256 and named.mids = i.mids
   and named.account is not distinct from i.account`

/** Locks a credit that is stored, with what all imports of its file say of it; undefined where there is none. */
export async function lockCredit(client: Queryable, { importId, line }: LineNumber): Promise<Credit | undefined> {
  type Row = Omit<Credit, 'amount'> & { importId: number; amount: string }
  const { rows } = await client.query<Row>(
    `select i.import_id as "importId", i.mids, i.account, to_char(l.day, 'YYYY-MM-DD') as day, l.amount_paise::text as amount,
            l.refs as references, l.matched_payout as "matchedPayout",
            array(select other.matched_payout
                    from statement_lines other
                    join statement_imports o on o.import_id = other.import_id
                   where o.mids = i.mids and o.account is not distinct from i.account and o.sha256 <> i.sha256
                     and other.day = l.day and other.amount_paise = l.amount_paise
                     and other.matched_payout is not null) as "matchedElsewhere"
       ${COPIES}
       join statement_lines l on l.import_id = i.import_id and l.line = $2
        for update of l`,
    [importId, line],
  )
  const own = rows.find((row) => row.importId === importId)
  if (own === undefined || BigInt(own.amount) <= 0n) return undefined
  const { importId: _, ...credit } = own
  return {
    ...credit,
    amount: BigInt(own.amount),
    references: [...new Set(rows.flatMap(({ references }) => references))],
    matchedPayout: rows.find(({ matchedPayout }) => matchedPayout !== null)?.matchedPayout ?? null,
  }
}

/** Stores that the line is the payout with this reference, whatever the bank wrote; null: that it is what its references say. */
export async function setMatch(client: Queryable, { importId, line }: LineNumber, payout: string | null) {
  await client.query(
    `update statement_lines
        set matched_payout = $3
      where line = $2 and import_id in (select i.import_id ${COPIES})`,
    [importId, line, payout && comparable(payout)],
  )
}
