import { createBankDays } from '../../src/books/ledger/bank-days.ts'
import { type Item, type ItemRow, judgeItem } from '../../src/books/ledger/judge-item.ts'
import { matchDeductions, type SuccessfulRefund } from '../../src/books/ledger/match-deductions.ts'

const bankDays = createBankDays(new Set())
/** A Monday. */
const FIRST_DAY = '2026-11-16'
export const day = (number: number) => `2026-11-${16 + number}`
export const at = (number: number) => new Date(`${day(number)}T12:00:00+05:30`)

export const PAYMENT = { orderId: 'O1', day: FIRST_DAY, at: at(0), acquirer: 'direct', amount: 200_00 }

/** Creates a settlement line dated `number` days after the payment; a negative amount is a deduction. */
export function row(gross: number, number: number, more: Partial<ItemRow> = {}): ItemRow {
  const of = { utr: `N${number}`, day: day(number), at: at(number), acquirer: null, importId: number }
  const status = {
    status: 'SUCCESS',
    isDeduction: gross < 0,
    isDisputed: null,
    namesPayment: true,
    wasPaidOut: false,
  } as const
  return { ...of, ...status, gross, fee: null, tax: null, ...more }
}

export const refund = (amount: number, number: number, more: Partial<SuccessfulRefund> = {}): SuccessfulRefund => ({
  ...{
    refundId: `R${number}`,
    orderId: 'O1',
    utr: 'P1',
    acquirer: 'direct',
    paidOn: FIRST_DAY,
    amount,
    day: day(number),
  },
  ...{ returnedOn: null, reference: '', paid: 200_00, settled: null },
  ...more,
})

/** Judges an item after all its payouts were due, by default with one settlement line per payment. */
export function judge(
  item: Partial<Item>,
  { form = 'by payment' as const, isJudged = true }: { form?: 'by payment' | 'by sums'; isJudged?: boolean } = {},
) {
  const whole = {
    mid: 'M1',
    utr: 'P1',
    payment: PAYMENT,
    rows: [],
    refunds: [],
    exception: undefined,
    failure: undefined,
    ...item,
  }
  const deductions = whole.rows
    .filter(({ isDeduction }) => isDeduction)
    .map(({ utr, day, gross }) => ({ utr, item: 'P1', day, gross, references: [utr], isNamed: true }))
  const settled = whole.rows.find(({ isDeduction }) => !isDeduction)?.gross ?? null
  const refunds = whole.refunds.map((one) => ({ ...one, settled }))
  const matched = matchDeductions(refunds, deductions, bankDays)
  const judging: Parameters<typeof judgeItem>[1] = {
    ...matched,
    ...bankDays,
    isJudged: () => isJudged,
    formOf: () => form,
  }
  return judgeItem({ ...whole, refunds }, judging)
}
