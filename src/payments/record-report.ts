import { type Contradiction, judge, type Report } from './outcome.ts'
import type { Reports, Source } from './reports.ts'

/**
 * What a report has changed. `changed` is false for a repeat; with `late` the success is also kept as an exception. `exception`
 * says why nothing was changed.
 */
export type Recorded = { changed: boolean; late: boolean } | { exception: Contradiction }

/** Who reports, and the clock. `keeps` says which exceptions are kept: all by default. */
export type Reporting = Omit<Source, 'now'> & { now: () => Date; keeps?: (kind: Contradiction) => boolean }

/** A try fails when a success, a cancellation, or an order that takes the same UTR comes first. Each can happen once, so more than three failures are a fault of ours. */
const MAX_TRIES = 5

/**
 * Judges a report and stores what follows: a success, a failed attempt, an exception, or nothing. Any number of the same
 * reports at once make one change and get the same answer.
 */
export function recordReport(reports: Reports, report: Report, reporting: Reporting): Promise<Recorded> {
  return reports.inTurn(() => record(reports, report, reporting))
}

async function record(reports: Reports, report: Report, reporting: Reporting): Promise<Recorded> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const recorded =
      report.utr === undefined
        ? await tryToRecord(reports, report, reporting)
        : await reports.alone(report.utr, (alone) => tryToRecord(alone, report, reporting))
    if (recorded) return recorded
  }
  throw new Error(`order ${report.orderId} changed again and again while a report of it was stored`)
}

/** Undefined when the order changed between judging and storing. */
async function tryToRecord(
  reports: Pick<Reports, 'findReported' | 'succeed' | 'addAttempt' | 'keepException'>,
  report: Report,
  { keeps = () => true, now, ...teller }: Reporting,
): Promise<Recorded | undefined> {
  // A try that waited for the database must not be judged by the time before it.
  const source = { ...teller, now: now() }
  const intent = await reports.findReported(report)
  if (intent === undefined) return except('', 'unknown order')
  const judged = judge(intent, report, source.now)
  switch (judged.verdict) {
    case 'repeat':
      return { changed: false, late: false }
    case 'exception':
      return except(intent.mid, judged.kind)
    case 'success':
      return (await reports.succeed(intent, report, source, judged)) ? { changed: true, late: judged.late } : undefined
    case 'failed attempt': {
      const added = await reports.addAttempt(intent, report, source, judged)
      return added === 'ended meanwhile' ? undefined : { changed: added === 'new', late: false }
    }
  }

  async function except(mid: string, exception: Contradiction) {
    if (keeps(exception)) await reports.keepException(mid, exception, report, source)
    return { exception }
  }
}
