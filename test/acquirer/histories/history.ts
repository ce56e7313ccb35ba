import fc from 'fast-check'

/**
 * What happens to an order, told without its acquirer. Times are seconds after the order was made. An attempt follows the
 * one before: of several at once, Setu would tell the last one only.
 */

export const EXPIRY_SECONDS = 15 * 60
/** From then on the shop is told that an unpaid order has failed. */
export const OVER_SECONDS = 25 * 60
/** A payment that is heard of from then on is late, see STORING_LIMIT_MS. */
const LATE_SECONDS = OVER_SECONDS - 15
/** When the acquirer is asked. */
export const QUESTION_SECONDS = [90, 8 * 60, 2 * 60 * 60].map((seconds) => EXPIRY_SECONDS + seconds)

/** Of these moments some are just before or after a moment from which on the same thing means another. */
const BEFORE_EXPIRY = [60, 300, 600, 899]
const AFTER_EXPIRY = [901, 985, 1_100, 1_375, LATE_SECONDS - 1, LATE_SECONDS, OVER_SECONDS - 1, 3_600, 9_000]
const MOMENTS = [...BEFORE_EXPIRY, ...AFTER_EXPIRY]
/** All at which something may happen. */
export const INSTANTS = [...MOMENTS, ...QUESTION_SECONDS, OVER_SECONDS].sort((a, b) => a - b)

/** A payment that the bank may tell of: one of the customer's attempts, or one of which its book has nothing. */
export type Payment = {
  number: number
  status: 'PENDING' | 'SUCCESS' | 'FAIL'
  /** Short; of a payment that failed early it may be none, see hasUtr. */
  utr: string
  begunAt: number
  endedAt: number | undefined
}

export type Step = { at: number } & (
  | { does: 'begin' | 'end'; payment: Payment }
  | { does: 'tell'; payment: Payment; rupees: number; by: 'notification' | 'forged notification' | 'day file' }
  | { does: 'ask' }
  /** `isReached` is whether the acquirer is, `isOver` whether nobody can begin to pay at the acquirer any more. */
  | { does: 'cancel'; isReached: boolean; isOver: boolean }
  | { does: 'question'; isReached: boolean }
)

export type History = { steps: Step[] }

type Telling = { at: number; how: 'as it is' | 'other amount' | 'reversed' | 'forged' | 'by the day file' }

type Plan = {
  attempts: { begins: number; ends: number; end: Ending; tellings: Telling[] }[]
  /** Payments which the bank tells of, and which its book does not have: no bank lets a link be paid again. */
  others: Telling[][]
  cancels: { at: number; isReached: boolean }[]
  asks: number[]
  reached: boolean[]
}

/** How an attempt ends; `utr` is what the bank writes instead of one where it failed early. */
type Ending = { status: 'SUCCESS' | 'FAIL'; utr?: string }
const PAID: Ending = { status: 'SUCCESS' }
const FAILED: Ending[] = [{ status: 'FAIL' }, { status: 'FAIL', utr: '' }, { status: 'FAIL', utr: '-' }]

const OTHERS_FROM = 10

/** Others have nothing or a dash for it. */
export const hasUtr = ({ utr }: Pick<Payment, 'utr'>) => utr.length > 1

/** What happens of a plan: what cannot happen is left out. */
function toHistory({ attempts, others, cancels, asks, reached }: Plan): History {
  const steps: Step[] = []
  const book: Payment[] = []
  const cancelledAt = Math.min(...cancels.filter(({ isReached }) => isReached).map(({ at }) => at))
  const paidAt = () => book.find(({ status }) => status === 'SUCCESS')?.endedAt ?? Number.POSITIVE_INFINITY
  for (const { begins, ends, end, tellings } of attempts.toSorted((a, b) => a.begins - b.begins)) {
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
    for (const telling of tellings) {
      if (telling.at >= begins) steps.push(...toSteps(telling, telling.at < (ended.endedAt as number) ? begun : ended))
    }
  }
  for (const [index, tellings] of others.entries()) {
    const at = Math.min(...tellings.map((telling) => telling.at))
    const payment: Payment = {
      number: OTHERS_FROM + index,
      status: 'SUCCESS',
      utr: `B${index}`,
      begunAt: at,
      endedAt: at,
    }
    steps.push(...tellings.flatMap((telling) => toSteps(telling, payment)))
  }
  for (const cancel of cancels) {
    steps.push({ ...cancel, does: 'cancel', isOver: cancel.at >= Math.min(EXPIRY_SECONDS, paidAt()) })
  }
  steps.push(...asks.map((at) => ({ at, does: 'ask' }) as const))
  steps.push(
    ...QUESTION_SECONDS.map((at, index) => ({ at, does: 'question', isReached: reached[index] === true }) as const),
  )
  // Of one moment, what was written down first happens first.
  const history = { steps: steps.toSorted((a, b) => a.at - b.at) }
  return Object.assign(history, { [fc.toStringMethod]: () => inWords(history) })
}

function toSteps({ at, how }: Telling, payment: Payment): Step[] {
  const told = { at, does: 'tell', payment, rupees: 200, by: 'notification' } as const
  switch (how) {
    case 'as it is':
      return [told]
    case 'other amount':
      return [{ ...told, rupees: 201 }]
    case 'forged':
      return [{ ...told, payment: { ...payment, status: 'SUCCESS' }, by: 'forged notification' }]
    case 'reversed': {
      const status = payment.status === 'SUCCESS' ? 'FAIL' : 'SUCCESS'
      return hasUtr(payment) ? [{ ...told, payment: { ...payment, status } }] : []
    }
    case 'by the day file':
      return payment.status === 'PENDING' ? [] : [{ ...told, by: 'day file' }]
  }
}

