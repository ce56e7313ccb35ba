import { createHash } from 'node:crypto'
import { type Paise, toDecimalText } from '../../platform/money.ts'
import { dayText } from '../../platform/time.ts'
import { groupBy, sumOf } from './match-deductions.ts'

/** Kinds of discrepancies. A name never changes, because an id contains the hash of it. */
export type DiscrepancyKind =
  | 'missing settlement'
  | 'duplicate settlement'
  | 'fee mismatch'
  | 'amount mismatch'
  | 'unknown payment'
  | 'payout total'
  | 'reversal'
  | 'refund not deducted'
  | 'return not paid out'
  | 'short payout'

/**
 * A difference between the money that the acquirer received and the money that the acquirer paid out, as of the day on
 * which the payout was expected. A discrepancy concerns an open item, or a payout by totals. Amounts are in paise.
 */
export type Discrepancy = {
  /** Id that `discrepancyId` derives from the other fields. */
  id: string
  mid: string
  /**
   * IST day (`YYYY-MM-DD`) of the payment if it is unsettled, of the payout if totals are compared, and otherwise of
   * the settlement line.
   */
  day: string
  kind: DiscrepancyKind
  /** The service's `orderId`; null if no order is known. */
  orderId: string | null
  /** UTR of the payment. */
  utr: string | null
  /** UTR of the settlement line. */
  settlementUtr: string | null
  /** The acquirer of a payout by totals; undefined if the settlement lines name no acquirer. */
  account?: string
  paid: Paise | null
  /** Gross amount that the bank settled, including fee and tax. */
  settled: Paise | null
  /** Amount that the bank still owes the merchant; negative if the bank paid too much. */
  owed: Paise
  /** Text that explains the discrepancy to the operator. */
  cause: string
  /** Id of the exception that explains the discrepancy; null if no exception explains the discrepancy. */
  exceptionId: string | null
  /** The operator's reason for resolving this discrepancy or its exception; null if neither is resolved. */
  resolution: string | null
  /** Number of operator entries that resolve this discrepancy. */
  entries: number
}

/** A discrepancy before operator entries are applied to it. */
export type Finding = Omit<Discrepancy, 'id' | 'owed' | 'entries'>

/** An operator's entry that resolves a discrepancy. `amount` is the change of the bank's debt in paise. */
export type Entry = Pick<Discrepancy, 'day' | 'kind' | 'orderId' | 'utr' | 'settlementUtr'> & {
  differenceId: string
  amount: Paise
  reason: string
}

/**
 * Returns the id of a discrepancy. The id is the same in every report. Its 16 hex digits are the day as yymmdd,
 * followed by ten digits from a hash of the identifying fields.
 */
export function discrepancyId({ mid, day, kind, utr, settlementUtr, account }: Omit<Finding, 'cause'>): string {
  const about = [mid, day, kind, utr, settlementUtr, ...(account === undefined ? [] : [account])]
  const hash = createHash('sha256').update(JSON.stringify(about)).digest('hex').slice(0, 10)
  return `${day.replaceAll('-', '').slice(2)}${hash}`
}

/**
 * Returns the day with which a discrepancy id begins, or undefined if `id` does not have the format of a discrepancy
 * id.
 */
export function dayOfDiscrepancy(id: string): string | undefined {
  const [, year, month, day] = /^(\d\d)(\d\d)(\d\d)[0-9a-f]{10}$/.exec(id) ?? []
  return dayText.safeParse(`20${year}-${month}-${day}`).data
}

/**
 * Returns the amount in paise that the bank owes because of a discrepancy. A duplicate settlement is overpaid by its
 * full amount.
 */
export const owedBy = ({ kind, paid, settled }: Pick<Discrepancy, 'kind' | 'paid' | 'settled'>): Paise =>
  (kind === 'duplicate settlement' ? 0 : (paid ?? 0)) - (settled ?? 0)

/**
 * Assigns ids and entries to discrepancies. Entries are final, so a discrepancy that changes or disappears after its
 * resolution is open again with the remaining amount.
 */
export function resolverOf(mid: string, entries: readonly Entry[]) {
  const entered = groupBy(entries, ({ differenceId }) => differenceId)
  return {
    resolve: (findings: readonly Finding[]): Discrepancy[] =>
      findings.map((one) => {
        const discrepancy = { ...one, id: discrepancyId(one), owed: owedBy(one), entries: 0 }
        const own = entered.get(discrepancy.id) ?? []
        entered.delete(discrepancy.id)
        return withEntries(own, discrepancy)
      }),
    /** Returns the remaining amounts of entries whose discrepancy is no longer among the findings. */
    remaining: (): Discrepancy[] =>
      [...entered].flatMap(([id, own]) => {
        const { kind, day, orderId, utr, settlementUtr } = own[0] as Entry
        const nothing = { paid: null, settled: null, owed: 0, exceptionId: null, resolution: null, entries: 0 }
        const about = { id, mid, day, kind, orderId, utr, settlementUtr }
        const left = withEntries(own, { ...about, ...nothing, cause: 'the discrepancy no longer exists' })
        return left.resolution === null ? [left] : []
      }),
  }
}

/** Applies the entries that resolve a discrepancy in full or in part. */
function withEntries(entries: readonly Entry[], discrepancy: Discrepancy): Discrepancy {
  const last = entries.at(-1)
  if (last === undefined) return discrepancy
  const resolved = sumOf(entries)
  const known = { ...discrepancy, owed: discrepancy.owed + resolved, entries: entries.length }
  if (known.owed === 0) return { ...known, resolution: last.reason }
  if (resolved === 0) return known
  const cause = `${discrepancy.cause}; ${toDecimalText(-resolved)} of it was resolved: ${last.reason}`
  return { ...known, cause }
}

/** Compares two discrepancies by day, kind and ids. A missing id sorts last, as in PostgreSQL. */
export const inOrder = (a: Discrepancy, b: Discrepancy) => (placeOf(a) < placeOf(b) ? -1 : 1)

const placeOf = ({ id, day, kind, orderId, settlementUtr, account = '' }: Discrepancy) =>
  [day, kind, orderId ?? '~', settlementUtr ?? '~', account, id].join('\n')
