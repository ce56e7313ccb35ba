import type { Database } from '../../platform/db/pool.ts'
import type { Days } from '../ledger/bank-days.ts'
import { createLedger } from '../ledger/read-ledger.ts'
import { type MoneyMovement, type MovementKind, movementsOf } from './movements.ts'
import { inSnapshot, type Merchants, midsOf } from './reconcile.ts'
import { amountOf, type Rest, readRests } from './rests.ts'

/**
 * A posting; one of its amounts, in paise, is 0. The postings of a voucher have equal debits and credits. `account` is that of a posting
 * without a merchant.
 */
export type JournalLine = {
  date: string
  mid: string | null
  account: string | null
  voucher: string
  ledger: string
  debit: bigint
  credit: bigint
}

const RECEIVABLE = 'acquirer receivable'

/** The ledger on the other side of the receivable. */
const OTHER_SIDE: Record<MovementKind, string> = {
  ...{ payment: 'sales', refund: 'refunds', payout: 'bank', fee: 'fees', tax: 'input GST' },
  ...{ adjustment: 'adjustments', 'unknown order': 'unknown orders' },
  ...{ chargeback: 'chargebacks', charge: 'fees', 'write-off': 'written off', 'bank-error': 'written off' },
  ...{ 'written off': 'written off', exception: 'suspense' },
}

/**
 * The movements of these days in double entry, merchant after merchant. The payments of a day are one voucher, its refunds another,
 * and each transfer of the bank one under its reference. What is an account's of transfers follows, without a merchant.
 */
export function journalOf(
  db: Database,
  { mid, now, ...days }: Days & Pick<Merchants, 'mid'> & { now: Date },
): AsyncGenerator<JournalLine> {
  return inSnapshot(db, now, async function* (snapshot) {
    const rests = await readRests(snapshot, { days })
    for await (const one of midsOf(snapshot.client, { mid })) {
      let open: Voucher | undefined
      for await (const movement of movementsOf(createLedger(snapshot, one), days, rests)) {
        const voucher = voucherOf(movement)
        if (open?.date !== movement.day || open.voucher !== voucher) {
          if (open) yield* postingsOf(open)
          open = { date: movement.day, mid: one, account: null, voucher, sums: new Map() }
        }
        for (const [ledger, paise] of [
          [RECEIVABLE, movement.amount],
          [OTHER_SIDE[movement.kind], -movement.amount],
        ] as const) {
          open.sums.set(ledger, (open.sums.get(ledger) ?? 0n) + paise)
        }
      }
      if (open) yield* postingsOf(open)
    }
    if (mid === undefined) for (const rest of rests) if (rest.mid === null) yield* postingsOf(voucherOfRest(rest))
  })
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

/** What is debited to each ledger; negative where it is credited. */
type Voucher = Omit<JournalLine, 'ledger' | 'debit' | 'credit'> & { sums: Map<string, bigint> }

function voucherOf({ kind, day, reference }: MoneyMovement): string {
  if (kind === 'payment') return `sales ${day}`
  return kind === 'refund' ? `refunds ${day}` : reference
}

const postingsOf = ({ sums, ...voucher }: Voucher): JournalLine[] =>
  [...sums].flatMap(([ledger, paise]) => {
    if (paise === 0n) return []
    return [{ ...voucher, ledger, debit: paise > 0n ? paise : 0n, credit: paise < 0n ? -paise : 0n }]
  })
