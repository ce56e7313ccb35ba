import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import { type Discrepancy, dayOfDiscrepancy, discrepancyId } from '../ledger/discrepancies.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { amountOf, aroundOf, type Rest, readRests } from '../reading/rests.ts'
import {
  inSnapshot,
  isMerchantError,
  type MerchantError,
  type Merchants,
  readMids,
  readOne,
  type Snapshot,
} from '../reading/snapshot.ts'
import { retainedSince } from '../statements/import.ts'
import {
  ARRIVAL_STATES,
  type Arrival,
  type ArrivalState,
  type AwaitedPayout,
  judgeArrivals,
} from '../statements/judge-arrivals.ts'
import type { Credit } from '../statements/match.ts'
import { type AccountOf, readLines } from '../statements/read-lines.ts'
import { comparable } from '../statements/references.ts'
import { type PayoutLine, payoutsOf } from './payouts.ts'

const NOT_KNOWN: Arrival = { arrival: 'not known', arrivedOn: null, credited: null, difference: null, statement: null }

/**
 * A payout and its state in the bank statements. `differenceId` identifies the discrepancy of a payout that was
 * received short or not at all. `resolution` is the operator's reason.
 */
export type ArrivedPayout = Omit<PayoutLine, 'utr' | 'recordedAt'> &
  Arrival & { differenceId: string | null; resolution: string | null }

/**
 * Returns whether a payout is open: the statements cover the payout without confirming its full amount, and no operator
 * has resolved the payout. The payouts of a merchant that cannot be read may be open.
 */
export function isOpenPayout(payout: ArrivedPayout | MerchantError): boolean {
  if (isMerchantError(payout)) return true
  const { mid, arrival, differenceId, resolution } = payout
  return mid !== null && resolution === null && (differenceId !== null || arrival === 'perhaps')
}

/**
 * Yields the payouts on these days with their state in the bank statements, merchant by merchant, oldest first. Sums of
 * shared payouts, which belong to no single merchant, come last. `ofStatements` excludes merchants and acquirer
 * accounts without a statement.
 */
export function listArrivals(
  db: Database,
  { now, mid, ofStatements = false, ...days }: Days & Pick<Merchants, 'mid'> & { now: Date; ofStatements?: boolean },
): AsyncGenerator<ArrivedPayout | MerchantError> {
  return inSnapshot(db, now, async function* (snapshot) {
    const accounts = await readAccounts(snapshot)
    const rests = await readRests(snapshot, { days: aroundOf(days) })
    for (const one of await readMids(snapshot.client, { mid })) {
      const own = accounts.filter(({ mids }) => mids.includes(one))
      if (ofStatements && own.length === 0) continue
      const payouts = await readOne(snapshot, one, async () => {
        for (const account of own) account.arrivals ??= await arrivalsAt(snapshot, account, days, rests)
        const entries = await readResolved(snapshot.client, { ...days, mid: one, known: snapshot.known })
        const resolved = new Map(entries.map(({ differenceId, reason }) => [differenceId, reason]))
        return (await payoutsOf(snapshot, one, days, rests)).map(({ utr, recordedAt, ...payout }) => {
          const arrival = arrivalOf(payout, own)
          const id = (arrival.difference ?? 0) < 0 ? discrepancyId(shortPayout(payout, one)) : null
          return { ...payout, ...arrival, differenceId: id, resolution: (id && resolved.get(id)) ?? null }
        })
      })
      if (isMerchantError(payouts)) yield payouts
      else yield* payouts
    }
    if (mid !== undefined) return
    for (const rest of rests.filter((one) => one.mid === null && one.day >= days.from && one.day <= days.to)) {
      const own = accounts.filter(({ arrivals }) => arrivals?.has(keyOf(rest)))
      if (ofStatements && own.length === 0) continue
      const { day, account, bankReference } = rest
      const amount = amountOf(rest)
      const sums = { rows: 0, gross: 0, fee: 0, tax: 0, deductions: amount, net: amount }
      const notResolved = { differenceId: null, resolution: null }
      yield { day, mid: null, account, bankReference, ...sums, ...arrivalOf(rest, own), ...notResolved }
    }
  })
}

