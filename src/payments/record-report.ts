import { type ExceptionKind, judge, type Report, type Status } from './outcome.ts'
import type { ChangeReason, Reports } from './report-repository.ts'

/** What came of a report. `changed` is false for a repeat, and for what a paid order no longer minds. */
export type Recorded = { status: Status; changed: boolean } | { exception: ExceptionKind }

/** Each lost race shows a new state of the intent, and there are three: more tries than this are a fault. */
const MAX_TRIES = 5

/**
 * Judges a report by the rules of contract C5 and stores what follows: a change of the intent, an exception, or nothing.
 * Any number of the same reports at once make one change and get the same answer.
 */
export async function recordReport(
  reports: Pick<Reports, 'findReported' | 'change' | 'keepException'>,
  report: Report,
  { reason, now }: { reason: ChangeReason; now: Date },
): Promise<Recorded> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const intent = await reports.findReported(report.orderId, report.utr)
    const verdict = judge(intent, report)
    if ('exception' in verdict) {
      // What the bank says of an unknown order may be money; what the operator says of one is a typing error.
      if (intent || reason !== 'operator')
        await reports.keepException(intent?.mid ?? '', verdict.exception, report, now)
      return verdict
    }
    if (intent === undefined || verdict.becomes === intent.status) return { status: verdict.becomes, changed: false }
    if (await reports.change(intent, report, { reason, now })) return { status: verdict.becomes, changed: true }
  }
  throw new Error(`order ${report.orderId} kept changing under our hands`)
}
