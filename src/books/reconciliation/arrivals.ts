import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { keptSince } from '../statements/import.ts'
import {
  ARRIVAL_STATES,
  type Arrival,
  type ArrivalState,
  type AwaitedPayout,
  type BankLine,
  judgeArrivals,
} from '../statements/judge-arrivals.ts'
import { comparable } from '../statements/references.ts'
import { type PayoutLine, payoutsOf } from './payouts.ts'
import { amountOf, aroundOf, type Rest, readRests } from './rests.ts'
import { inSnapshot, type Merchants, readMids, type Snapshot } from './snapshot.ts'

const NOT_KNOWN: Arrival = { arrival: 'not known', arrivedOn: null, credited: null, statement: null }

export type ArrivedPayout = Omit<PayoutLine, 'utr' | 'recordedAt'> & Arrival

/**
 * The payouts of these days, and what statements say of each: merchant after merchant, oldest first; then what is the accounts' of
 * payouts, as lines without a merchant. `ofStatements` leaves out merchants and accounts of which there is no statement.
 */
export function listArrivals(
  db: Database,
  { now, mid, ofStatements = false, ...days }: Days & Pick<Merchants, 'mid'> & { now: Date; ofStatements?: boolean },
): AsyncGenerator<ArrivedPayout> {
  return inSnapshot(db, now, async function* (snapshot) {
    const accounts = await readAccounts(snapshot)
    const rests = await readRests(snapshot, { days: aroundOf(days) })
    for (const one of await readMids(snapshot.client, { mid })) {
      const own = accounts.filter(({ mids }) => mids.includes(one))
      if (ofStatements && own.length === 0) continue
      for (const account of own) account.arrivals ??= await arrivalsAt(snapshot, account, days, rests)
      for (const { utr, recordedAt, ...payout } of await payoutsOf(snapshot, one, days, rests)) {
        yield { ...payout, ...arrivalOf(payout, own) }
      }
    }
    if (mid !== undefined) return
    for (const rest of rests.filter((one) => one.mid === null && one.day >= days.from && one.day <= days.to)) {
      const own = accounts.filter(({ arrivals }) => arrivals?.has(keyOf(rest)))
      if (ofStatements && own.length === 0) continue
      const { day, account, bankReference } = rest
      const amount = amountOf(rest)
      const sums = { rows: 0, gross: 0, fee: 0, tax: 0, deductions: amount, net: amount }
      yield { day, mid: null, account, bankReference, ...sums, ...arrivalOf(rest, own) }
    }
  })
}

/** What the statements of these bank accounts say of a payout. */
function arrivalOf(payout: Parameters<typeof keyOf>[0], accounts: readonly BankAccount[]): Arrival {
  const found = accounts.map(({ arrivals }) => arrivals?.get(keyOf(payout)) ?? NOT_KNOWN)
  const state = ARRIVAL_STATES.find((one) => found.some(({ arrival }) => arrival === one))
  return found.find(({ arrival }) => arrival === state) ?? NOT_KNOWN
}

/**
 * A bank account of which there are statements: the merchants and the acquirer account that it is for, the days of them, and what has
 * arrived, by `keyOf` a payout, once it was judged.
 */
type BankAccount = { mids: string[]; account: string | null; statements: Covering[]; arrivals?: Map<string, Arrival> }

/** The days that a statement covers, if any, and when it was imported. */
type Covering = { from: string; to: string | null; at: Date }

async function readAccounts({ client, known }: Snapshot): Promise<BankAccount[]> {
  const statements = await readStatements(client, { known })
  return [...groupBy(statements, ({ mids, account }) => JSON.stringify([mids, account])).values()].map((own) => ({
    ...(own[0] as StatementOf),
    statements: own,
  }))
}

type StatementOf = Pick<BankAccount, 'mids' | 'account'> & Covering

const readStatements = query<StatementOf, { known: Date }>(`
  select mids, account, covers_from as from, covers_to as to, imported_at as at
    from statement_imports
   where undone_at is null and imported_at <= :known
   order by mids, account, import_id`)

/**
 * The days of which statements hold every line that may be a payout which is known since `recordedAt`. Of one that was not known when a
 * statement was imported, lines may be deleted.
 */
