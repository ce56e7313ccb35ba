import { type Paise, toDecimalText } from '../../platform/money.ts'
import { DAY_MS } from '../../platform/time.ts'
import type { BankDays } from './bank-days.ts'
import { type DiscrepancyKind, type Finding, owedBy } from './discrepancies.ts'
import { type PayoutForm, placeOf, placeOfReturn } from './judge-payouts.ts'
import { groupBy, type MatchedDeductions, type SuccessfulRefund, sumOf } from './match-deductions.ts'

/** A settlement may be dated up to one day before its payment, because some settlement files state only the date. */
const SETTLED_BEFORE_MS = DAY_MS

/** A settlement line with the item's UTR. Amounts are in paise; `gross` includes fee and tax. */
export type ItemRow = {
  utr: string
  day: string
  at: Date
  acquirer: string | null
  status: 'SUCCESS' | 'PENDING' | 'FAILED'
  /** True for a line that settles no payment: the amount is negative, or the line is of a dispute. */
  isDeduction: boolean
  /** Whether a stored dispute explains a line of a dispute; null for other lines. */
  isDisputed: boolean | null
  gross: Paise
  fee: Paise | null
  tax: Paise | null
  /** Whether the settlement file states which payment the line settles. */
  namesPayment: boolean
  /** Whether the line is FAILED now and was SUCCESS in an earlier file. */
  wasPaidOut: boolean
  importId: number | null
}

/** An exception that may explain an item; `amount` is in paise. */
export type ItemException = {
  exceptionId: string
  kind: string
  orderId: string | null
  amount: Paise
  resolution: string | null
}

/** All facts about the money with one UTR. */
export type Item = {
  mid: string
  utr: string
  payment: { orderId: string; day: string; at: Date; acquirer: string; amount: Paise } | undefined
  /** Settlement lines, oldest first. */
  rows: readonly ItemRow[]
  /** Refunds of the payment, oldest first. */
  refunds: readonly SuccessfulRefund[]
  /** The exception for a duplicate payment, or for money that is not an order's payment. */
  exception: ItemException | undefined
  /** The bank's report that the payment failed after its success. */
  failure: ItemException | undefined
  /**
   * The UTR of the item that the next import matches with this item by the payment's bank reference: for a payment without
   * settlement lines that of its line, for a line without a payment that of its payment.
   */
  matching?: string | undefined
}

/**
 * The rules that depend on other items: which refunds each line deducts, which days are judged, and which payouts list
 * every payment.
 */
type Judging = MatchedDeductions &
  Pick<BankDays, 'bankDayFrom' | 'nextBankDay'> & {
    /**
     * Returns whether a day is judged. A day is judged only after the bank day on which the day's payments are paid
     * out.
     */
    isJudged: (day: string) => boolean
    formOf: (acquirer: string | null, bankDay: string) => PayoutForm
  }

/**
 * Returns the discrepancies of one item. A settlement line that is equal and opposite to an earlier discrepancy clears
 * that discrepancy. A line dated more than a day before the payment cannot settle the payment, and is judged as a line
 * without a payment. A line of a stored dispute is expected.
 */
export function judgeItem(whole: Item, judging: Judging): Finding[] {
  const item = { ...whole, rows: whole.rows.filter(({ isDisputed }) => isDisputed !== true) }
  const { payment, rows } = item
  if (payment === undefined) return judgeRows(item, judging)
  const isEarly = ({ at }: ItemRow) => at.getTime() < payment.at.getTime() - SETTLED_BEFORE_MS
  const early = rows.filter(isEarly)
  if (early.length === 0) return judgeRows(item, judging)
  const own = { ...item, rows: rows.filter((row) => !isEarly(row)) }
  return [...judgeRows({ ...item, payment: undefined, refunds: [], rows: early }, judging), ...judgeRows(own, judging)]
}

function judgeRows(item: Item, judging: Judging): Finding[] {
  const successful = item.rows.filter(({ status }) => status === 'SUCCESS')
  const settled = successful.filter(({ isDeduction }) => !isDeduction)
  const withoutRow = item.refunds.filter(({ refundId }) => !judging.rowOf.has(refundId))
  const netted = sumOf(withoutRow.filter(({ refundId }) => judging.netted.has(refundId)))
  const undeducted = withoutRow.filter(({ refundId }) => !judging.netted.has(refundId))
  const placed = groupBy(undeducted, (refund) => placeOf(refund, judging.formOf, judging))
  const back = sumOf(placed.get('payment'))
  const returned = returnedByLine(item, judging)
  const found: Finding[] = []
  for (const row of successful) {
    if (row !== settled[0] && !row.isDeduction && paysReturned(row, returned)) continue
    const finding = row.isDeduction
      ? judgeDeduction(item, row, judging)
      : judgeSettlement(item, row, { settled, netted, back: sumOf(undeducted) }, judging)
    if (finding === undefined) continue
    const cleared = found.findLastIndex(
      (open) => open.resolution === null && finding.resolution === null && owedBy(open) === -owedBy(finding),
    )
    if (cleared >= 0) found.splice(cleared, 1)
    else found.push(finding)
  }
  const history =
    successful.length > 2 && successful.some(({ isDeduction }) => isDeduction) ? `; ${formatRows(successful)}` : ''
  return [
    ...(settled.length === 0 ? judgeUnsettled(item, back, judging) : []),
    ...found.map((one) => ({ ...one, cause: `${one.cause}${history}` })),
    ...judgeUndeducted(item, placed.get('own'), judging),
    ...judgeReturned(item, returned, judging),
  ]
}

