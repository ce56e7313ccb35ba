import { plannedQuery } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { Snapshot } from '../reading/snapshot.ts'
import type { BankLine } from './judge-arrivals.ts'

/**
 * A bank account, described by the merchants whose payouts the bank account receives, and by the acquirer account that
 * pays into the bank account. `account` is null for all acquirer accounts.
 */
export type AccountOf = { mids: string[]; account: string | null }

/**
 * Returns the lines in all statements for the bank account that contain a payout's reference or have a payout's amount.
 */
export async function readLines(
  { client, known }: Pick<Snapshot, 'client' | 'known'>,
  { mids, account }: AccountOf,
  days: Days,
  payouts: readonly { references: string[]; expected: Paise }[],
): Promise<BankLine[]> {
  const named = new Set(payouts.flatMap((one) => one.references))
  const amounts = payouts.map((one) => one.expected)
  const rows = await readFileLines(client, { mids, account, known, ...days, references: [...named], amounts })
  return mergeStatements(
    rows.map(({ references, ...line }) => ({
      ...line,
      // Compares only references of payouts, because another statement with the same lines may omit the bank's internal
      // numbers, depending on its layout.
      references: references.filter((one) => named.has(one)),
    })),
  )
}

type Searched = AccountOf & Days & { known: Date; references: string[]; amounts: Paise[] }

const readFileLines = plannedQuery<FileLine, Searched>(`
  select sha256, import_id, line, day, amount_paise as amount, array_remove(refs || matched_payout, null) as references
    from statement_lines
    join statement_imports using (import_id)
   where mids = :mids and account is not distinct from :account and imported_at <= :known and day between :from and :to
     and (refs && :references or matched_payout = any (:references) or amount_paise = any (:amounts::bigint[]))
   order by import_id, line`)

/** A line and the SHA-256 of the file that contains it. */
type FileLine = BankLine & { sha256: string }

/**
 * Merges copies of one line in overlapping statements. Two equal lines within one statement remain two lines. One
 * statement may name more payouts than another, because of its layout or an operator's match. `lines` are in import
 * order.
 */
function mergeStatements(lines: readonly FileLine[]): BankLine[] {
  const merged = new Map<string, { line: FileLine; lastIn: string }[]>()
  // Within a statement, lines with more references come first, because a line without references could be a copy of any
  // line with the same amount.
  const inOrder = mergeImports(lines).sort(
    (a, b) => a.order - b.order || b.line.references.length - a.line.references.length,
  )
  for (const { line } of inOrder) {
    const { day, amount, references, sha256 } = line
    const alike = merged.get(`${day} ${amount}`) ?? []
    const earlier = alike.filter(({ lastIn }) => lastIn !== sha256)
    const namesAll = (one: (typeof earlier)[number]) => references.every((name) => one.line.references.includes(name))
    const isNamed = (one: (typeof earlier)[number]) => one.line.references.every((name) => references.includes(name))
    const same =
      earlier.find((one) => namesAll(one) && isNamed(one)) ?? earlier.find((one) => namesAll(one) || isNamed(one))
    if (same) Object.assign(same, { lastIn: sha256, ...(isNamed(same) && { line: { ...same.line, references } }) })
    else merged.set(`${day} ${amount}`, [...alike, { line, lastIn: sha256 }])
  }
  return [...merged.values()].flatMap((alike) => alike.map(({ line }) => line))
}

/**
 * Merges several imports of one file, perhaps with different layouts, so that each line appears once: as the newest
 * import read the line, with the references from all imports. `order` ranks files by their first import.
 */
function mergeImports(lines: readonly FileLine[]): { line: FileLine; order: number }[] {
  const files = [...new Set(lines.map(({ sha256 }) => sha256))]
  const merged = new Map<string, FileLine>()
  for (const line of lines) {
    const key = `${line.sha256} ${line.line}`
    merged.set(key, { ...line, references: [...new Set([...(merged.get(key)?.references ?? []), ...line.references])] })
  }
  return [...merged.values()].map((line) => ({ line, order: files.indexOf(line.sha256) }))
}
