import { type SpoiltResponse, seeded } from '../support/bank-faults.ts'

/*
 * Who does what and when, drawn from a seed before the world begins. Each merchant and each order draws from its own
 * generator, so that an order can be left out without a change to the others.
 */

export const ACCOUNTS = ['setu', 'cashfree', 'phonepe', 'razorpay', 'direct'] as const
export type Account = (typeof ACCOUNTS)[number]

/** How the settlement files of a merchant name payments. `pulled`: by rows, which at Cashfree come from its API. */
export type Form = 'rows' | 'totals' | 'parts' | 'pulled'

/** When an operator finds the order of a payment by typed address. */
export type Found = 'same day' | 'next day' | 'beside a close'

export type MerchantPlan = {
  number: number
  account: Account
  fallback: Account | undefined
  form: Form
  /** Whether the merchant's server sends an Idempotency-Key. Otherwise it sends its own order_id alone. */
  hasKeys: boolean
  /** When the merchant's receiver of webhooks responds with 503, in milliseconds after the world's beginning. */
  down: { from: number; to: number }[]
}

/** A fault of the acquirer's call that creates a link. */
export type LinkFault = { status: number } | 'sent twice' | SpoiltResponse

/** One attempt of the customer. Times are in seconds after the order's creation. */
export type Attempt = {
  after: number
  outcome: 'success' | 'failed' | 'pending'
  /** The customer changes the amount; only possible without an acquirer's link. */
  otherAmount: boolean
  /** The customer types the UPI address without the order. */
  isTyped: boolean
  /** The bank returns a payment whose order is not found. */
  found: Found | undefined
  /** The acquirer knows the bank reference of this payment only in its daily report. */
  hasLateReference: boolean
  /** What happens to the notifications. */
  faults: Partial<Record<'lost' | 'repeated' | 'reordered' | 'late' | 'forged' | 'contradicted', 1>>
  /** An earlier fault of the status check of this order. */
  checkFault: LinkFault | undefined
}

export type RefundPlan = {
  /** Hours after the payment. */
  after: number
  /** Part of the payment's amount. */
  share: number
  /** Whether the merchant sends the request again, and again with each field changed. */
  isSentAgain: boolean
  fault: LinkFault | undefined
}

export type CrashPlan = {
  /** Instance 0 or 1. */
  instance: 0 | 1
  during: 'create' | 'pay' | 'refund' | 'jobs'
  /** Number of statements and calls that the instance still completes. */
  edges: number
  /** Whether the last one takes effect although its result is lost. */
  takesEffect: boolean
}

export type OrderPlan = {
  number: number
  merchant: number
  /** Milliseconds after the world's beginning. */
  at: number
  paise: number
  linkFault: LinkFault | undefined
  attempts: Attempt[]
  /** Times at which the merchant checks the status, in seconds after the creation. */
  polls: number[]
  cancelAfter: number | undefined
  refunds: RefundPlan[]
  dispute: { afterDays: number; verdict: 'won' | 'lost'; verdictAfterDays: number } | undefined
  /** Whether the acquirer pays this payment out one bank day later. */
  isSettledLate: boolean
  /** How the operator ends a late payment. */
  isLateKept: boolean
  crash: CrashPlan | undefined
}

export type Plan = { seed: number; days: number; merchants: MerchantPlan[]; orders: OrderPlan[] }

export const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

type Random = ReturnType<typeof randomOf>

/** Draws from the generator of one merchant or order. */
function randomOf(seed: number, kind: number, number: number) {
  const next = seeded((seed * 1_000_003 + kind * 7_919 + number * 104_729) | 0)
  // The first numbers of neighbouring seeds are alike.
  next()
  next()
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    chance: (share: number) => next() < share,
    pick: <T>(all: readonly T[]) => all[below(all.length)] as T,
  }
}

/** `ordersOfDay` is the mean number of orders of all merchants. */
export function planOf({ seed, days, ordersOfDay = 8 }: { seed: number; days: number; ordersOfDay?: number }): Plan {
  const merchants = ACCOUNTS.map((account, number) => merchantOf(account, number, randomOf(seed, 1, number), days))
  const orders = Array.from({ length: days * ordersOfDay }, (_, number) =>
    orderOf(number, Math.floor(number / ordersOfDay), merchants, randomOf(seed, 2, number)),
  )
  return { seed, days, merchants, orders }
}

const FORMS: readonly Form[] = ['rows', 'totals', 'parts', 'pulled']
const FOUND = ['same day', 'next day', 'beside a close', undefined] as const