/** Returns the returned refunds whose money a settlement line must pay out again, oldest first. */
function returnedByLine({ refunds }: Item, judging: Judging): SuccessfulRefund[] {
  return refunds.filter((refund) => {
    const { refundId, returnedOn } = refund
    if (returnedOn === null) return false
    const isDeducted = judging.rowOf.has(refundId) || judging.netted.has(refundId)
    return placeOfReturn({ ...refund, returnedOn, isDeducted }, judging.formOf, judging) === 'line'
  })
}

/** Returns whether a settlement line pays one or all of the returned refunds, and removes these from `returned`. */
function paysReturned({ gross }: ItemRow, returned: SuccessfulRefund[]): boolean {
  const exact = returned.findIndex(({ amount }) => amount === gross)
  if (exact < 0 && (returned.length === 0 || sumOf(returned) !== gross)) return false
  if (exact < 0) returned.length = 0
  else returned.splice(exact, 1)
  return true
}

/**
 * Judges a payment without a settlement line. `back` is the sum of the refunds that the bank paid out of the payment, so
 * that the bank owes only the rest.
 */
function judgeUnsettled(
  { payment, rows, failure, exception, ...item }: Item,
  back: Paise,
  judging: Judging,
): Finding[] {
  if (payment === undefined || payment.amount === back) return []
  const { orderId, day, acquirer, amount } = payment
  const isByPayment = judging.formOf(acquirer, judging.nextBankDay(day)) === 'by payment'
  if (!judging.isJudged(day) || (!isByPayment && failure?.resolution == null)) return []
  const reported = failure ?? exception
  const tried = rows.findLast(({ status }) => status !== 'SUCCESS')
  const isReversed = tried?.status === 'FAILED' && tried.wasPaidOut
  const kind = isReversed ? 'reversal' : 'missing settlement'
  const cause = `${ownCause()}${formatReturned(back)}`
  return [{ ...findingOf(item, { day, orderId, exception: failure }), kind, paid: amount - back, cause }]

  function ownCause() {
    if (isReversed) return `settlement ${tried.utr} of ${tried.day} changed from SUCCESS to FAILED`
    if (item.matching && !tried) return `settlement ${item.matching} has its bank reference: ${IMPORT_ANY}`
    if (reported) return `exception ${reported.exceptionId}: ${reported.kind}`
    if (tried) return `settlement ${tried.utr} of ${tried.day} is ${tried.status}`
    return `no settlement line has its UTR; its payout was due on ${judging.nextBankDay(day)}`
  }
}

/**
 * Judges a settlement line that pays money out. The first line in `settled` settles the item; every other line overpays
 * the item by its full amount.
 */
function judgeSettlement(
  whole: Item,
  row: ItemRow,
  { settled, netted, back }: { settled: readonly ItemRow[]; netted: Paise; back: Paise },
  judging: Judging,
): Finding | undefined {
  if (isPartOfSum(whole, row, judging)) return undefined
  const { payment, exception, ...item } = whole
  const { day, utr: settlementUtr, gross, fee, tax } = row
  const [first] = settled
  const reported = payment === undefined ? exception : undefined
  const about = {
    ...findingOf(item, { day, orderId: payment?.orderId ?? reported?.orderId ?? null, exception: reported }),
    ...{ settlementUtr, paid: payment?.amount ?? null, settled: gross },
  }
  const went = formatReturned(payment === undefined ? 0 : netted + back)
  if (first !== undefined && first !== row) {
    const cause = `settlement ${first.utr} of ${first.day}`
    return { ...about, kind: 'duplicate settlement', resolution: null, cause: `${cause} already settled it${went}` }
  }
  if (payment === undefined) {
    // A resolved exception explains no more than its own amount.
    const isCovered = reported !== undefined && gross <= reported.amount
    return {
      ...about,
      kind: 'unknown payment',
      resolution: isCovered ? about.resolution : null,
      cause: item.matching ? formatMatching(item.matching) : formatReported(reported),
    }
  }
  if (gross === payment.amount - netted) return undefined
  const [kind, cause]: [DiscrepancyKind, string] =
    fee === null && tax === null
      ? ['amount mismatch', 'the amount differs from the payment, and the file states no fee or tax']
      : [
          'fee mismatch',
          `the amount with fee ${toDecimalText(fee ?? 0)} and tax ${toDecimalText(tax ?? 0)} differs from the payment`,
        ]
  return { ...about, kind, cause: `${cause}${went}` }
}

const isPartOfSum = ({ payment, exception }: Item, row: ItemRow, { bankDayFrom, formOf }: Judging) =>
  payment === undefined &&
  !row.namesPayment &&
  exception === undefined &&
  formOf(row.acquirer, bankDayFrom(row.day)) === 'by sums'

