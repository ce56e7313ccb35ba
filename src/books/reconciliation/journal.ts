import type { Database } from '../../platform/db/pool.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import { readMerchant } from './merchant.ts'
import { isMerchantError, type MerchantError, readOne } from './merchant-errors.ts'
import { type MoneyMovement, type MovementKind, movementsOf } from './movements.ts'
import { amountOf, type Rest, readRests } from './rests.ts'
import { inSnapshot, type Merchants, readMids } from './snapshot.ts'

/**
 * A posting in a double-entry voucher, whose debits equal its credits. Amounts are in paise, and either the debit or
 * the credit is 0. `account` is set for postings without a merchant.
 */
export type JournalLine = {
  date: string
  mid: string | null
  account: string | null
  voucher: string
  ledger: string
  debit: Paise
  credit: Paise
}

const RECEIVABLE = 'acquirer receivable'

/** Maps each kind of movement to the ledger opposite the acquirer receivable in the voucher. */
const OTHER_SIDE: Record<MovementKind, string> = {
  ...{
    payment: 'sales',
    refund: 'refunds',
    'refund returned': 'refunds',
    'duplicate payment': 'suspense',
    'duplicate refund': 'suspense',
    'duplicate refund returned': 'suspense',
    payout: 'bank',
    fee: 'fees',
    tax: 'input GST',
  },
  ...{ adjustment: 'adjustments', 'unknown order': 'unknown orders' },
  ...{ chargeback: 'chargebacks', charge: 'fees', 'write-off': 'written off', 'bank-error': 'written off' },
  ...{ 'written off': 'written off', exception: 'suspense' },
}

/**
 * Yields the movements of these days as double-entry vouchers, merchant by merchant. The payments of a day form one
 * voucher, the refunds of a day another, and each bank transfer forms one under its reference. Sums of shared
 * transfers, which belong to no single merchant, come last.
 */
export function journalOf(
  db: Database,
  { mid, now, ...days }: Days & Pick<Merchants, 'mid'> & { now: Date },
): AsyncGenerator<JournalLine | MerchantError> {
  return inSnapshot(db, now, async function* (snapshot) {
    const rests = await readRests(snapshot, { days })
    for (const one of await readMids(snapshot.client, { mid })) {
      const vouchers = await readOne(snapshot, one, async () =>
        vouchersOf(one, await movementsOf(await readMerchant(snapshot, one), days, rests)),
      )
      if (isMerchantError(vouchers)) yield vouchers
      else for (const voucher of vouchers.values()) yield* postingsOf(voucher)
    }
    if (mid === undefined) for (const rest of rests) if (rest.mid === null) yield* postingsOf(voucherOfRest(rest))
  })
}

function vouchersOf(mid: string, movements: readonly MoneyMovement[]): Map<string, Voucher> {
  const vouchers = new Map<string, Voucher>()
  for (const movement of movements) {
    const key = `${movement.day} ${voucherOf(movement)}`
    const nothing = { date: movement.day, mid, account: null, voucher: voucherOf(movement), sums: new Map() }
    const voucher = vouchers.get(key) ?? nothing
    post(voucher, RECEIVABLE, movement.amount)
    post(voucher, OTHER_SIDE[movement.kind], -movement.amount)
    vouchers.set(key, voucher)
  }
  return vouchers
}

function voucherOfRest(rest: Rest): Voucher {
  const { day, account, bankReference, adjustments, unknownOrders } = rest
  const sums = new Map([
    [OTHER_SIDE.payout, amountOf(rest)],
    [OTHER_SIDE.adjustment, -adjustments],
    [OTHER_SIDE['unknown order'], -unknownOrders],
  ])
  return { date: day, mid: null, account, voucher: bankReference, sums }
}

/** A voucher before it is split into postings. `sums` maps each ledger to its debit in paise; a credit is negative. */
type Voucher = Omit<JournalLine, 'ledger' | 'debit' | 'credit'> & { sums: Map<string, Paise> }

const post = ({ sums }: Voucher, ledger: string, paise: Paise) =>
  sums.set(ledger, addPaise(sums.get(ledger) ?? 0, paise))

function voucherOf({ kind, day, reference }: MoneyMovement): string {
  if (kind === 'payment') return `sales ${day}`
  if (kind === 'refund' || kind === 'refund returned') return `refunds ${day}`
  return kind.startsWith('duplicate ') ? `duplicates ${day}` : reference
}

const postingsOf = ({ sums, ...voucher }: Voucher): JournalLine[] =>
  [...sums].flatMap(([ledger, paise]) => {
    if (paise === 0) return []
    return [{ ...voucher, ledger, debit: paise > 0 ? paise : 0, credit: paise < 0 ? -paise : 0 }]
  })