const readResolved = query<{ differenceId: string; reason: string }, Days & { mid: string; known: Date }>(`
  select difference_id, reason
    from difference_resolutions
   where mid = :mid and kind = 'short payout' and resolved_at <= :known and day between :from and :to`)

/** Converts a payout that was received short into a discrepancy. */
const shortPayout = (
  { day, account, bankReference }: Pick<PayoutLine, 'day' | 'account' | 'bankReference'>,
  mid: string,
) => ({
  ...{ mid, day, kind: 'short payout' as const, orderId: null, utr: null, settlementUtr: bankReference },
  ...(account !== null && { account }),
  ...{ paid: null, settled: null, exceptionId: null, resolution: null },
  cause: 'the bank account received less than the payout',
})

/**
 * Returns the short payout with the discrepancy id `id` as known at `now`, or undefined if no short payout has this id.
 * Passes the merchants whose payouts cannot be read to `onError`.
 */
export async function findShortPayout(
  db: Database,
  id: string,
  now: Date,
  onError: (error: MerchantError) => void,
): Promise<Discrepancy | undefined> {
  const day = dayOfDiscrepancy(id)
  if (day === undefined) return undefined
  for await (const one of listArrivals(db, { from: day, to: day, now })) {
    if (isMerchantError(one)) {
      onError(one)
      continue
    }
    const { mid, difference, resolution, ...payout } = one
    if (payout.differenceId !== id || mid === null || difference === null) continue
    return { ...shortPayout(payout, mid), id, owed: -difference, resolution, entries: 0 }
  }
  return undefined
}

/** Combines the states of one payout at several bank accounts. */
function arrivalOf(payout: Parameters<typeof keyOf>[0], accounts: readonly BankAccount[]): Arrival {
  const found = accounts.map(({ arrivals }) => arrivals?.get(keyOf(payout)) ?? NOT_KNOWN)
  const state = ARRIVAL_STATES.find((one) => found.some(({ arrival }) => arrival === one))
  return found.find(({ arrival }) => arrival === state) ?? NOT_KNOWN
}

/**
 * A bank account with statements: the days that the statements cover, and, once judged, the state of each payout by
 * `keyOf`.
 */
type BankAccount = AccountOf & { statements: Covering[]; arrivals?: Map<string, Arrival> }

/** The days that a statement covers, and the time of its import. `to` is null if the statement covers no day. */
type Covering = { from: string; to: string | null; at: Date }

async function readAccounts({ client, known }: Snapshot): Promise<BankAccount[]> {
  const statements = await readStatements(client, { known })
  return [...groupBy(statements, ({ mids, account }) => JSON.stringify([mids, account])).values()].map((own) => ({
    ...(own[0] as StatementOf),
    statements: own,
  }))
}

type StatementOf = AccountOf & Covering

const readStatements = query<StatementOf, { known: Date }>(`
  select mids, account, covers_from as from, covers_to as to, imported_at as at
    from statement_imports
   where undone_at is null and imported_at <= :known
   order by mids, account, import_id`)

/**
 * Returns the days on which statements contain every line that may match this payout. Unmatched lines may have been
 * deleted from a statement imported before the payout was known, so the early days of that statement are excluded.
 */
function coveredFor(
  { recordedAt }: Pick<PayoutLine, 'recordedAt'>,
  statements: readonly Covering[],
  bankDays: BankDays,
): Days[] {
  const last = statements.findLast(({ at }) => at < recordedAt)
  const stored = last ? retainedSince(last.at, bankDays) : ''
  return statements.flatMap(({ from, to, at }) =>
    to === null ? [] : [{ from: at < recordedAt && from < stored ? stored : from, to }],
  )
}

/** Judges the payouts on these days at one bank account, and returns their states by `keyOf`. */
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

/**
 * One credit that an acquirer transfers to a bank account. A transfer contains the payouts to all merchants for which
 * `keyOf` returns the same key.
 */
type Transfer = AwaitedPayout & { key: string; references: string[]; recordedAt: Date }

/**
 * Returns the transfers to the bank account whose last line is dated on these days. `rests` are amounts that the
 * acquirer added or deducted in addition to settlement lines.
 */
