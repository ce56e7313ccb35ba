import fc from 'fast-check'

/**
 * Generated events of an order, independent of its acquirer. Times are in seconds after the order's creation. Attempts
 * never overlap, because Setu would report only the last one.
 */

export const EXPIRY_SECONDS = 15 * 60
/** From then on, checkPaymentStatus returns FAIL for an unpaid order. */
export const OVER_SECONDS = 25 * 60
/** A payment reported from then on is late, see STORING_LIMIT_MS. */
const LATE_SECONDS = OVER_SECONDS - 15
/** Scheduled times of status checks. */
export const STATUS_CHECK_SECONDS = [90, 8 * 60, 2 * 60 * 60].map((seconds) => EXPIRY_SECONDS + seconds)

/** Some of these times are just before or after a time at which the same event changes its meaning. */
const BEFORE_EXPIRY = [60, 300, 600, 899]
const AFTER_EXPIRY = [901, 985, 1_100, 1_375, LATE_SECONDS - 1, LATE_SECONDS, OVER_SECONDS - 1, 3_600, 9_000]
const MOMENTS = [...BEFORE_EXPIRY, ...AFTER_EXPIRY]
/** Every time at which an event may happen. */
export const INSTANTS = [...MOMENTS, ...STATUS_CHECK_SECONDS, OVER_SECONDS].sort((a, b) => a - b)

/** A payment that the bank may report: an attempt of the customer, or one missing from the bank's records. */
export type Payment = {
  number: number
  status: 'PENDING' | 'SUCCESS' | 'FAIL'
  /** A short UTR; a payment that failed early may have none, see `hasUtr`. */
  utr: string
  begunAt: number
  endedAt: number | undefined
}

export type Step = { at: number } & (
  | { does: 'begin' | 'end'; payment: Payment }
  | { does: 'tell'; payment: Payment; rupees: number; by: 'notification' | 'forged notification' | 'day file' }
  | { does: 'ask' }
  /**
   * `isReached` is whether the acquirer can be reached, `isOver` whether the customer can no longer start a payment
   * there.
   */
  | { does: 'cancel'; isReached: boolean; isOver: boolean }
  | { does: 'question'; isReached: boolean }
)

export type History = { steps: Step[] }

type Reporting = { at: number; how: 'as it is' | 'other amount' | 'reversed' | 'forged' | 'by the day file' }

type Plan = {
  attempts: { begins: number; ends: number; end: Ending; reportings: Reporting[] }[]
  /** Payments that the bank reports without having them in its records, since no bank lets a link be paid twice. */
  others: Reporting[][]
  cancels: { at: number; isReached: boolean }[]
  checks: number[]
  reached: boolean[]
}

/** Result of an attempt; `utr` replaces the UTR if the attempt failed early. */
type Ending = { status: 'SUCCESS' | 'FAIL'; utr?: string }
const PAID: Ending = { status: 'SUCCESS' }
const FAILED: Ending[] = [{ status: 'FAIL' }, { status: 'FAIL', utr: '' }, { status: 'FAIL', utr: '-' }]

const OTHERS_FROM = 10

/** False for an empty UTR or a dash. */
export const hasUtr = ({ utr }: Pick<Payment, 'utr'>) => utr.length > 1

