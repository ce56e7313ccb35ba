import type { Database } from '../../platform/db/pool.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { balancesBefore } from '../closing/brought-forward.ts'
import { readClosedBalances } from '../closing/close.ts'
import { readClosedBase } from '../closing/closed-items.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import { readMerchant } from '../reading/merchant.ts'
import { readSnapshot } from '../reading/snapshot.ts'
import { type Period, type Posting, postingsOf, readPeriods } from './postings.ts'

/** A line in a merchant statement. `balance` is the acquirers' debt after this line, in paise. */
type StatementLine = Omit<Posting, 'kind' | 'account' | 'originalDay'> & {
  kind: Posting['kind'] | 'opening' | 'closing'
  /** The acquirer account; null for the opening and closing balance. */
  account: string | null
  /** The day of a movement that changed after its month was closed; otherwise null. */
  originalDay: string | null
  balance: Paise
}

/** The lines of a statement, and the opening and closing balance of each acquirer account, in paise. */
type Statement = { lines: StatementLine[]; accounts: { account: string; opening: Paise; closing: Paise }[] }

/**
 * Returns the postings between the acquirers and one merchant as a statement. Each balance is the previous balance plus
 * the amount of the line.
 */
export function statementOf(
  db: Database,
  { mid, now, ...days }: Days & { mid: string; now: Date },
): Promise<Statement> {
  return readSnapshot(db, now, async (snapshot) => {
    const periods = await readPeriods(snapshot, days)
    const opening = await openingOf(mid, periods[0] as Period)
    const closing = new Map(opening)
    let balance = [...opening.values()].reduce(addPaise, 0)
    const nothing = { account: null, originalDay: null, orderId: null, merchantOrderId: null, reference: '', amount: 0 }
    const first = { ...nothing, day: days.from, kind: 'opening' as const, balance }
    const postings = await postingsOf(mid, periods)
    const lines = postings.flatMap((posting) => {
      if (posting.kind.endsWith('lost dispute')) return []
      const { account, amount, originalDay = null } = posting
      closing.set(account, addPaise(closing.get(account) ?? 0, amount))
      balance = addPaise(balance, amount)
      return { ...posting, originalDay, balance }
    })
    return {
      lines: [first, ...lines, { ...nothing, day: days.to, kind: 'closing', balance }],
      accounts: [...closing]
        .sort()
        .map(([account, sum]) => ({ account, opening: opening.get(account) ?? 0, closing: sum })),
    }
  })
}

/**
 * Returns the balance of each acquirer account before a period: what the month closed before carries forward, and the
 * postings since.
 */
async function openingOf(mid: string, { days, snapshot, closed, lateOn }: Period): Promise<ReadonlyMap<string, Paise>> {
  const stored = closed && (await readClosedBalances(snapshot.client, { month: closed.month, mid }))
  const balances = new Map(stored?.map(({ account, carriedForward }) => [account, carriedForward]))
  if (closed !== undefined && addDays(closed.to, 1) === days.from) return balances
  const base = await readClosedBase(snapshot, days.from)
  const merchant = await readMerchant(snapshot, mid)
  const known = (await balancesBefore(merchant, days.from, base)).accounts
  if (closed === undefined || lateOn < days.from) return known
  // Changes of the closed month are not posted yet.
  const add = (account: string, amount: Paise) => balances.set(account, addPaise(balances.get(account) ?? 0, amount))
  for (const [account, balance] of known) add(account, balance)
  for (const [account, balance] of (await balancesBefore(merchant, addDays(closed.to, 1), base)).accounts)
    add(account, -balance)
  return balances
}