async function transfersTo(
  snapshot: Snapshot,
  { mids, account }: AccountOf,
  days: Days,
  rests: readonly Rest[],
): Promise<Transfer[]> {
  const transfers = new Map<string, Transfer>()
  for (const mid of mids) {
    for (const { utr, recordedAt, ...payout } of await payoutsOf(snapshot, mid, days, rests)) {
      if (account !== null && payout.account !== null && payout.account !== account) continue
      const key = keyOf(payout)
      const nothing = { expected: 0, references: [], day: '', recordedAt }
      const { expected, references, ...last } = transfers.get(key) ?? nothing
      const own = [payout.bankReference, ...(utr === null ? [] : [utr])].map(comparable)
      transfers.set(key, {
        key,
        references: [...references, ...own],
        expected: addPaise(expected, payout.net),
        day: last.day > payout.day ? last.day : payout.day,
        recordedAt: last.recordedAt > recordedAt ? last.recordedAt : recordedAt,
      })
    }
  }
  // Skips amounts that belong to a single merchant, because the `net` of the merchant's payout already includes these
  // amounts.
  for (const rest of rests.filter(({ mid }) => mid === null)) {
    const transfer = transfers.get(keyOf(rest))
    if (transfer) transfer.expected = addPaise(transfer.expected, amountOf(rest))
  }
  return [...transfers.values()]
}

/**
 * Returns the key of the transfer that contains a payout. Several payouts have the same key if an acquirer pays several
 * merchants by one transfer.
 */
const keyOf = ({ account, bankReference }: Pick<PayoutLine, 'account' | 'bankReference'>) =>
  `${account ?? ''} ${comparable(bankReference)}`

/** Returns the last 31 days, the period whose payouts `ops today` reports. */
export function recentDays(now: Date): Days {
  const to = toIstDay(now)
  return { from: addDays(to, -30), to }
}

/** Number of payouts in this state, and the sum of their net amounts in paise. */
export type ArrivalCount = { arrival: ArrivalState | 'resolved'; payouts: number; net: Paise }

/**
 * Counts the payouts of the last 31 days by state, without the payouts that no statement covers. `errors` lists the
 * merchants whose payouts are not counted.
 */
export async function countArrivals(
  db: Database,
  now: Date,
): Promise<{ arrivals: ArrivalCount[]; errors: MerchantError[] }> {
  const states = [...ARRIVAL_STATES, 'resolved'] as const
  const counts = new Map(states.map((arrival) => [arrival, { arrival, payouts: 0, net: 0 }]))
  const errors: MerchantError[] = []
  for await (const payout of listArrivals(db, { ...recentDays(now), now, ofStatements: true })) {
    if (isMerchantError(payout)) {
      errors.push(payout)
      continue
    }
    const { mid, arrival, net, resolution } = payout
    const count = counts.get(resolution === null ? arrival : 'resolved') as ArrivalCount
    if (mid !== null) count.payouts += 1
    count.net = addPaise(count.net, net)
  }
  const arrivals = [...counts.values()].filter(({ arrival, payouts }) => arrival !== 'not known' && payouts > 0)
  return { arrivals, errors }
}

/**
 * A payout that a credit may match. `expected` is the payout's amount in paise. `others` lists references of other
 * payouts that the credit names or is matched with.
 */
type MatchingPayout = { expected: Paise; others: string[] }

/**
 * Returns the payout that has this reference and is paid into the credit's bank account, or undefined if no payout
 * within 31 days has this reference.
 */
export async function findPayout(
  snapshot: Snapshot,
  { day, references, matchedPayout, matchedElsewhere, ...account }: Credit,
  payout: string,
): Promise<MatchingPayout | undefined> {
  const days = aroundOf({ from: day, to: day })
  const transfers = await transfersTo(snapshot, account, days, await readRests(snapshot, { days }))
  const isMeant = (one: (typeof transfers)[number]) => one.references.includes(comparable(payout))
  const meant = transfers.filter(isMeant)
  if (meant.length === 0) return undefined
  const named = [...references, ...matchedElsewhere, ...(matchedPayout === null ? [] : [matchedPayout])]
  return {
    expected: meant.reduce((sum, { expected }) => addPaise(sum, expected), 0),
    others: transfers
      .filter((one) => !isMeant(one))
      .flatMap((one) => one.references.find((reference) => named.includes(reference)) ?? []),
  }
}
