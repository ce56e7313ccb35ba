import { formError, isBrokenOff, isUnsure, type Journal, type Kind, statusOf } from '../support/journal.ts'
import type { Reconciled } from '../support/reconcile.ts'

/** The result of one fault: a row of the table. */
export type Finding = {
  fault: string
  figures?: {
    requests: number
    responded: number
    unavailable: number
    unanswered: number
    reconciled: Reconciled
    otherServerErrors: number
    slowest503Ms: number
    /** From each recovery to the first success of every kind of request. */
    firstSuccessMs: number[]
  }
  /** Other observations. */
  notes: string[]
  /** Promises that were broken. */
  broken: string[]
  /** Why the fault could not be injected here. */
  leftOut?: string
}

/** Maximum time until a 503. */
const UNAVAILABLE_LIMIT_MS = 2_000
/** A status call waits up to 8 s for the database, because its callers treat a 503 as a failed payment. */
const STATUS_UNAVAILABLE_LIMIT_MS = 10_000
/** Maximum time from the recovery to the first success. */
const RETURN_LIMIT_MS = 1_000

/** Judges the journal of one fault by the promises that apply during every fault. */
export function judge(
  fault: string,
  journal: Journal,
  reconciled: Reconciled,
  { firstSuccessMs = [], mayLackResponse = false }: { firstSuccessMs?: number[]; mayLackResponse?: boolean } = {},
): Finding & { figures: NonNullable<Finding['figures']> } {
  const unavailable = journal.filter((entry) => statusOf(entry) === 503)
  const unanswered = journal.filter((entry) => statusOf(entry) === undefined && !isBrokenOff(entry))
  const brokenOff = journal.filter(isBrokenOff)
  const otherServerErrors = journal.filter((entry) => (statusOf(entry) ?? 0) >= 500 && statusOf(entry) !== 503)
  const rejected = journal.filter((entry) => !isUnsure(entry) && statusOf(entry) !== 200)
  const slowestOf = (entries: Journal) => Math.max(0, ...entries.map(({ response }) => response?.tookMs ?? 0))
  const slowest503Ms = slowestOf(unavailable.filter(({ kind }) => kind !== 'status'))
  const slowestStatus503Ms = slowestOf(unavailable.filter(({ kind }) => kind === 'status'))
  const broken: string[] = []
  const expect = (holds: boolean, promise: string) => {
    if (!holds) broken.push(promise)
  }
  const { unsure, resolved, lost, doubled, orphaned } = reconciled
  expect(lost === 0, `nothing acknowledged is lost: ${lost} are`)
  expect(doubled === 0, `nothing is doubled: ${doubled} are`)
  expect(orphaned === 0, `a client knows of everything that is stored: ${orphaned} are unknown`)
  expect(unsure === resolved, `every unsure request is resolved: ${unsure - resolved} are not`)
  expect(otherServerErrors.length === 0, `no 5xx except 503: ${otherServerErrors.map(statusOf)}`)
  expect(rejected.length === 0, `valid requests are not rejected: ${rejected.map((e) => `${e.kind} ${statusOf(e)}`)}`)
  expect(
    slowest503Ms < UNAVAILABLE_LIMIT_MS,
    `503 within ${UNAVAILABLE_LIMIT_MS} ms: the slowest took ${ms(slowest503Ms)}`,
  )
  expect(
    slowestStatus503Ms < STATUS_UNAVAILABLE_LIMIT_MS,
    `503 of a status call within ${STATUS_UNAVAILABLE_LIMIT_MS} ms: the slowest took ${ms(slowestStatus503Ms)}`,
  )
  for (const took of firstSuccessMs) {
    expect(took < RETURN_LIMIT_MS, `success within ${RETURN_LIMIT_MS} ms of the recovery: one took ${ms(took)}`)
  }
  if (!mayLackResponse) {
    const reasons = unanswered.map(({ kind, response }) => `${kind}: ${response?.fault}`)
    expect(unanswered.length === 0, `every request has a response: ${[...new Set(reasons)].join('; ')}`)
  }
  const faults = journal.map(formError).filter((it) => it !== undefined)
  expect(faults.length === 0, `every response has the right format: ${[...new Set(faults)].join('; ')}`)
  return {
    fault,
    figures: {
      requests: journal.length,
      responded: journal.length - unavailable.length - unanswered.length - brokenOff.length,
      unavailable: unavailable.length,
      unanswered: unanswered.length,
      reconciled,
      otherServerErrors: otherServerErrors.length,
      slowest503Ms,
      firstSuccessMs,
    },
    notes: brokenOff.length > 0 ? [`${brokenOff.length} long lists were cut off, which their readers notice`] : [],
    broken,
  }
}

const NEEDS_DATABASE: Kind[] = ['create', 'status', 'notification', 'short list', 'long list', 'page', 'readyz']

/** Returns how long after `moment` every kind of request had succeeded once. */
export function firstSuccessAfter(journal: Journal, moment: number): number {
  const successes = journal.filter((entry) => statusOf(entry) === 200 && (entry.respondedAt ?? 0) > moment)
  const firstOf = (kind: Kind) =>
    Math.min(...successes.filter((entry) => entry.kind === kind).map((entry) => entry.respondedAt as number))
  return Math.max(...NEEDS_DATABASE.map(firstOf)) - moment
}

/** Checks the health endpoints between two times: readiness fails, liveness does not. */
export function brokenHealth(journal: Journal, from: number, until: number): string[] {
  const during = journal.filter(({ sentAt, respondedAt }) => sentAt >= from && (respondedAt ?? Infinity) <= until)
  const statuses = (kind: string) => during.filter((entry) => entry.kind === kind).map(statusOf)
  const broken: string[] = []
  if (!statuses('readyz').includes(503) || statuses('readyz').includes(200)) {
    broken.push(`/readyz fails while the database is unavailable: ${statuses('readyz')}`)
  }
  if (statuses('livez').some((status) => status !== 200)) broken.push(`/livez succeeds: ${statuses('livez')}`)
  return broken
}

export const ms = (milliseconds: number) => `${Math.round(milliseconds)} ms`
