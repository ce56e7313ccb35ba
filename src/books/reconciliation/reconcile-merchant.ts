import { type Paise, toDecimalText } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import { type Difference, differenceId, owedBy, type Unnamed } from '../ledger/differences.ts'
import { type Judging, judgeItem, type PayoutForm } from '../ledger/judge-item.ts'
import { daysOfPayouts, type JudgedPayout, judgePayouts } from '../ledger/judge-payouts.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { readItems } from '../ledger/read-items.ts'
import type { Ledger, UnevenItem } from '../ledger/read-ledger.ts'
import { compareSums } from './compare-sums.ts'
import { type WithMerchantOrderId, withMerchantOrderIds } from './merchant-order-ids.ts'
import { type Entry, type OpenException, openExceptions, readEntries } from './read-open.ts'
import { addResolved, addSums, type Balance, carriedBy, noSums, type Sums, type Totals, totalsFrom } from './sums.ts'

type FileForm = PayoutForm | 'by payment and by sums'

/** What the books say of one merchant, in this order. */
export type MerchantFinding =
  /** Exceptions of no known order come under an empty `mid`. */
  | { type: 'merchant'; mid: string; file: FileForm }
  | ({ type: 'difference' } & WithMerchantOrderId<Difference>)
  | ({ type: 'exception' } & WithMerchantOrderId<OpenException>)
  | ({ type: 'day'; mid: string; day: string } & Sums & Balance)
  | { type: 'total'; mid: string; sums: Totals }

/**
 * What the books of one merchant say of these days. Nothing is yielded for a merchant with nothing to report. The day of
 * `ledger.known` and later ones are not judged: the bank may still pay.
 */
export async function* reconcileMerchant(ledger: Ledger, days: Days): AsyncGenerator<MerchantFinding> {
  const { mid } = ledger
  const brought = await broughtForward(ledger, days.from)
  const { byDay, found, file } = await readBooks(ledger, days)
  const merchant = { type: 'merchant', mid, file } as const
  const total = totalsFrom(brought)
  let told = false
  const findings = eachOf(found, openExceptions(ledger, days))
  for await (const finding of withMerchantOrderIds(ledger, findings)) {
    if (!told) yield merchant
    told = true
    if (finding.type === 'exception') total.openExceptions += 1
    else if (finding.type === 'difference' && finding.resolution === null) at(byDay, finding.day).differences += 1
    // What no entry has ended was accounted for by the resolution of its exception.
    else if (finding.type === 'difference') addResolved(at(byDay, finding.day), -finding.owed)
    yield finding
  }
  if (!told && byDay.size === 0 && brought === 0) return
  if (!told) yield merchant
  for (const [day, daySums] of [...byDay].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const carried = carriedBy(total.carried, daySums)
    addSums(total, daySums)
    yield { type: 'day', mid, day, ...daySums, brought: total.carried, carried }
    total.carried = carried
  }
  yield { type: 'total', mid, sums: total }
}

/** The differences of these days, by the order of their days. */
export async function* differencesOfDays(ledger: Ledger, days: Days): AsyncGenerator<Difference> {
  const { found } = await readBooks(ledger, days)
  yield* found
}

/** The sums of each day that has any, and the differences in the order of their days. */
async function readBooks(ledger: Ledger, days: Days) {
  const { bankDays } = ledger
  const window = daysOfPayouts(days, bankDays)
  const { refunds, ...matched } = await ledger.matched()
  const entries = await readEntries(ledger, days)
  const { paid, settled, items } = await ledger.readDays(window, days)
  const counted = refunds.filter(({ isOfSecond }) => !isOfSecond)
  const undeducted = counted.filter(({ refundId }) => !matched.rowOf.has(refundId) && !matched.netted.has(refundId))
  const facts = await factsWithin(ledger, { paid, settled, undeducted }, { after: window.from, to: window.to })
  const judged = judgePayouts(facts, bankDays)
  const judging = { ...matched, ...bankDays, ...judged, isJudged: isJudgedBy(ledger) }
  const byDay = new Map<string, Sums>()
  const isAsked = ({ day }: { day: string }) => day >= days.from && day <= days.to
  // A payment is awaited, too, if its payout is due after the reported days: a later report judges that payout.
  const isAwaited = (account: string | null, due: string, day: string) =>
    due > days.to || !judging.isJudged(day) || judging.formOf(account, due) === 'by payment'
  for (const { day, settledDay, account, count, paid: sum } of paid.filter(isAsked)) {
    const sums = at(byDay, day)
    sums.paidCount += count
    sums.paid += sum
    if (settledDay === null && isAwaited(account, bankDays.nextBankDay(day), day)) sums.awaited += sum
  }
  // Nothing is awaited of what went back before it was settled.
  for (const { paidOn: day, account, amount, settled: row } of undeducted) {
    if (isAsked({ day }) && row === null && isAwaited(account, bankDays.nextBankDay(day), day))
      at(byDay, day).awaited -= amount
  }
  for (const { day, settledCount, gross, fee, tax, net } of settled.filter(isAsked)) {
    const sums = at(byDay, day)
    addSums(sums, { ...noSums(), settledCount, gross, fee, tax, net })
  }
  for (const { day, amount } of counted.filter(isAsked)) at(byDay, day).refunded += amount
  for (const { day, amount } of entries) addResolved(at(byDay, day), amount)
  const sums = await compareSums(ledger, judged.payouts, undeducted, days)
  const found = inOrderOfDays(sums, judgeEach(ledger, items, judging), days)
  return { byDay, found: nameEach(ledger.mid, found, entries), file: formsOf(judged.payouts, days, bankDays) }
}

