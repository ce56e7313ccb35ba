import { balancesBefore } from '../../src/books/closing/brought-forward.ts'
import type { ClosedBase } from '../../src/books/closing/closed-items.ts'
import { findOpen } from '../../src/books/closing/open-discrepancies.ts'
import { type Discrepancy, inOrder } from '../../src/books/ledger/discrepancies.ts'
import { readMerchant } from '../../src/books/reading/merchant.ts'
import type { Snapshot } from '../../src/books/reading/snapshot.ts'

/**
 * Returns the open discrepancies at the end of a day and the balances brought forward, by merchant, reading only what follows
 * `closed`.
 */
export async function readSince(snapshot: Snapshot, mids: readonly string[], to: string, closed?: ClosedBase) {
  const open: Discrepancy[] = []
  const sums: Record<string, number> = {}
  const accounts: Record<string, ReadonlyMap<string, number>> = {}
  for (const mid of mids) {
    const merchant = await readMerchant(snapshot, mid)
    await findOpen(merchant, { closed, to }, (found) => open.push(...found))
    const balances = await balancesBefore(merchant, to, closed)
    sums[mid] = balances.sum
    accounts[mid] = balances.accounts
  }
  return { open: open.sort(inOrder), sums, accounts }
}
