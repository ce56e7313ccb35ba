import { createHash } from 'node:crypto'
import { type Paise, toDecimalText } from '../../platform/money.ts'
import { dayText } from '../../platform/time.ts'
import { groupBy } from './match-deductions.ts'

/**
 * The kinds of discrepancies, each with the name by which stored resolutions know it. Ids hash that name: resolutions and the items of
 * closed months name discrepancies by their ids.
 */
export const STORED_KINDS = {
  'missing settlement': 'not settled',
  'duplicate settlement': 'settled twice',
  'fee mismatch': 'fee differs',
  'amount mismatch': 'amount differs',
  'unknown payment': 'no known payment',
  'payout total': 'sums differ',
  reversal: 'taken back',
  'refund not deducted': 'refund not deducted',
  'short payout': 'short payout',
} as const

export type DiscrepancyKind = keyof typeof STORED_KINDS

/** The kind that is stored by this name; the name itself for a kind of an earlier version. */
export const kindOfStored = (stored: string): DiscrepancyKind =>
  (Object.entries(STORED_KINDS).find(([, name]) => name === stored)?.[0] ?? stored) as DiscrepancyKind

/**
 * What is left of an open item, or of a payout by totals, once its day has come: money that was received and not paid out, or the
 * reverse. Amounts are in paise.
 */
export type Discrepancy = {
  /** See discrepancyId. */
  id: string
  mid: string
  /** Day (`YYYY-MM-DD`, IST) of the payment without a settlement; of the payout, when totals are compared; else of the settlement. */
  day: string
  kind: DiscrepancyKind
  /** Our orderId; null where no order is known. */
  orderId: string | null
  /** UTR of the payment. */
  utr: string | null
  /** UTR of the settlement line. */
  settlementUtr: string | null
  /** The acquirer of a payout by totals, where the settlement lines name one. */
  account?: string
  paid: Paise | null
  /** Settled amount, with fee and tax. */
  settled: Paise | null
  /** What the bank owes the merchant by this; negative where it has paid too much. */
  owed: Paise
  /** In plain words. */
  cause: string
  /** The exception that explains it. */
  exceptionId: string | null
  /** The operator's reason, or that of the exception: with one, the discrepancy is accounted for. */
  resolution: string | null
  /** How many entries resolve it. */
  entries: number
}

/** A discrepancy before its entries are known. */
export type Finding = Omit<Discrepancy, 'id' | 'owed' | 'entries'>

/** An entry by which an operator resolves a discrepancy; `amount` is what it adds to the bank's debt, in paise. */
export type Entry = Pick<Discrepancy, 'day' | 'orderId' | 'utr' | 'settlementUtr'> & {
  /** One of STORED_KINDS. */
  kind: string
  differenceId: string
  amount: Paise
  reason: string
}

/**
 * Identifies a discrepancy by 16 hex digits: its day as yymmdd, and ten of a hash of what it is about. The same discrepancy has
 * the same id in every report.
 */
export function discrepancyId({ mid, day, kind, utr, settlementUtr, account }: Omit<Finding, 'cause'>): string {
  const about = [mid, day, STORED_KINDS[kind], utr, settlementUtr, ...(account === undefined ? [] : [account])]
  const hash = createHash('sha256').update(JSON.stringify(about)).digest('hex').slice(0, 10)
  return `${day.replaceAll('-', '').slice(2)}${hash}`
}

/** The day of a discrepancy by its id; undefined for an id that no discrepancy has. */
export function dayOfDiscrepancy(id: string): string | undefined {
  const [, year, month, day] = /^(\d\d)(\d\d)(\d\d)[0-9a-f]{10}$/.exec(id) ?? []
  return dayText.safeParse(`20${year}-${month}-${day}`).data
}

/** What the bank owes by a discrepancy, in paise: by a duplicate settlement it has paid too much by the whole line. */
export const owedBy = ({ kind, paid, settled }: Pick<Discrepancy, 'kind' | 'paid' | 'settled'>): Paise =>
  (kind === 'duplicate settlement' ? 0 : (paid ?? 0)) - (settled ?? 0)

/**
 * Gives discrepancies their ids and entries. One that has changed since it was resolved, or is none any more, is open again with what
 * remains, since an entry is final.
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
    /** What remains of the entries of discrepancies that were not among the findings. */
    remaining: (): Discrepancy[] =>
      [...entered].flatMap(([id, own]) => {
        const { kind: stored, day, orderId, utr, settlementUtr } = own[0] as Entry
        const nothing = { paid: null, settled: null, owed: 0, exceptionId: null, resolution: null, entries: 0 }
        const about = { id, mid, day, kind: kindOfStored(stored), orderId, utr, settlementUtr }
        const left = withEntries(own, { ...about, ...nothing, cause: 'it is no discrepancy any more' })
        return left.resolution === null ? [left] : []
      }),
  }
}

/** A discrepancy with the entries that resolve it, or a part of it. */
function withEntries(entries: readonly Entry[], discrepancy: Discrepancy): Discrepancy {
  const last = entries.at(-1)
  if (last === undefined) return discrepancy
  const resolved = entries.reduce((sum, { amount }) => sum + amount, 0)
  const known = { ...discrepancy, owed: discrepancy.owed + resolved, entries: entries.length }
  if (known.owed === 0) return { ...known, resolution: last.reason }
  if (resolved === 0) return known
  const cause = `${discrepancy.cause}; ${toDecimalText(-resolved)} of it was resolved: ${last.reason}`
  return { ...known, cause }
}

/** Compares discrepancies by day, kind and ids. An absent id comes last, as PostgreSQL sorts it. */
export const inOrder = (a: Discrepancy, b: Discrepancy) => (placeOf(a) < placeOf(b) ? -1 : 1)

const placeOf = ({ id, day, kind, orderId, settlementUtr, account = '' }: Discrepancy) =>
  [day, kind, orderId ?? '~', settlementUtr ?? '~', account, id].join('\n')
