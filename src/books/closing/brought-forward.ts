import { toSafeInteger } from '../../platform/db/number-types.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { startOfDay } from '../../platform/time.ts'
import { addDays } from '../ledger/bank-days.ts'
import { type Discrepancy, resolverOf } from '../ledger/discrepancies.ts'
import { judgeExplained, undeductedOf } from '../ledger/judge.ts'
import { type PayoutName, payoutOf } from '../ledger/judge-payouts.ts'
import { readEntries } from '../reading/book.ts'
import { itemsOf, type MerchantSnapshot } from '../reading/merchant.ts'
import { readForms } from '../reading/payout-forms.ts'
import { AS_KNOWN } from '../reading/snapshot.ts'
import type { ClosedBase } from './closed-items.ts'

/**
 * Balances in paise by acquirer account, and their sum. `explained` is the money of discrepancies that a resolved exception
 * explains, which no movement records: the movements add up to the balances and this money.
 */
export type Balances = {
  sum: Paise
  accounts: ReadonlyMap<string, Paise>
  explained: readonly OfAccount[]
}

type OfAccount = Discrepancy & { account: string }

/**
 * Returns the acquirers' debts to the merchant before `day`. With `closed`, continues from the closed month instead of
 * reading all earlier movements.
 */
export async function balancesBefore(merchant: MerchantSnapshot, day: string, closed?: ClosedBase): Promise<Balances> {
  const { client, mid, known } = merchant
  const base = closed !== undefined && closed.to < day ? closed : undefined
  const begin = base && startOfDay(addDays(base.to, 1))
  const moved = await SUMS(client, { mid, known, begin, end: startOfDay(day) })
  const accounts = new Map(moved.map(({ account, sum }) => [account, sum]))
  const add = (account: string, amount: Paise) => accounts.set(account, addPaise(accounts.get(account) ?? 0, amount))
  for (const { account, sum } of base?.sums.get(mid) ?? []) add(account, toSafeInteger(sum))
  const explained = await withAccounts(merchant, await readExplained(merchant, day))
  for (const { account, owed } of explained) add(account, -owed)
  const open = [...accounts].filter(([, balance]) => balance !== 0).sort(([a], [b]) => (a < b ? -1 : 1))
  return { sum: [...accounts.values()].reduce(addPaise, 0), accounts: new Map(open), explained }
}

/** Returns the discrepancies before `day` that a resolved exception explains. */
export async function readExplained(merchant: MerchantSnapshot, day: string): Promise<Discrepancy[]> {
  const { client, mid, known } = merchant
  const utrs = explainedUtrs(merchant)
  if (utrs.length === 0) return []
  const explained: Discrepancy[] = []
  const { resolve } = resolverOf(
    mid,
    await readEntries(client, { mid, known, from: '2000-01-01', to: addDays(day, -1) }),
  )
  const forms = await readForms(merchant, refundedFailures(merchant))
  for await (const items of itemsOf(merchant, utrs)) {
    const found = resolve(judgeExplained(merchant, forms, items))
    explained.push(...found.filter((one) => one.resolution !== null && one.day < day))
  }
  return explained
}

/** Returns the discrepancies with the acquirer account of each: that of its payment, otherwise of its settlement line. */
export async function withAccounts(
  { client, mid, known }: MerchantSnapshot,
  discrepancies: readonly Discrepancy[],
): Promise<OfAccount[]> {
  const utrs = discrepancies.map(({ utr }) => utr ?? '')
  const found = utrs.length === 0 ? [] : await ACCOUNTS(client, { mid, known, utrs })
  const accounts = new Map(found.map(({ item, account }) => [item, account]))
  return discrepancies.map((one) => ({ ...one, account: accounts.get(one.utr ?? '') ?? 'unknown' }))
}

const ACCOUNTS = plannedQuery<
  { item: string; account: string },
  { mid: string; known: Date; utrs: readonly string[] }
>(`
  select item, (array_agg(account order by kind not in ('payment', 'second'), at, account collate "C"))[1] as account
    from ledger
   where mid = :mid and item = any (:utrs) and kind <> 'resolution' and ${AS_KNOWN}
   group by item`)

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

const SUMS = query<{ account: string; sum: Paise }, { mid: string; known: Date; begin: Date | undefined; end: Date }>(`
  select account, sum(amount_paise)::bigint as sum
    from ledger
   where mid = :mid and at >= coalesce(:begin::timestamptz, '-infinity') and at < :end
     and ${AS_KNOWN}
   group by account`)