function merchantOf(account: Account, number: number, random: Random, days: number): MerchantPlan {
  const others = ACCOUNTS.filter((one) => one !== account && one !== 'direct')
  const down = Array.from({ length: Math.ceil(days / 10) }, () => {
    const from = random.below(days * DAY_MS)
    return { from, to: from + (1 + random.below(8)) * HOUR_MS }
  })
  return {
    ...{ number, account, down, hasKeys: random.chance(0.5), form: random.pick(FORMS) },
    fallback: account !== 'direct' && random.chance(0.6) ? random.pick(others) : undefined,
  }
}

const LINK_FAULTS: readonly LinkFault[] = [
  ...[{ status: 503 }, { status: 400 }, 'sent twice', 'no response', 'half a body', 'no JSON', 'no fields'],
  ...(['wrong amount', 'wrong payee'] as const),
] as const
const CHECK_FAULTS: readonly LinkFault[] = [{ status: 503 }, 'no response', 'no JSON', 'no fields']

function orderOf(number: number, day: number, merchants: MerchantPlan[], random: Random): OrderPlan {
  const merchant = random.below(merchants.length)
  const isDirect = merchants[merchant]?.account === 'direct'
  // Between 07:00 and 22:00 in India, so that a payment has one day whatever the time of its report.
  const at = day * DAY_MS + 7 * HOUR_MS + random.below(15 * HOUR_MS)
  const attempts = attemptsOf(random, isDirect)
  const isPaid = attempts.some(({ outcome }) => outcome === 'success')
  return {
    ...{ number, merchant, at, attempts, paise: 100 * (1 + random.below(10_000)) },
    linkFault: random.chance(0.12) ? random.pick(LINK_FAULTS) : undefined,
    polls: Array.from({ length: random.below(4) }, () => random.below(2_400)),
    cancelAfter: random.chance(0.1) ? random.below(1_500) : undefined,
    refunds: isPaid && random.chance(0.3) ? refundsOf(random) : [],
    dispute: isPaid && random.chance(0.12) ? disputeOf(random) : undefined,
    ...{ isSettledLate: random.chance(0.1), isLateKept: random.chance(0.5) },
    crash: random.chance(0.12) ? crashOf(random) : undefined,
  }
}

function attemptsOf(random: Random, isDirect: boolean): Attempt[] {
  const when = (from: number, to: number) => from + random.below(to - from)
  const attempt = (after: number, outcome: Attempt['outcome'], changes: Partial<Attempt> = {}): Attempt => {
    const faults: Attempt['faults'] = {}
    for (const fault of ['repeated', 'reordered', 'late', 'forged', 'contradicted'] as const)
      if (random.chance(0.07)) faults[fault] = 1
    if (random.chance(0.15)) faults.lost = 1
    const checkFault = random.chance(0.1) ? random.pick(CHECK_FAULTS) : undefined
    const hasLateReference = !isDirect && random.chance(0.1)
    const rare = { otherAmount: false, isTyped: false, found: undefined, hasLateReference }
    return { after, outcome, ...rare, faults, checkFault, ...changes }
  }
  const inTime = when(10, 800)
  switch (random.below(12)) {
    case 0:
      return []
    case 1:
      return [attempt(inTime, 'failed')]
    case 2:
      return [attempt(inTime, 'failed'), attempt(inTime + when(5, 90), 'success')]
    case 3:
      return [attempt(inTime, 'pending'), attempt(inTime + when(5, 3_000), 'success')]
    case 4:
      return [attempt(when(900, 6_000), 'success')]
    case 5:
      return [attempt(inTime, 'success'), attempt(inTime + when(1, 1_200), 'success')]
    case 6:
      return isDirect ? [attempt(inTime, 'success', { otherAmount: true })] : [attempt(inTime, 'pending')]
    case 7:
    case 8:
      return [attempt(inTime, 'success', isDirect ? { isTyped: true, found: random.pick(FOUND) } : {})]
    default:
      return [attempt(inTime, 'success')]
  }
}

function refundsOf(random: Random): RefundPlan[] {
  const shares = random.pick([[1], [1], [0.5], [0.3, 0.3], [0.6, 0.6]])
  return shares.map((share) => ({
    ...{ share, after: random.below(72), isSentAgain: random.chance(0.15) },
    fault: random.chance(0.2) ? random.pick(CHECK_FAULTS) : undefined,
  }))
}

const disputeOf = (random: Random) => ({
  afterDays: 1 + random.below(6),
  verdict: random.pick(['won', 'won', 'lost'] as const),
  verdictAfterDays: 2 + random.below(8),
})

const crashOf = (random: Random): CrashPlan => ({
  ...{ instance: random.pick([0, 1] as const), during: random.pick(['create', 'pay', 'refund', 'jobs'] as const) },
  ...{ edges: random.below(14), takesEffect: random.chance(0.5) },
})
