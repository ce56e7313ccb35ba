import { plannedQuery } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { Snapshot } from '../reconciliation/snapshot.ts'
import type { BankLine } from './judge-arrivals.ts'

/** A bank account: the merchants who are paid to it, and the acquirer account that pays to it, null for all. */
export type AccountOf = { mids: string[]; account: string | null }

/** The lines that name one of the payouts, or have its amount, of all statements of the account. */
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
      // By its layout a statement may show numbers of the bank's own that another one of the same lines does not.
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

/** A line of the file with this SHA-256. */
type FileLine = BankLine & { sha256: string }

/**
 * A line that several statements hold is one; true twins are two. A statement may name more of the payouts than another one, by its
 * layout, or since a person has matched it. `lines` are in the order of the statements.
 */
function mergeStatements(lines: readonly FileLine[]): BankLine[] {
  const merged = new Map<string, { line: FileLine; lastIn: string }[]>()
  // Of one statement the line that names most first: a line that names none may be any of its amount.
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
 * A file that was imported several times, perhaps by several layouts, has each of its lines once: as the newest import read it, with the
 * references of all. `order` is that of the files, by their first import.
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