function coveredFor(
  { recordedAt }: Pick<PayoutLine, 'recordedAt'>,
  statements: readonly Covering[],
  bankDays: BankDays,
): Days[] {
  const last = statements.findLast(({ at }) => at < recordedAt)
  const kept = last ? keptSince(last.at, bankDays) : ''
  return statements.flatMap(({ from, to, at }) =>
    to === null ? [] : [{ from: at < recordedAt && from < kept ? kept : from, to }],
  )
}

/** What has arrived at the bank account of the payouts of these days. */
async function arrivalsAt(
  snapshot: Snapshot,
  { statements, ...account }: BankAccount,
  days: Days,
  rests: readonly Rest[],
): Promise<Map<string, Arrival>> {
  const around = aroundOf(days)
  const awaited = await transfersTo(snapshot, account, around, rests)
  const lines = await readLines(snapshot, account, around, awaited)
  const covered = (transfer: Transfer) => coveredFor(transfer, statements, snapshot.bankDays)
  return new Map(
    [...judgeArrivals(awaited, lines, covered, snapshot.bankDays)].map(([{ key }, arrival]) => [key, arrival]),
  )
}

/** What an acquirer transfers to a bank account by one credit: the payouts, to several merchants, that `keyOf` names alike. */
type Transfer = AwaitedPayout & { key: string; references: string[]; recordedAt: Date }

/** The transfers to the bank account whose last row is of these days. `rests` are what the payouts are more or less by. */
export async function transfersTo(
  snapshot: Snapshot,
  { mids, account }: Pick<BankAccount, 'mids' | 'account'>,
  days: Days,
  rests: readonly Rest[],
): Promise<Transfer[]> {
  const transfers = new Map<string, Transfer>()
  for (const mid of mids) {
    for (const { utr, recordedAt, ...payout } of await payoutsOf(snapshot, mid, days, rests)) {
      if (account !== null && payout.account !== null && payout.account !== account) continue
      const key = keyOf(payout)
      const { expected, references, ...last } = transfers.get(key) ?? {
        expected: 0,
        references: [],
        day: '',
        recordedAt,
      }
      const own = [payout.bankReference, ...(utr === null ? [] : [utr])].map(comparable)
      transfers.set(key, {
        key,
        references: [...references, ...own],
        expected: expected + payout.net,
        day: last.day > payout.day ? last.day : payout.day,
        recordedAt: last.recordedAt > recordedAt ? last.recordedAt : recordedAt,
      })
    }
  }
  // That of a payout to one merchant is in its net.
  for (const rest of rests.filter(({ mid }) => mid === null)) {
    const transfer = transfers.get(keyOf(rest))
    if (transfer) transfer.expected += amountOf(rest)
  }
  return [...transfers.values()]
}

/** The transfer that a payout is part of: an acquirer may pay several merchants by one. */
const keyOf = ({ account, bankReference }: Pick<PayoutLine, 'account' | 'bankReference'>) =>
  `${account ?? ''} ${comparable(bankReference)}`

/** The lines that name one of the payouts, or have its amount, of all statements of the account. */
async function readLines(
  { client, known }: Snapshot,
  { mids, account }: Pick<BankAccount, 'mids' | 'account'>,
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

type Searched = Pick<BankAccount, 'mids' | 'account'> & Days & { known: Date; references: string[]; amounts: Paise[] }

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

/** The days whose payouts `ops today` counts: the last 31. */
export function recentDays(now: Date): Days {
  const to = toIstDay(now)
  return { from: addDays(to, -30), to }
}

/** Payouts that have arrived, or not, and how much they are in paise. */
export type ArrivalCount = { arrival: ArrivalState; payouts: number; net: Paise }

/** The payouts of the last 31 days, by what statements say of them, without those of which they say nothing. */
export async function countArrivals(db: Database, now: Date): Promise<ArrivalCount[]> {
  const counts = new Map(ARRIVAL_STATES.map((arrival) => [arrival, { arrival, payouts: 0, net: 0 }]))
  for await (const { mid, arrival, net } of listArrivals(db, { ...recentDays(now), now, ofStatements: true })) {
    const count = counts.get(arrival) as ArrivalCount
    if (mid !== null) count.payouts += 1
    count.net += net
  }
  return [...counts.values()].filter(({ arrival, payouts }) => arrival !== 'not known' && payouts > 0)
}
