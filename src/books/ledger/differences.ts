import { createHash } from 'node:crypto'
import type { Paise } from '../../platform/money.ts'
import { dayText } from '../../platform/time.ts'

export type DifferenceKind =
  | 'not settled'
  | 'settled twice'
  | 'fee differs'
  | 'amount differs'
  | 'no known payment'
  | 'sums differ'
  | 'taken back'
  | 'refund not deducted'
  | 'fee above the contract'
  /** The bank account received less of a payout than its net. */
  | 'short payout'

/**
 * What is left of an open item although its day has come: money that came in and was not paid out, or the reverse. Amounts are
 * in paise.
 */
export type Difference = {
  /** See differenceId. */
  id: string
  mid: string
  /**
   * Day (`YYYY-MM-DD`, IST) of the payment that is not settled; of the payout, when sums are compared; else of the
   * settlement.
   */
  day: string
  kind: DifferenceKind
  /** Our orderId; null where no order is known. */
  orderId: string | null
  /** UTR of the payment. */
  utr: string | null
  /** UTR of the settlement that differs. */
  settlementUtr: string | null
  /** The acquirer account of a payout whose sum differs, where the settlements name accounts. */
  account?: string
  paid: Paise | null
  /** Settled amount, with fee and tax. */
  settled: Paise | null
  /** What the bank owes the merchant by this; negative where it has paid too much. */
  owed: Paise
  /** In plain words. */
  cause: string
  /** The exception that explains a settlement of no known payment. */
  exceptionId: string | null
  /** How a person ended it, or that exception: with one, the difference is accounted for. */
  resolution: string | null
  /** How often a person has ended it. */
  entries: number
}

/** A difference before a person's word on it is known. */
export type Unnamed = Omit<Difference, 'id' | 'owed' | 'entries'>

/**
 * Whether a difference is a claim beside the ledger, and its resolution moves nothing: amount, fee and tax have settled the payment, or
 * the acquirer's ledger has the payout.
 */
export const isBesideLedger = ({ kind }: Pick<Difference, 'kind'>): boolean =>
  kind === 'fee above the contract' || kind === 'short payout'

/**
 * Names a difference by 16 hex digits: its day as yymmdd, and ten of a hash of what it is about. The same difference has the
 * same name in every report.
 */
export function differenceId({ mid, day, kind, utr, settlementUtr, account }: Omit<Unnamed, 'cause'>): string {
  const about = JSON.stringify([mid, day, kind, utr, settlementUtr, ...(account === undefined ? [] : [account])])
  const hash = createHash('sha256').update(about).digest('hex').slice(0, 10)
  return `${day.replaceAll('-', '').slice(2)}${hash}`
}

/** The day of a difference by its name; undefined for a name that no difference has. */
export function dayOfDifference(id: string): string | undefined {
  const [, year, month, day] = /^(\d\d)(\d\d)(\d\d)[0-9a-f]{10}$/.exec(id) ?? []
  return dayText.safeParse(`20${year}-${month}-${day}`).data
}

/** What the bank owes by a difference, in paise: of a payment that is settled twice it owes less by the whole second settlement. */
export const owedBy = ({ kind, paid, settled }: Pick<Difference, 'kind' | 'paid' | 'settled'>): Paise =>
  (kind === 'settled twice' ? 0 : (paid ?? 0)) - (settled ?? 0)