/** The sums of a day, which begin with nothing. */
function at(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}

/** A day is judged after the bank day on which its payments are paid out. */
const isJudgedBy = ({ known, bankDays }: Ledger) => {
  const today = toIstDay(known)
  return (day: string) => bankDays.nextBankDay(day) < today
}

type PayoutFacts = Parameters<typeof judgePayouts>[0]

/** The facts that decide the payouts of the bank days after `after` and until `to`, without payments whose failure was resolved. */
async function factsWithin(ledger: Ledger, facts: PayoutFacts, { after, to }: { after: string; to: string }) {
  const failed = (await ledger.failedPayments()).map(({ account, day, amount }) => {
    return { account, day, settledDay: null, count: -1, paid: -amount }
  })
  const within = <T extends { day: string }>(all: readonly T[]) => all.filter(({ day }) => day >= after && day <= to)
  return {
    paid: within([...facts.paid, ...failed]),
    // The payout of the day `after` itself is for payments before it.
    settled: within(facts.settled).filter(({ day }) => day > after),
    undeducted: within(facts.undeducted),
  }
}

async function* judgeEach(
  ledger: Ledger,
  batches: AsyncIterable<UnevenItem[]>,
  judging: Judging,
): AsyncGenerator<{ differences: Unnamed[]; until: string }> {
  const failed = new Set((await ledger.failedPayments()).map(({ utr }) => utr))
  const isJudged = ({ utr, day, waitsOn }: UnevenItem) => {
    if (waitsOn === undefined || failed.has(utr)) return true
    return judging.isJudged(day) && judging.formOf(waitsOn, judging.nextBankDay(day)) === 'by payment'
  }
  for await (const uneven of batches) {
    const utrs = uneven.filter(isJudged).map(({ utr }) => utr)
    const items = utrs.length === 0 ? [] : await readItems(ledger, utrs)
    const differences = items.flatMap((item) => judgeItem(item, judging))
    yield { differences, until: (uneven.at(-1) as UnevenItem).day }
  }
}

/** Differences of the days, in the order of their days. Items come in that order too, but a row of one may be of a later day. */
async function* inOrderOfDays(
  sums: readonly Unnamed[],
  judged: AsyncIterable<{ differences: Unnamed[]; until: string }>,
  { from, to }: Days,
): AsyncGenerator<Unnamed> {
  let held = [...sums]
  for await (const { differences, until } of judged) {
    held.push(...differences.filter(({ day }) => day >= from && day <= to))
    held.sort(byDayAndKind)
    const next = held.findIndex(({ day }) => day >= until)
    yield* next < 0 ? held : held.slice(0, next)
    held = next < 0 ? [] : held.slice(next)
  }
  yield* held.sort(byDayAndKind)
}

const byDayAndKind = (a: Unnamed, b: Unnamed) => (placeOf(a) < placeOf(b) ? -1 : 1)
// An absent name comes last, as PostgreSQL sorts it.
const placeOf = ({ day, kind, orderId, settlementUtr }: Unnamed) =>
  [day, kind, orderId ?? '~', settlementUtr ?? '~'].join('\n')

/**
 * Names each difference, and says how a person has ended it. One that has changed since, or is none any more, is open
 * again with what remains, since an entry is never taken back.
 */