/**
 * What must become of an order: whether it is paid, whether that payment is late, and whether a second one is known. `isClosed`
 * is whether the shop has tried to close it while it could.
 */
export function expected({ steps }: History) {
  const heard = new Set<string>()
  let [paid, isCancelled, isLate, isClosed] = ['', false, false, false]
  const hear = (utr: string, at: number, isDayFile = false) => {
    // A day file comes after the end of every order: its payment is late once the end is written for the shop's webhook.
    if (heard.size === 0) isLate = isCancelled || at >= (isDayFile ? OVER_SECONDS : LATE_SECONDS)
    heard.add(utr)
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
        if (counts) hear(payment.utr, at, by === 'day file')
        break
      }
      case 'question':
        if (step.isReached && paid !== '' && heard.size === 0) hear(paid, at)
        break
      case 'cancel':
        isClosed ||= at < OVER_SECONDS
        if (isCancelled || heard.size > 0 || at >= OVER_SECONDS) break
        isCancelled = true
        // The acquirer refuses to close the link, and is asked why.
        if (step.isReached && step.isOver && paid !== '') hear(paid, at)
    }
  }
  return { isClosed, isPaid: heard.size > 0, isLate, isDouble: heard.size > 1 }
}

/**
 * The history as it is for a bank whose notifications prove nothing, and which does not close orders: only the day file
 * and the answers to questions tell, and the bank was asked at the moments `asked`, after all else that happened then.
 */
export function asAsked({ steps }: History, asked: readonly number[]): History {
  const told = steps.filter((step) => step.does !== 'question' && !(step.does === 'tell' && step.by !== 'day file'))
  const unclosed = told.map((step) => (step.does === 'cancel' ? { ...step, isOver: false } : step))
  const isReached = (at: number) => !steps.some((step) => step.does === 'question' && step.at === at && !step.isReached)
  const questions = asked.map((at) => ({ at, does: 'question', isReached: isReached(at) }) as const)
  return { steps: [...unclosed, ...questions].toSorted((a, b) => a.at - b.at) }
}

/** When a notification of a payment has to make a question follow: at once, or 3 s after the one before. */
export function questionsDue({ steps }: History, asked: readonly number[]): number[] {
  return steps.flatMap((step) => {
    if (step.does !== 'tell' || step.by !== 'notification' || step.payment.status !== 'SUCCESS') return []
    const last = asked.findLast((at) => at < step.at) ?? -3
    return INSTANTS.find((at) => at >= Math.max(step.at, last + 3)) ?? []
  })
}

export function inWords({ steps }: History): string {
  const lines = steps.map((step) => `${timeOf(step.at)}: ${phraseOf(step)}`)
  return ['an order is made', ...lines].map((line) => `\n  ${line}`).join('')
}

const timeOf = (seconds: number) => `after ${Math.floor(seconds / 60)} min ${seconds % 60} s`

function phraseOf(step: Step): string {
  switch (step.does) {
    case 'begin':
      return `the customer begins ${nameOf(step.payment)}`
    case 'end':
      return `${nameOf(step.payment)} ends: ${STATES[step.payment.status]}`
    case 'tell': {
      const amount = step.rupees === 200 ? '' : `, of ${step.rupees} rupees instead of 200`
      return `a ${step.by} tells of ${nameOf(step.payment)}: ${STATES[step.payment.status]}${amount}`
    }
    case 'ask':
      return 'the shop asks what became of the order'
    case 'cancel': {
      const refused = step.isOver ? ', and the acquirer has nothing to close any more' : ''
      return `the shop cancels the order${step.isReached ? refused : ', and the acquirer cannot be reached'}`
    }
    case 'question':
      return `if the order is unpaid, the acquirer is asked${step.isReached ? '' : ', and cannot be reached'}`
  }
}

const STATES = { PENDING: 'under way', SUCCESS: 'paid', FAIL: 'failed' }

function nameOf({ number, utr, status }: Payment): string {
  const name = number < OTHERS_FROM ? `attempt ${number + 1}` : `payment ${number - OTHERS_FROM + 1} beside them`
  if (status === 'PENDING') return name
  return hasUtr({ utr }) ? `${name}, UTR ${utr}` : `${name}, with ${utr || 'nothing'} for its UTR`
}

const moment = fc.constantFrom(...MOMENTS)
const lateMoment = fc.constantFrom(...MOMENTS.filter((at) => at >= LATE_SECONDS))
const telling: fc.Arbitrary<Telling> = fc.record({
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
  tellings: fc.array(telling, { maxLength: 4 }),
})
const cancel = fc.record({
  at: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...BEFORE_EXPIRY) }, { weight: 2, arbitrary: moment }),
  isReached: fc.constantFrom(true, true, true, false),
})

/** The one generator, for every acquirer. */
export const history: fc.Arbitrary<History> = fc
  .record({
    attempts: fc.array(attempt, { maxLength: 3 }),
    others: fc.array(fc.array(telling, { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
    cancels: fc.array(cancel, { maxLength: 2 }),
    asks: fc.array(moment, { maxLength: 2 }),
    reached: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  })
  .map(toHistory)
