import { addPaise, type Paise } from '../../platform/money.ts'
import { aroundOf, readRests } from '../reading/rests.ts'
import type { Snapshot } from '../reading/snapshot.ts'
import type { Credit } from '../statements/match.ts'
import { comparable } from '../statements/references.ts'
import { transfersTo } from './arrivals.ts'

/**
 * A payout that a credit may match. `expected` is the payout's amount in paise. `others` lists references of other
 * payouts that the credit names or is matched with.
 */
type MatchingPayout = { expected: Paise; others: string[] }

/**
 * Returns the payout that has this reference and is paid into the credit's bank account, or undefined if no payout
 * within 31 days has this reference.
 */
export async function findPayout(
  snapshot: Snapshot,
  { day, references, matchedPayout, matchedElsewhere, ...account }: Credit,
  payout: string,
): Promise<MatchingPayout | undefined> {
  const days = aroundOf({ from: day, to: day })
  const transfers = await transfersTo(snapshot, account, days, await readRests(snapshot, { days }))
  const isMeant = (one: (typeof transfers)[number]) => one.references.includes(comparable(payout))
  const meant = transfers.filter(isMeant)
  if (meant.length === 0) return undefined
  const named = [...references, ...matchedElsewhere, ...(matchedPayout === null ? [] : [matchedPayout])]
  return {
    expected: meant.reduce((sum, { expected }) => addPaise(sum, expected), 0),
    others: transfers
      .filter((one) => !isMeant(one))
      .flatMap((one) => one.references.find((reference) => named.includes(reference)) ?? []),
  }
}