/** Converts a plan to a history and drops events that are impossible. */
function toHistory({ attempts, others, cancels, checks, reached }: Plan): History {
  const steps: Step[] = []
  const book: Payment[] = []
  const cancelledAt = Math.min(...cancels.filter(({ isReached }) => isReached).map(({ at }) => at))
  const paidAt = () => book.find(({ status }) => status === 'SUCCESS')?.endedAt ?? Number.POSITIVE_INFINITY
  for (const { begins, ends, end, reportings } of attempts.toSorted((a, b) => a.begins - b.begins)) {
    const last = book.at(-1)
    const isFree = last === undefined || (last.endedAt as number) <= begins
    if (!isFree || begins >= cancelledAt || begins >= paidAt()) continue
    const number = book.length
    const begun: Payment = { number, status: 'PENDING', utr: '', begunAt: begins, endedAt: undefined }
    const ended: Payment = {
      ...begun,
      status: end.status,
      utr: end.utr ?? `A${number}`,
      endedAt: Math.max(begins, ends),
    }
    book.push(ended)
    steps.push(
      { at: begins, does: 'begin', payment: begun },
      { at: ended.endedAt as number, does: 'end', payment: ended },
    )
    for (const reporting of reportings) {
      if (reporting.at >= begins)
        steps.push(...toSteps(reporting, reporting.at < (ended.endedAt as number) ? begun : ended))
    }
  }
  for (const [index, reportings] of others.entries()) {
    const at = Math.min(...reportings.map((reporting) => reporting.at))
    const payment: Payment = {
      number: OTHERS_FROM + index,
      status: 'SUCCESS',
      utr: `B${index}`,
      begunAt: at,
      endedAt: at,
    }
    steps.push(...reportings.flatMap((reporting) => toSteps(reporting, payment)))
  }
  for (const cancel of cancels) {
    steps.push({ ...cancel, does: 'cancel', isOver: cancel.at >= Math.min(EXPIRY_SECONDS, paidAt()) })
  }
  steps.push(...checks.map((at) => ({ at, does: 'ask' }) as const))
  steps.push(
    ...STATUS_CHECK_SECONDS.map((at, index) => ({ at, does: 'question', isReached: reached[index] === true }) as const),
  )
  // The sort is stable: events of the same time happen in the order in which they were added.
  const history = { steps: steps.toSorted((a, b) => a.at - b.at) }
  return Object.assign(history, { [fc.toStringMethod]: () => inWords(history) })
}

function toSteps({ at, how }: Reporting, payment: Payment): Step[] {
  const reported = { at, does: 'tell', payment, rupees: 200, by: 'notification' } as const
  switch (how) {
    case 'as it is':
      return [reported]
    case 'other amount':
      return [{ ...reported, rupees: 201 }]
    case 'forged':
      return [{ ...reported, payment: { ...payment, status: 'SUCCESS' }, by: 'forged notification' }]
    case 'reversed': {
      const status = payment.status === 'SUCCESS' ? 'FAIL' : 'SUCCESS'
      return hasUtr(payment) ? [{ ...reported, payment: { ...payment, status } }] : []
    }
    case 'by the day file':
      return payment.status === 'PENDING' ? [] : [{ ...reported, by: 'day file' }]
  }
}

/**
 * Returns the expected result of an order: whether it is paid, whether that payment is late, and whether a duplicate
 * payment is known. `isClosed` is whether the merchant tried to cancel it while it was open.
 */
export function expected({ steps }: History) {
  const received = new Set<string>()
  let [paid, isCancelled, isLate, isClosed] = ['', false, false, false]
  const receive = (utr: string, at: number, isDailyReport = false) => {
    // The report file arrives after the final status of every order: its payment is late once that status is written
    // for the webhook.
    if (received.size === 0) isLate = isCancelled || at >= (isDailyReport ? OVER_SECONDS : LATE_SECONDS)
    received.add(utr)
  }
  for (const step of steps) {
    const { at } = step
    switch (step.does) {
      case 'end':
        if (step.payment.status === 'SUCCESS') paid = step.payment.utr
        break
      case 'tell': {
        const { payment, rupees, by } = step
        const counts = payment.status === 'SUCCESS' && rupees === 200 && by !== 'forged notification'
        if (counts) receive(payment.utr, at, by === 'day file')
        break
      }
      case 'question':
        if (step.isReached && paid !== '' && received.size === 0) receive(paid, at)
        break
      case 'cancel':
        isClosed ||= at < OVER_SECONDS
        if (isCancelled || received.size > 0 || at >= OVER_SECONDS) break
        isCancelled = true
        // The acquirer rejects closing the link, so its status is checked.
        if (step.isReached && step.isOver && paid !== '') receive(paid, at)
    }
  }
  return { isClosed, isPaid: received.size > 0, isLate, isDuplicate: received.size > 1 }
}

/**
 * Converts a history for a bank whose notifications are not proof and which closes no orders: only the transaction
 * report and status checks count, at the times `checked`, after all other events of the same time.
 */
