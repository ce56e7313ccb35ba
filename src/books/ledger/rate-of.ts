import { splitAccountName } from '../../gateway/acquirers/accounts.ts'
import { INSTRUMENTS, type Instrument } from '../../gateway/payments/instrument.ts'
import type { Paise } from '../../platform/money.ts'

/** The payments to which a contract rate applies. */
type RateName = {
  /** An acquirer such as `setu`, or one of its accounts such as `setu:acme`. */
  acquirer: string
  /** Null for payments by any instrument. */
  instrument: Instrument | null
  /** For payments above this amount. */
  above: Paise
}

/**
 * What an acquirer may deduct from a payment by contract, from the IST day `since` on. `percent` and `tax` are decimal
 * text; all three values are null if the rate ends on this day.
 */
export type Rate = RateName & { since: string; percent: string | null; flat: Paise | null; tax: string | null }

/** The facts of a payment that decide its rate. `day` is its IST day. */
type RatedPayment = { account: string; instrument: Instrument | null; amount: Paise; day: string }

export const hasSameName = (a: RateName, b: RateName) =>
  a.acquirer === b.acquirer && a.instrument === b.instrument && a.above === b.above

/** Returns the newest rate of each name, without those that have ended. */
export const newestOf = <R extends Rate>(rates: readonly R[]): R[] =>
  rates.filter(
    (rate) => rate.percent !== null && !rates.some((other) => hasSameName(other, rate) && other.since > rate.since),
  )

/**
 * Returns the rate that applies to a payment; undefined if none does. Each name has its newest rate of the payment's day
 * or before. Among the names, an account precedes its acquirer, then an instrument precedes any, then the highest amount
 * precedes the others.
 */
export function rateOf<R extends Rate>(
  { account, instrument, amount, day }: RatedPayment,
  rates: readonly R[],
): R | undefined {
  const named = rates.filter(
    (rate) =>
      [account, splitAccountName(account).acquirer].includes(rate.acquirer) &&
      [instrument, null].includes(rate.instrument) &&
      rate.above < amount &&
      rate.since <= day,
  )
  const weight = (rate: Rate) => (rate.acquirer === account ? 2 : 0) + (rate.instrument === null ? 0 : 1)
  return newestOf(named).sort((a, b) => weight(b) - weight(a) || b.above - a.above)[0]
}

/** A rate with the payments to which it applies: above `above` up to `upTo`, since `since` and before `until`. */
type RateBand = Rate & Pick<RatedPayment, 'account'> & { upTo: Paise | null; until: string | null }

/**
 * Returns the rates of all payments as disjoint bands, which a statement can join. An account that no rate names has the
 * bands of its acquirer.
 */
export function bandsOf(rates: readonly Rate[]): RateBand[] {
  const sorted = <T>(values: readonly T[]) => [...new Set(values)].sort((a, b) => (a < b ? -1 : 1))
  const accounts = sorted(rates.map((rate) => rate.acquirer))
  const aboves = sorted(rates.map((rate) => rate.above))
  const days = sorted(rates.map((rate) => rate.since))
  const names = accounts.flatMap((account) => [...INSTRUMENTS, null].map((instrument) => ({ account, instrument })))
  return names.flatMap((name) =>
    aboves.flatMap((above, at) =>
      days.flatMap((since, on) => {
        const rate = rateOf({ ...name, amount: above + 1, day: since }, rates)
        return rate
          ? [{ ...rate, ...name, above, upTo: aboves[at + 1] ?? null, since, until: days[on + 1] ?? null }]
          : []
      }),
    ),
  )
}
