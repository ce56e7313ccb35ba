import type { Database, Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { addDays } from '../ledger/bank-days.ts'
import { readMerchant } from '../reading/merchant.ts'
import { isMerchantError, type MerchantError, readMids, readOne, readSnapshot } from '../reading/snapshot.ts'
import { lockSettlements } from '../settlements/imports.ts'
import { type Balances, balancesBefore } from './brought-forward.ts'
import { readClosedBase } from './closed-items.ts'
import { findOpen } from './open-discrepancies.ts'

/**
 * Blocks closes until the end of the transaction. Must be the first lock of the transaction, because a close may wait
 * for a transaction that waits for one of the later locks.
 */
export const blockCloses = (client: Queryable) => client.query('lock table closed_months in row exclusive mode')

/**
 * Waits for imports of settlements and for transactions with `blockCloses`, and blocks both until the end of the
 * transaction. Locks the settlements first: an import may take minutes, in which a payment must not wait.
 */
export async function lockForClose(client: Queryable): Promise<void> {
  await lockSettlements(client)
  await client.query('lock table closed_months in share row exclusive mode')
}

type Item = { item: string; day: string; balance: Paise }

/** A part of a balance that is carried forward, in paise. `explained` is what resolved exceptions explain beside it. */
type AccountBalance = { account: string; balance: Paise; explained: Paise }

/**
 * The balance that a month carries forward for one merchant: each open discrepancy with the remainder of all movements, and
 * the balance of each acquirer account.
 */
export type ClosedItems = { mid: string; items: Item[]; accounts: AccountBalance[] }

/**
 * Returns the balance that all movements until `to` carry forward, merchant by merchant, as known at `closedAt`. Stops at
 * the first merchant that cannot be reconciled, and returns its error.
 */
export function readClosedItems(
  db: Database,
  { to, closedAt }: { to: string; closedAt: Date },
): Promise<ClosedItems[] | MerchantError> {
  return readSnapshot(db, closedAt, async (snapshot) => {
    const all: ClosedItems[] = []
    const closed = await readClosedBase(snapshot, addDays(to, 1))
    for (const mid of await readMids(snapshot.client, {})) {
      const read = await readOne(snapshot, mid, async () => {
        const merchant = await readMerchant(snapshot, mid)
        const items: Item[] = []
        await findOpen(merchant, { closed, to }, (open) => {
          items.push(...open.map(({ id, day, owed }) => ({ item: id, day, balance: owed })))
        })
        const balances = await balancesBefore(merchant, addDays(to, 1), closed)
        const sum = balances.explained.reduce((all, { owed }) => addPaise(all, owed), balances.sum)
        const rest = items.reduce((left, { balance }) => addPaise(left, -balance), sum)
        if (rest !== 0) items.push({ item: '', day: to, balance: rest })
        return { mid, items, accounts: byAccount(balances) }
      })
      if (isMerchantError(read)) return read
      if (read.items.length + read.accounts.length > 0) all.push(read)
    }
    return all
  })
}

const byAccount = ({ accounts, explained }: Balances): AccountBalance[] =>
  [...new Set([...accounts.keys(), ...explained.map(({ account }) => account)])].map((account) => ({
    account,
    balance: accounts.get(account) ?? 0,
    explained: explained.reduce((sum, one) => (one.account === account ? addPaise(sum, one.owed) : sum), 0),
  }))

/** Stores the balance that a month carries forward. */
export async function storeClosedItems(client: Queryable, month: string, all: readonly ClosedItems[]): Promise<void> {
  for (const { mid, items, accounts } of all) {
    await INSERT(client, { mid, month, items: JSON.stringify(items) })
    await INSERT_BALANCES(client, { mid, month, accounts: JSON.stringify(accounts) })
  }
}

/** Returns the balances that a closed month carries forward, except 0, by merchant and acquirer account. */
export const readClosedBalances = query<
  { mid: string; account: string; carriedForward: Paise },
  { month: string; mid?: string | undefined }
>(`
  select mid, account, balance_paise as carried_forward
    from closed_balances
   where month = :month and (:mid::text is null or mid = :mid) and balance_paise <> 0
   order by mid, account`)

const INSERT_BALANCES = query<object, { mid: string; month: string; accounts: string }>(`
  insert into closed_balances (mid, month, account, balance_paise, explained_paise)
  select :mid, :month, account, balance, explained
    from json_to_recordset(:accounts) as a (account text, balance bigint, explained bigint)`)

const INSERT = query<object, { mid: string; month: string; items: string }>(`
  insert into closed_items (mid, month, item, day, balance_paise)
  select :mid, :month, item, day, balance
    from json_to_recordset(:items) as i (item text, day date, balance bigint)`)