/**
 * Judges a settlement line that deducts money. The line is correct if its amount equals the sum of the refunds matched
 * with it.
 */
function judgeDeduction(
  { payment, rows, ...item }: Item,
  { day, utr: settlementUtr, gross, isDisputed }: ItemRow,
  { refundsOf }: Judging,
): Finding | undefined {
  const refunds = refundsOf.get(settlementUtr) ?? []
  const [refund] = refunds
  const amount = sumOf(refunds)
  const ids = refunds.map(({ refundId }) => refundId).join(', ')
  const about = {
    ...findingOf(item, { day, orderId: payment?.orderId ?? refund?.orderId ?? null, exception: undefined }),
    ...{ kind: 'reversal' as const, utr: refund?.utr ?? item.utr, settlementUtr, settled: gross },
  }
  if (refund !== undefined) {
    return amount === -gross
      ? undefined
      : { ...about, paid: -amount, cause: `the amount differs from that of refund ${ids}` }
  }
  if (isDisputed !== null)
    return {
      ...about,
      cause: `the bank ${gross < 0 ? 'deducted' : 'returned'} it for a dispute that is not stored: run ops disputes add`,
    }
  const cause =
    about.orderId === null
      ? `the bank deducted it, and ${item.matching ? formatMatching(item.matching) : 'no order of this merchant has its UTR'}`
      : 'the bank deducted it from a payout, for a refund or a chargeback'
  return { ...about, cause }
}

/** Returns one discrepancy for each day with refunds that no settlement line and no total deducts. */
function judgeUndeducted(
  { payment, ...item }: Item,
  undeducted: readonly SuccessfulRefund[] = [],
  { isJudged }: Judging,
): Finding[] {
  if (payment === undefined) return []
  const byDay = groupBy(
    undeducted.filter(({ returnedOn }) => returnedOn === null),
    ({ day }) => day,
  )
  return [...byDay].flatMap(([day, refunds]): Finding[] => {
    if (!isJudged(day)) return []
    const ids = refunds.map(({ refundId }) => refundId).sort()
    const paidOut = refunds[0]?.settled === null ? 'was part of a total' : 'was settled in full'
    return [
      {
        ...findingOf(item, { day, orderId: payment.orderId, exception: undefined }),
        ...{ kind: 'refund not deducted' as const, settled: sumOf(refunds) },
        cause: `refund ${ids.join(', ')}: the payment ${paidOut}, and no settlement line deducts the refund`,
      },
    ]
  })
}

/** Returns one discrepancy for each day with returned refunds that no settlement line pays out again. */
function judgeReturned(
  { payment, ...item }: Item,
  returned: readonly SuccessfulRefund[],
  { isJudged }: Judging,
): Finding[] {
  if (payment === undefined) return []
  return [...groupBy(returned, ({ returnedOn }) => returnedOn as string)].flatMap(([day, refunds]): Finding[] => {
    if (!isJudged(day)) return []
    const ids = refunds.map(({ refundId }) => refundId).sort()
    return [
      {
        ...findingOf(item, { day, orderId: payment.orderId, exception: undefined }),
        ...{ kind: 'return not paid out' as const, paid: sumOf(refunds) },
        cause: `refund ${ids.join(', ')}: the bank returned it, and no settlement line pays it out again`,
      },
    ]
  })
}

type About = { day: string; orderId: string | null; exception: ItemException | undefined }

/** Returns the fields that all discrepancies of one item share. The caller adds kind, cause and amounts. */
const findingOf = ({ mid, utr }: Pick<Item, 'mid' | 'utr'>, { day, orderId, exception }: About) => ({
  ...{ mid, day, orderId, utr, settlementUtr: null, paid: null, settled: null },
  exceptionId: exception?.exceptionId ?? null,
  resolution: exception?.resolution ?? null,
})

const formatReturned = (back: Paise) => (back === 0 ? '' : `; ${toDecimalText(back)} of it was refunded`)

const IMPORT_ANY = 'import any settlement file'
const formatMatching = (payment: string) => `payment ${payment} has this bank reference: ${IMPORT_ANY}`

function formatReported(exception: ItemException | undefined): string {
  if (exception === undefined) return 'no order and no exception of this merchant has its UTR'
  const { exceptionId, kind, orderId } = exception
  return `exception ${exceptionId}: ${kind}${orderId === null ? '' : `, of order ${orderId}`}`
}

/**
 * Formats the settlement history of a UTR, such as `settled on 2026-08-17 by import 12, reversed on 2026-08-25 by
 * import 15, paid again on 2026-09-02 by import 19`.
 */
function formatRows(rows: readonly ItemRow[]): string {
  const verb = (row: ItemRow) => {
    if (row.gross < 0) return 'reversed'
    return row === rows.find(({ isDeduction }) => !isDeduction) ? 'settled' : 'paid again'
  }
  return rows
    .map((row) => `${verb(row)} on ${row.day}${row.importId === null ? '' : ` by import ${row.importId}`}`)
    .join(', ')
}
