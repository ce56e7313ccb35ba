import { createHash } from 'node:crypto'
import { ACQUIRER_NAMES } from '../../gateway/acquirers/acquirers.ts'
import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import {
  inSnapshot,
  isMerchantError,
  type MerchantError,
  type Merchants,
  readMids,
  readOne,
} from '../reading/snapshot.ts'
import type { MovementKind } from './movements.ts'
import { type Posting, postingsOf, readPeriods, sharedPostingsOf } from './postings.ts'

/**
 * A line of a double-entry voucher, whose debits equal its credits. Amounts are in paise, and either the debit or the credit
 * is 0. `mid` is null for payouts that belong to no single merchant.
 */
export type JournalLine = {
  date: string
  /** Identifies the voucher: the same in every report, whatever its amount. */
  voucherId: string
  /** Names the voucher for a reader, such as `receipts 2026-10-05` or the bank reference of a payout. */
  reference: string
  /** The day of the movements, if they changed after its month was closed; otherwise null. */
  originalDay: string | null
  mid: string | null
  account: string
  ledger: string
  debit: Paise
  credit: Paise
}

/** How a journal posts an acquirer's charges: to one ledger, or fees and input GST each to their own. */
type Charges = 'supplier' | 'split'

/** Letters of voucher ids: receipts, payouts, refunds, disputes, and other vouchers. */
type Letter = 'R' | 'P' | 'F' | 'D' | 'X'

export const RECEIPTS = 'UPI receipts'
const DISPUTES = 'UPI disputes'

/** The vouchers of each kind of movement, and the ledger opposite the acquirer's clearing ledger, or opposite `from`. */
const VOUCHERS: Record<MovementKind, { letter: Letter; ledger: string; name?: string; from?: string }> = {
  payment: { letter: 'R', ledger: RECEIPTS, name: 'receipts' },
  refund: { letter: 'F', ledger: 'UPI refunds', name: 'refunds' },
  'refund returned': { letter: 'F', ledger: 'UPI refunds', name: 'refunds' },
  'duplicate payment': { letter: 'X', ledger: 'Suspense', name: 'duplicates' },
  'duplicate refund': { letter: 'X', ledger: 'Suspense', name: 'duplicates' },
  'duplicate refund returned': { letter: 'X', ledger: 'Suspense', name: 'duplicates' },
  dispute: { letter: 'D', ledger: DISPUTES },
  'lost dispute': { letter: 'D', ledger: 'Chargebacks', from: DISPUTES },
  'duplicate lost dispute': { letter: 'D', ledger: 'Suspense', from: DISPUTES },
  payout: { letter: 'P', ledger: 'Bank' },
  fee: { letter: 'P', ledger: '<account> fees' },
  tax: { letter: 'P', ledger: '<account> input GST' },
  adjustment: { letter: 'P', ledger: 'Suspense' },
  'unknown order': { letter: 'P', ledger: 'Unknown payments' },
  chargeback: { letter: 'D', ledger: 'Chargebacks' },
  charge: { letter: 'D', ledger: '<account> fees' },
  'write-off': { letter: 'X', ledger: 'Written off' },
  'bank-error': { letter: 'X', ledger: 'Written off' },
  'written off': { letter: 'X', ledger: 'Written off' },
  exception: { letter: 'X', ledger: 'Suspense' },
}

const CLEARING = 'UPI clearing <account>'
const CHARGES = '<account> charges'

/** The names of all ledgers, where `<account>` stands for an acquirer account. */
export const LEDGERS = [...new Set([...Object.values(VOUCHERS).map(({ ledger }) => ledger), CLEARING, CHARGES])]

/**
 * Yields the postings of these days as double-entry vouchers, merchant by merchant. The payments of a day form one voucher
 * of each acquirer account, the refunds of a day another, and each bank transfer forms one. Amounts of shared transfers,
 * which belong to no single merchant, come last.
 */
