import { toSafeInteger } from '../../platform/db/number-types.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { startOfDay } from '../../platform/time.ts'
import { addDays } from '../ledger/bank-days.ts'
import { resolverOf } from '../ledger/discrepancies.ts'
import { type PayoutName, payoutOf } from '../ledger/judge-payouts.ts'
import { readEntries } from './book.ts'
import type { ClosedBase } from './closed-items.ts'
import { judgeExplained, undeductedOf } from './judge.ts'
import { itemsOf, type MerchantSnapshot } from './merchant.ts'
import { readForms } from './payout-forms.ts'

/**
 * Returns the bank's debt to the merchant before `day`, in paise. With `closed`, continues from the closed month instead
 * of reading all earlier movements.
 */
export const broughtForward = async (merchant: MerchantSnapshot, day: string, closed?: ClosedBase): Promise<Paise> =>
  (await balanceBefore(merchant, day, closed)).sum

/**
 * Returns `broughtForward` as `sum`. The sum of all earlier movements is reduced by discrepancies that a resolved exception
 * explains, because no movement records these discrepancies; `explained` has their sum of each UTR.
 */
export async function balanceBefore(merchant: MerchantSnapshot, day: string, closed: ClosedBase | undefined) {
  const { client, mid, known } = merchant
  const base = closed !== undefined && closed.to < day ? closed : undefined
  const begin = base && startOfDay(addDays(base.to, 1))
  const [moved] = await SUM(client, { mid, known, begin, end: startOfDay(day) })
  const sum = addPaise(moved?.sum ?? 0, toSafeInteger(base?.sums.get(mid) ?? '0'))
  const explained = new Map<string, Paise>()
  const utrs = explainedUtrs(merchant)
  if (utrs.length === 0) return { sum, explained }
  const { resolve } = resolverOf(
    mid,
    await readEntries(client, { mid, known, from: '2000-01-01', to: addDays(day, -1) }),
  )
  const forms = await readForms(merchant, refundedFailures(merchant))
  for await (const items of itemsOf(merchant, utrs)) {
    for (const one of resolve(judgeExplained(merchant, forms, items))) {
      const utr = one.utr ?? ''
      if (one.resolution !== null && one.day < day) explained.set(utr, addPaise(explained.get(utr) ?? 0, one.owed))
    }
  }
  return { sum: [...explained.values()].reduce((left, owed) => left - owed, sum), explained }
}

/** Returns the payouts of payments that failed after their success and were refunded, whose forms place the refunds. */
function refundedFailures(merchant: MerchantSnapshot): PayoutName[] {
  const { failed, namedSince, bankDays } = merchant
  const refunded = new Set(failed.length === 0 ? [] : undeductedOf(merchant).map(({ utr }) => utr))
  return failed
    .filter(({ utr }) => refunded.has(utr))
    .map(({ acquirer, day }) => payoutOf({ acquirer, day: bankDays.nextBankDay(day) }, namedSince))
}

/** Returns the UTRs of money that a resolved exception explains. */
function explainedUtrs({ exceptions, failed, unknownOrders }: MerchantSnapshot): string[] {
  const resolved = exceptions.filter(({ kind, resolution }) => kind !== 'failure after success' && resolution !== null)
  const ofUnknown = unknownOrders.filter(({ isPaidOut, resolution }) => isPaidOut && resolution !== null)
  return [...new Set([...resolved, ...failed, ...ofUnknown].map(({ utr }) => utr))]
}

const SUM = query<{ sum: Paise }, { mid: string; known: Date; begin: Date | undefined; end: Date }>(`
  select coalesce(sum(amount_paise), 0)::bigint as sum
    from ledger
   where mid = :mid and at >= coalesce(:begin::timestamptz, '-infinity') and at < :end
     and (recorded_at <= :known) is true and replaced_at > :known`)