async function* nameEach(
  mid: string,
  found: AsyncIterable<Unnamed>,
  entries: readonly Entry[],
): AsyncGenerator<Difference> {
  const entered = groupBy(entries, ({ differenceId }) => differenceId)
  for await (const one of found) {
    yield* goneBefore(one.day)
    const difference = withName(one)
    yield endedBy(entered.get(difference.id), difference)
    entered.delete(difference.id)
  }
  yield* goneBefore('9999-12-31')

  function* goneBefore(next: string): Generator<Difference> {
    for (const [id, ended] of entered) {
      const { day, kind, orderId, utr, settlementUtr } = ended[0] as Entry
      if (day >= next) return
      entered.delete(id)
      const nothing = { paid: null, settled: null, owed: 0, exceptionId: null, resolution: null, entries: 0 }
      const gone = {
        id,
        mid,
        day,
        kind,
        orderId,
        utr,
        settlementUtr,
        ...nothing,
        cause: 'it is no difference any more',
      }
      const left = endedBy(ended, gone)
      if (left.resolution === null) yield left
    }
  }
}

const withName = (one: Unnamed): Difference => ({ ...one, id: differenceId(one), owed: owedBy(one), entries: 0 })

function endedBy(entries: readonly Entry[] = [], difference: Difference): Difference {
  const last = entries.at(-1)
  if (last === undefined) return difference
  const ended = entries.reduce((sum, { amount }) => sum + amount, 0)
  const owed = difference.owed + ended
  const known = { ...difference, owed, entries: entries.length }
  if (owed === 0) return { ...known, resolution: last.reason }
  const before = `${toDecimalText(-ended)} of it was resolved: ${last.reason}`
  return { ...known, cause: `${difference.cause}; ${before}` }
}

/**
 * What the bank owes the merchant before `day`: all movements until then, less the differences that the resolution of an exception
 * accounts for, which is no movement.
 */
export async function broughtForward(ledger: Ledger, day: string): Promise<Paise> {
  const sum = await ledger.sumBefore(day)
  const { ofUtr } = await ledger.exceptions()
  const { refundsOf, ...matched } = await ledger.matched()
  const resolved = [
    ...[...ofUtr.values()].filter(({ resolution }) => resolution !== null),
    ...(await ledger.failedPayments()),
  ].map(({ utr }) => utr)
  const ofSecond = [...refundsOf.values()].flat().filter(({ isOfSecond }) => isOfSecond)
  // A row that carries a refund's reference alone is an item of its own.
  const deducted = ofSecond.flatMap(({ refundId }) => matched.rowOf.get(refundId)?.item ?? [])
  const ofNoOrder = [...ledger.noOrder.values()].filter(({ isPaidOut, resolution }) => isPaidOut && resolution !== null)
  const utrs = [...new Set([...resolved, ...deducted, ...ofNoOrder.map(({ utr }) => utr)])]
  if (utrs.length === 0) return sum
  const judging = { ...matched, refundsOf, ...ledger.bankDays, isJudged: isJudgedBy(ledger), ...UNKNOWN_PAYOUTS }
  const explained: Difference[] = []
  for (let at = 0; at < utrs.length; at += ITEMS_READ) {
    const items = await readItems(ledger, utrs.slice(at, at + ITEMS_READ))
    const differences = items.flatMap((item) => judgeItem(item, judging))
    explained.push(...differences.filter((one) => one.resolution !== null && one.day < day).map(withName))
  }
  if (explained.length === 0) return sum
  const entries = groupBy(
    await readEntries(ledger, { from: '2000-01-01', to: addDays(day, -1) }),
    ({ differenceId }) => differenceId,
  )
  return explained.reduce((left, one) => left - endedBy(entries.get(one.id), one).owed, sum)
}

/** What the resolution of an exception accounts for is the same whatever the form of the payout. */
const UNKNOWN_PAYOUTS: Pick<Judging, 'formOf'> = { formOf: () => 'by sums' }
/** Items that are read at once. */
const ITEMS_READ = 1_000

function formsOf(payouts: readonly JudgedPayout[], { from, to }: Days, { nextBankDay }: BankDays): FileForm {
  const asked = payouts.filter(({ day }) => day >= from && day <= nextBankDay(to))
  const [first = 'by sums', ...others] = new Set(asked.map(({ form }) => form))
  return others.length > 0 ? 'by payment and by sums' : first
}

async function* eachOf(
  differences: AsyncIterable<Difference>,
  exceptions: AsyncIterable<OpenException>,
): AsyncGenerator<({ type: 'difference' } & Difference) | ({ type: 'exception' } & OpenException)> {
  for await (const difference of differences) yield { type: 'difference', ...difference }
  for await (const exception of exceptions) yield { type: 'exception', ...exception }
}