export function asChecked({ steps }: History, checked: readonly number[]): History {
  const reported = steps.filter((step) => step.does !== 'question' && !(step.does === 'tell' && step.by !== 'day file'))
  const unclosed = reported.map((step) => (step.does === 'cancel' ? { ...step, isOver: false } : step))
  const isReached = (at: number) => !steps.some((step) => step.does === 'question' && step.at === at && !step.isReached)
  const statusChecks = checked.map((at) => ({ at, does: 'question', isReached: isReached(at) }) as const)
  return { steps: [...unclosed, ...statusChecks].toSorted((a, b) => a.at - b.at) }
}

/** Returns when a notification of a payment must cause a status check: immediately, or 3 s after the previous one. */
export function statusChecksPending({ steps }: History, checked: readonly number[]): number[] {
  return steps.flatMap((step) => {
    if (step.does !== 'tell' || step.by !== 'notification' || step.payment.status !== 'SUCCESS') return []
    const last = checked.findLast((at) => at < step.at) ?? -3
    return INSTANTS.find((at) => at >= Math.max(step.at, last + 3)) ?? []
  })
}

export function inWords({ steps }: History): string {
  const lines = steps.map((step) => `${timeOf(step.at)}: ${phraseOf(step)}`)
  return ['an order is created', ...lines].map((line) => `\n  ${line}`).join('')
}

const timeOf = (seconds: number) => `after ${Math.floor(seconds / 60)} min ${seconds % 60} s`

function phraseOf(step: Step): string {
  switch (step.does) {
    case 'begin':
      return `the customer starts ${nameOf(step.payment)}`
    case 'end':
      return `${nameOf(step.payment)} becomes ${STATES[step.payment.status]}`
    case 'tell': {
      const amount = step.rupees === 200 ? '' : `, of ${step.rupees} rupees instead of 200`
      return `a ${step.by} reports ${nameOf(step.payment)}: ${STATES[step.payment.status]}${amount}`
    }
    case 'ask':
      return 'the merchant checks the payment status'
    case 'cancel': {
      const rejected = step.isOver ? ', and the acquirer has nothing left to close' : ''
      return `the merchant cancels the order${step.isReached ? rejected : ', and the acquirer cannot be reached'}`
    }
    case 'question':
      return `if the order is unpaid, a status check runs${step.isReached ? '' : ', and the acquirer cannot be reached'}`
  }
}

const STATES = { PENDING: 'pending', SUCCESS: 'paid', FAIL: 'failed' }

function nameOf({ number, utr, status }: Payment): string {
  const name =
    number < OTHERS_FROM ? `attempt ${number + 1}` : `payment ${number - OTHERS_FROM + 1} outside the records`
  if (status === 'PENDING') return name
  return hasUtr({ utr }) ? `${name}, UTR ${utr}` : `${name}, with ${utr || 'nothing'} as its UTR`
}

const moment = fc.constantFrom(...MOMENTS)
const lateMoment = fc.constantFrom(...MOMENTS.filter((at) => at >= LATE_SECONDS))
const reporting: fc.Arbitrary<Reporting> = fc.record({
  at: fc.oneof({ weight: 3, arbitrary: moment }, { weight: 2, arbitrary: lateMoment }),
  how: fc.oneof(
    { weight: 10, arbitrary: fc.constant('as it is' as const) },
    ...(['by the day file', 'reversed', 'other amount', 'forged'] as const).map((how) => ({
      weight: 1,
      arbitrary: fc.constant(how),
    })),
  ),
})
const attempt = fc.record({
  begins: fc.constantFrom(...BEFORE_EXPIRY),
  ends: fc.oneof(fc.constant(0), moment),
  end: fc.oneof({ weight: 2, arbitrary: fc.constant(PAID) }, { weight: 1, arbitrary: fc.constantFrom(...FAILED) }),
  reportings: fc.array(reporting, { maxLength: 4 }),
})
const cancel = fc.record({
  at: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...BEFORE_EXPIRY) }, { weight: 2, arbitrary: moment }),
  isReached: fc.constantFrom(true, true, true, false),
})

/** The only generator, shared by all acquirers. */
export const history: fc.Arbitrary<History> = fc
  .record({
    attempts: fc.array(attempt, { maxLength: 3 }),
    others: fc.array(fc.array(reporting, { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
    cancels: fc.array(cancel, { maxLength: 2 }),
    checks: fc.array(moment, { maxLength: 2 }),
    reached: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  })
  .map(toHistory)
