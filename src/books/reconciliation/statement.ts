import type { Database } from '../../platform/db/pool.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import { broughtForward } from './brought-forward.ts'
import { readClosedBase } from './closed-items.ts'
import { readMerchant } from './merchant.ts'
import { type MoneyMovement, movementsOf } from './movements.ts'
import { readRests } from './rests.ts'
import { readSnapshot } from './snapshot.ts'

/** A line in a merchant statement. `balance` is the acquirer's debt after this line, in paise. */
export type StatementLine = Omit<MoneyMovement, 'kind'> & {
  kind: MoneyMovement['kind'] | 'opening' | 'closing'
  balance: Paise
}

/**
 * Returns the movements between the acquirer and one merchant as a statement. Each balance is the previous balance plus
 * the amount of the line.
 */
export function statementOf(
  db: Database,
  { mid, now, ...days }: Days & { mid: string; now: Date },
): Promise<StatementLine[]> {
  return readSnapshot(db, now, async (snapshot) => {
    const merchant = await readMerchant(snapshot, mid)
    const movements = await movementsOf(merchant, days, await readRests(snapshot, { days }))
    let balance = await broughtForward(merchant, days.from, await readClosedBase(snapshot, days.from))
    const nothing = { orderId: null, merchantOrderId: null, reference: '', amount: 0 }
    const opening = { ...nothing, day: days.from, kind: 'opening' as const, balance }
    const lines = movements.map((movement) => {
      balance = addPaise(balance, movement.amount)
      return { ...movement, balance }
    })
    return [opening, ...lines, { ...nothing, day: days.to, kind: 'closing', balance }]
  })
}
