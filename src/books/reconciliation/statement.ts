import type { Database } from '../../platform/db/pool.ts'
import type { Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import { createLedger } from '../ledger/read-ledger.ts'
import { readClosedBase } from './closed-items.ts'
import { type MoneyMovement, movementsOf } from './movements.ts'
import { inSnapshot } from './reconcile.ts'
import { broughtForward } from './reconcile-merchant.ts'
import { readRests } from './rests.ts'

/** A line of a merchant statement; `balance` is what the acquirer owes after it, in paise. */
export type StatementLine = Omit<MoneyMovement, 'kind'> & {
  kind: MoneyMovement['kind'] | 'opening' | 'closing'
  balance: Paise
}

/** What has moved between the acquirer and one merchant, line by line: each balance is the one before it and the amount. */
export function statementOf(
  db: Database,
  { mid, now, ...days }: Days & { mid: string; now: Date },
): AsyncGenerator<StatementLine> {
  return inSnapshot(db, now, async function* (snapshot) {
    const closed = await readClosedBase(snapshot.client, now, days.from)
    const ledger = createLedger({ ...snapshot, closed }, mid)
    const nothing = { orderId: null, merchantOrderId: null, reference: '', amount: 0 }
    let balance = await broughtForward(ledger, days.from)
    yield { ...nothing, day: days.from, kind: 'opening', balance }
    for await (const movement of movementsOf(ledger, days, await readRests(snapshot, { days }))) {
      balance += movement.amount
      yield { ...movement, balance }
    }
    yield { ...nothing, day: days.to, kind: 'closing', balance }
  })
}