export function journalOf(
  db: Database,
  { mid, now, charges, ...days }: Days & Pick<Merchants, 'mid'> & { now: Date; charges: Charges },
): AsyncGenerator<JournalLine | MerchantError> {
  return inSnapshot(db, now, async function* (snapshot) {
    const periods = await readPeriods(snapshot, days)
    for (const one of await readMids(snapshot.client, { mid })) {
      const vouchers = await readOne(snapshot, one, async () =>
        vouchersOf(one, await postingsOf(one, periods), charges),
      )
      if (isMerchantError(vouchers)) yield vouchers
      else for (const voucher of vouchers) yield* linesOf(voucher)
    }
    if (mid !== undefined) return
    for (const voucher of vouchersOf(null, sharedPostingsOf(periods), charges)) yield* linesOf(voucher)
  })
}

/** A voucher before it is split into lines. `sums` maps each ledger to its debit in paise; a credit is negative. */
type Voucher = Omit<JournalLine, 'voucherId' | 'ledger' | 'debit' | 'credit'> & {
  letter: Letter
  sums: Map<string, Paise>
}

function vouchersOf(mid: string | null, postings: readonly Posting[], charges: Charges): Iterable<Voucher> {
  const vouchers = new Map<string, Voucher>()
  for (const { day: date, originalDay = null, kind, account, amount, reference: name } of postings) {
    const { letter, ledger, from = CLEARING, ...daily } = VOUCHERS[kind]
    const single = letter === 'D' ? `${kind} ${name}` : name
    const reference = daily.name === undefined ? single : `${daily.name} ${originalDay ?? date}`
    const key = `${date} ${originalDay} ${letter} ${account} ${reference}`
    const voucher = vouchers.get(key) ?? { date, reference, originalDay, mid, account, letter, sums: new Map() }
    post(voucher, from, amount)
    post(voucher, charges === 'supplier' && ledger.startsWith('<account>') ? CHARGES : ledger, -amount)
    vouchers.set(key, voucher)
  }
  return vouchers.values()
}

const post = ({ account, sums }: Voucher, ledger: string, paise: Paise) => {
  const name = ledger.replace('<account>', account)
  sums.set(name, addPaise(sums.get(name) ?? 0, paise))
}

function linesOf({ sums, letter, ...voucher }: Voucher): JournalLine[] {
  const named = { ...voucher, voucherId: voucherIdOf({ ...voucher, letter }) }
  const lines = [...sums].filter(([, paise]) => paise !== 0)
  return lines.map(([ledger, paise]) => ({ ...named, ledger, debit: Math.max(paise, 0), credit: Math.max(-paise, 0) }))
}

/** Returns an id such as `R261005-` and 16 characters, with `L` after the letter for a change after the close. */
function voucherIdOf({ letter, date, originalDay, mid, account, reference }: Omit<Voucher, 'sums'>): string {
  const names = JSON.stringify([mid, account, letter, date, originalDay, reference])
  const kind = originalDay === null ? letter : `${letter}L`
  const day = date.slice(2).replaceAll('-', '')
  return `${kind}${day}-${toBase32(createHash('sha256').update(names).digest())}`
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns the first 80 bits in base32 (RFC 4648). */
const toBase32 = (bytes: Buffer) =>
  Array.from({ length: 16 }, (_, at) => {
    const bits = bytes.readUInt16BE((at * 5) >> 3) >> (11 - ((at * 5) % 8))
    return BASE32[bits & 31]
  }).join('')

/** The name that a merchant's ledger has in Tally. */
type LedgerName = { mid: string; ledger: string; name: string }

const ACCOUNT = `(?:unknown|(?:${ACQUIRER_NAMES.join('|')})(?::[A-Za-z0-9_-]{1,64})?)`
const LEDGER = new RegExp(`^(?:${LEDGERS.join('|').replaceAll('<account>', ACCOUNT)})$`)

/** Returns whether a journal may have this ledger, such as `UPI clearing setu:acme`. */
export const isLedger = (name: string) => LEDGER.test(name)

/** Stores the name of a ledger in Tally; a later name replaces it. */
export const setLedgerName = query<object, LedgerName>(`
  insert into ledger_names (mid, ledger, name)
  values (:mid, :ledger, :name)
  on conflict (mid, ledger) do update set name = excluded.name`)

/** Lists the names of a merchant's ledgers, or of all merchants'. */
export const listLedgerNames = query<LedgerName, { mid: string | undefined }>(`
  select mid, ledger, name
    from ledger_names
   where :mid::text is null or mid = :mid
   order by mid, ledger`)
