import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import { type Discrepancy, type DiscrepancyKind, type Entry, inOrder, resolverOf } from '../ledger/discrepancies.ts'
import { type FileForm, type JudgedDays, judge, sumsAt } from '../ledger/judge.ts'
import { addResolved, type Sums } from '../ledger/sums.ts'
import { readFacts, type Uneven } from './facts.ts'
import { itemsOf, type MerchantSnapshot } from './merchant.ts'

/**
 * Largest number of items or discrepancies listed for one merchant, so that a missing settlement file cannot exhaust
 * memory.
 */
const MOST_LISTED = 100_000
const LISTED_OF_MANY = 1_000

/**
 * Discrepancies of one kind that are not listed: their number, and the amount in paise that the bank owes because of
 * these discrepancies.
 */
export type Unlisted = { kind: DiscrepancyKind; count: number; owed: Paise }

/**
 * The reconciliation of one merchant for a period: the sums of each day with movements, and the discrepancies in date
 * order.
 */
export type Book = {
  form: FileForm
  byDay: Map<string, Sums>
  discrepancies: Discrepancy[]
  unlisted: Unlisted[]
}

export async function readBook(merchant: MerchantSnapshot, days: Days): Promise<Book> {
  const list = createList()
  const { form, byDay } = await judgeDays(merchant, days, list.add)
  return { form, byDay, ...list.end() }
}

/** Receives discrepancies in batches. `items` is the number of items being judged. */
type OnFound = (found: readonly Discrepancy[], items: number) => void

/**
 * Judges these days of a merchant and passes the discrepancies to `onFound` in batches. `onFound` decides how many
 * discrepancies remain in memory.
 */
export async function judgeDays(
  merchant: MerchantSnapshot,
  days: Days,
  onFound: OnFound,
): Promise<Pick<JudgedDays, 'form' | 'byDay'>> {
  const { client, mid, known } = merchant
  const { facts, uneven, settledLater } = await readFacts(merchant, days)
  const judged = judge(facts)
  const entries = await readEntries(client, { ...days, mid, known })
  const resolver = resolverOf(mid, entries)
  const { form, byDay } = judged
  for (const { day, amount } of entries) addResolved(sumsAt(byDay, day), amount)
  const report = (found: readonly Discrepancy[]) => {
    for (const { day, resolution, owed } of found) {
      if (resolution === null) sumsAt(byDay, day).differences += 1
      // The operator has resolved the exception that explains the discrepancy. This resolution also covers the amount
      // that no entry covers.
      else addResolved(sumsAt(byDay, day), -owed)
    }
    onFound(found, utrs.length)
  }
  const utrs = utrsToJudge(uneven, judged, { failed: facts.failed, settledLater })
  report(resolver.resolve(judged.findings))
  for await (const items of itemsOf(merchant, utrs)) report(resolver.resolve(judged.judgeItems(items)))
  report(resolver.remaining())
  return { form, byDay }
}

/** Returns, in date order, the UTRs of the items that may have discrepancies. */
function utrsToJudge(
  uneven: readonly Uneven[],
  { isMissed }: JudgedDays,
  { failed, settledLater }: { failed: readonly { utr: string }[]; settledLater: ReadonlySet<string> },
): string[] {
  const isFailed = new Set(failed.map(({ utr }) => utr))
  return [...uneven]
    .sort((a, b) => (a.day < b.day ? -1 : 1))
    .flatMap(({ items, isWaiting, ...of }) => {
      if (!isWaiting) return items.split(' ')
      const isDoubtful = isMissed(of) ? (utr: string) => !settledLater.has(utr) : (utr: string) => isFailed.has(utr)
      return items.split(' ').filter(isDoubtful)
    })
}

/** Creates a list that stores discrepancies up to a limit and only counts the others. */
export function createList() {
  const discrepancies: Discrepancy[] = []
  const unlisted = new Map<DiscrepancyKind, Unlisted>()
  const count = ({ kind, owed, resolution }: Discrepancy) => {
    if (resolution !== null) return
    const { count, owed: sum } = unlisted.get(kind) ?? { count: 0, owed: 0 }
    unlisted.set(kind, { kind, count: count + 1, owed: addPaise(sum, owed) })
  }
  return {
    add(found: readonly Discrepancy[], items: number): void {
      const most = items > MOST_LISTED ? LISTED_OF_MANY : MOST_LISTED
      for (const one of found) {
        if (discrepancies.length < most) discrepancies.push(one)
        else count(one)
      }
    },
    end: () => ({ discrepancies: discrepancies.sort(inOrder), unlisted: [...unlisted.values()] }),
  }
}

/** Reads the entries that resolve discrepancies dated on these days. */
export const readEntries = query<Entry, Days & { mid: string; known: Date }>(`
  select difference_id, day, kind, order_id, utr, settlement_utr, amount_paise as amount, reason
    from difference_resolutions
   where mid = :mid and resolved_at <= :known and day between :from::date and :to::date and kind <> 'short payout'
   order by day, difference_id, entry`)
