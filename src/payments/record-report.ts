import { fewAtOnce } from '../db/few-at-once.ts'
import { DEADLOCK_DETECTED, hasState, UNIQUE_VIOLATION } from '../db/sqlstates.ts'
import { groupBy } from '../group-by.ts'
import { toPaise } from '../money.ts'
import { type Contradiction, judge, type Report, type ReportedIntent, STORING_LIMIT_MS } from './outcome.ts'
import type { LocatedReport, Reports, Source } from './reports.ts'

/**
 * What a report has changed. `changed` is false for a repeat; with `late` the success is also kept as an exception. `exception`
 * says why nothing was changed.
 */
export type Recorded = { changed: boolean; late: boolean } | { exception: Contradiction }

/** Who reports, and the clock. `keeps` says which exceptions are kept: all by default. */
export type Reporting = Omit<Source, 'now'> & { now: () => Date; keeps?: (kind: Contradiction) => boolean }

/**
 * A try fails when a success, a cancellation, or an order that takes the same UTR comes first, each of which can happen once,
 * when PostgreSQL ends it because it and another transaction wait for each other, or when it waited too long. More failures
 * are a fault of ours.
 */
const MAX_TRIES = 5

/**
 * Judges a report and stores what follows: a success, a failed attempt, an exception, or nothing. Any number of the same
 * reports at once make one change and get the same answer.
 */
export async function recordReport(reports: Reports, report: Report, reporting: Reporting): Promise<Recorded> {
  const mid = await reports.onlyMerchant(report.orderId)
  return reports.inTurn(mid, async () => record(reports, await locate(reports, [report], mid), reporting))
}

async function record(reports: Reports, located: readonly LocatedReport[], reporting: Reporting): Promise<Recorded> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const [recorded] = await tryToRecord(reports, located, reporting)
    if (recorded) return recorded
  }
  throw new Error(`order ${located[0]?.report.orderId} changed again and again while a report of it was stored`)
}

/** PostgreSQL runs a transaction on one processor core, and the smallest servers have two. */
const TRANSACTIONS_AT_ONCE = 2

/**
 * Records many reports, with the results of recordReport for one after the other. Those that have nothing to do with each
 * other share the statements of two transactions, for each of which `reports` needs a connection.
 */
export async function recordReports(
  reports: Reports,
  batch: readonly Report[],
  reporting: Reporting,
): Promise<Recorded[]> {
  const orders = countOf(batch.map(({ orderId }) => orderId))
  const utrs = countOf(batch.map(({ utr }) => utr))
  const independent = batch.filter(
    ({ orderId, utr }) => orders.get(orderId) === 1 && (utr === undefined || utrs.get(utr) === 1),
  )
  const located = await locate(reports, independent)
  const inTurn = fewAtOnce(TRANSACTIONS_AT_ONCE)
  const parts = (await reports.areOfOneMerchant()) ? groupBy(located, ({ mid }) => mid ?? '') : halves(located)
  const recorded = new Map<Report, Recorded | undefined>()
  const tryPart = async (part: LocatedReport[]) => {
    const tried = await tryToRecord(reports, part, reporting)
    for (const [index, { report }] of part.entries()) recorded.set(report, tried[index])
  }
  await Promise.all(parts.map((part) => inTurn(() => tryPart(part))))
  const results: Recorded[] = []
  for (const report of batch) results.push(recorded.get(report) ?? (await recordReport(reports, report, reporting)))
  return results
}

/** With the merchants of their orders, or with `mid` where it is an order's. */
async function locate(reports: Reports, batch: readonly Report[], mid?: string): Promise<LocatedReport[]> {
  const merchants = await reports.findMerchants(
    batch.map(({ orderId }) => orderId),
    mid,
  )
  return batch.map((report) => ({ report, mid: merchants.get(report.orderId) }))
}

function halves<T>(all: T[]): T[][] {
  const middle = Math.ceil(all.length / 2)
  return [all.slice(0, middle), all.slice(middle)]
}

function countOf<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/**
 * Records reports about different orders with different UTRs: all, or none if PostgreSQL refuses. Undefined in the place of
 * a report whose order changed between judging and storing, and for all when nothing was stored.
 */
async function tryToRecord(
  reports: Reports,
  batch: readonly LocatedReport[],
  { keeps = () => true, now, ...teller }: Reporting,
): Promise<(Recorded | undefined)[]> {
  if (batch.length === 0) return []
  try {
    const results = await reports.alone(batch, async (alone) => {
      // A try that waited for the database must not be judged by the time before it.
      const source = { ...teller, now: now() }
      const intents = await alone.findReported(batch)
      const judged = batch.map(({ report }, index) => judgeReport(report, intents[index], source.now))
      const paid = await alone.succeed(
        judged.filter((one) => one.verdict === 'success'),
        source,
      )
      // A lock that somebody held for long: by now the merchant may have been told the end.
      if (now().getTime() - source.now.getTime() > STORING_LIMIT_MS) throw new JudgedTooEarly()
      const added = await alone.addAttempts(
        judged.filter((one) => one.verdict === 'failed attempt'),
        source,
      )
      await alone.keepExceptions(
        judged.filter((one) => one.verdict === 'exception').filter(({ kind }) => keeps(kind)),
        source,
      )
      return judged.map((one) => ({ ...one, recorded: toRecorded(one, paid, added) }))
    })
    // Not before they are stored: what is rolled back is tried again.
    for (const { report, verdict, recorded } of results) {
      if (verdict === 'surplus attempt') reports.onSurplusAttempt()
      if (recorded && 'changed' in recorded && recorded.changed) {
        reports.onPayment(report.status, teller.reason, toPaise(report.amount))
      }
    }
    return results.map(({ recorded }) => recorded)
  } catch (error) {
    const isLost = error instanceof JudgedTooEarly || hasState(error, UNIQUE_VIOLATION, DEADLOCK_DETECTED)
    if (isLost) return batch.map(() => undefined)
    throw error
  }
}

/** What came of a report, by the orders that were paid, and those whose attempts were stored, with whether they are new. */
function toRecorded(
  one: ReturnType<typeof judgeReport>,
  paid: ReadonlySet<string>,
  added: ReadonlyMap<string, boolean>,
): Recorded | undefined {
  const { orderId } = one.report
  switch (one.verdict) {
    case 'repeat':
    case 'surplus attempt':
      return { changed: false, late: false }
    case 'exception':
      return { exception: one.kind }
    case 'success':
      return paid.has(orderId) ? { changed: true, late: one.late } : undefined
    case 'failed attempt': {
      const changed = added.get(orderId)
      return changed === undefined ? undefined : { changed, late: false }
    }
  }
}

/** Rolls a try back. */
class JudgedTooEarly extends Error {}

function judgeReport(report: Report, intent: ReportedIntent | undefined, now: Date) {
  if (intent === undefined) return { report, intent, verdict: 'exception' as const, kind: 'unknown order' as const }
  return { report, intent, ...judge(intent, report, now) }
}
