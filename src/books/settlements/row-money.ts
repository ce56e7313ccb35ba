import {
  amountReader,
  exactPaise,
  type FieldsOf,
  PER_PAISA,
  type RowAmount,
  RUPEES_RULE,
  roundedPaise,
  sumOfFields,
  withoutMinus,
} from '../../platform/csv/amounts.ts'
import type { Layout } from '../../platform/csv/layouts.ts'
import { toSumText } from '../../platform/money.ts'

/** Our columns that a file may give in several, whose sum counts, or with a minus before what was kept: `-MDR`. */
export const SUMMED_COLUMNS: readonly string[] = ['amount', 'fee', 'tax', 'gross']

/** Largest amount that is stored: that of numeric(14, 2). */
const MOST_PAISE = 10n ** 14n

/** What a row moves, as decimal text; undefined for a fee or tax of which the row says nothing. */
export type RowMoney = { amount: string; fee: string | undefined; tax: string | undefined }

/**
 * Returns the reader of the rupees of a settlement file's rows. Fees and taxes may have more than two decimals: the fee is rounded, and
 * the tax is what is left of the gross amount, if the row states it. Amounts are never rounded. `rounded` is the number of such rows.
 */
export function rowMoneyReader({ columns }: Layout) {
  const readAmount = amountReader(columns)
  const names = new Map(
    SUMMED_COLUMNS.map((name) => [name, columns.flatMap(([ours, theirs]) => (ours === name ? [theirs] : []))]),
  )
  const namesOf = (name: string) => names.get(name) as string[]
  const called = (name: string) => `${namesOf(name).map(withoutMinus).join(' + ')} (${name})`
  const hasSigns = columns.some(([ours]) => ['sign', 'debit'].includes(ours))
  const amountColumns = columns.filter(([ours]) => ['credit', 'debit', 'amount'].includes(ours))
  const amountCalled = `${amountColumns.map(([, theirs]) => withoutMinus(theirs)).join(' + ')} (amount)`
  const counts = { rounded: 0 }

  function read(
    fieldsOf: FieldsOf,
    line: number,
  ): { value: RowMoney; faults?: never } | { value?: never; faults: string[] } {
    const faults: string[] = []
    const take = (read: RowAmount, rule: () => string) => {
      if (read.fault) faults.push(rule())
      return read.units
    }
    const row = readAmount(fieldsOf, line)
    const total = take(row, () => (hasSigns ? (row.fault as string) : `${amountCalled} ${RUPEES_RULE}`))
    const [fee, tax, gross] = ['fee', 'tax', 'gross'].map((name) =>
      take(sumOfFields(fieldsOf(name), namesOf(name)), () => `${called(name)} ${RUPEES_RULE}`),
    )
    const amount = total === undefined ? undefined : exactPaise(total)
    if (!row.fault && (amount === undefined || isTooLarge(amount))) faults.push(`${amountCalled} ${RUPEES_RULE}`)
    const whole = gross === undefined ? undefined : exactPaise(gross)
    if (gross !== undefined && whole === undefined) faults.push(`${called('gross')} ${RUPEES_RULE}`)
    if (faults.length > 0 || amount === undefined) return { faults }
    const kept = share({ amount, gross: whole, fee, tax })
    return typeof kept === 'string' ? { faults: [kept] } : { value: textOf(amount, kept) }
  }

  /** The paise of fee and tax, or what is wrong with them. */
  function share({ amount, gross, fee, tax }: Stated): Kept | string {
    const isAbove = (fee ?? 0n) > 0n || (tax ?? 0n) > 0n
    // Of a debit, a fee may be kept for it or be given back: both are written without a sign.
    const isOpen = hasSigns && amount < 0n && isAbove
    if (isOpen && gross === undefined)
      return `${called(fee ? 'fee' : 'tax')} of a debit may be kept or given back: give the column of the gross amount, --column gross=…`
    const readings = isOpen ? [1n, -1n] : [1n]
    const shares = readings.map((sign) => settle({ amount, gross, fee: times(fee, sign), tax: times(tax, sign) }))
    const found = shares.find((one) => one !== undefined)
    if (found === undefined)
      return `${called('gross')} is not ${[amountCalled, ...given('fee'), ...given('tax')].join(' + ')}, and would move one by more than 0.01`
    const [negative] = amount < 0n ? [] : (['fee', 'tax'] as const).filter((name) => (found[name] ?? 0n) < 0n)
    if (negative) return `${called(negative)} must not be negative where amount is not`
    if (found.isRounded) counts.rounded += 1
    return found
  }

  const given = (name: string) => (namesOf(name).length > 0 ? [called(name)] : [])

  return { read, counts }
}

/** Paise of `amount` and `gross`, units of the others. */
type Stated = { amount: bigint; gross: bigint | undefined; fee: bigint | undefined; tax: bigint | undefined }
type Kept = { fee: bigint | undefined; tax: bigint | undefined; isRounded: boolean }

const times = (units: bigint | undefined, sign: bigint) => (units === undefined ? undefined : units * sign)
const isTooLarge = (paise: bigint) => paise >= MOST_PAISE || paise <= -MOST_PAISE

/** Rounds fee and tax so that they and the amount are the gross amount; undefined if they cannot be. */
function settle({ amount, gross, fee, tax }: Stated): Kept | undefined {
  const rounded = { fee: paiseOf(fee), tax: paiseOf(tax) }
  if (gross !== undefined) {
    if (tax !== undefined) rounded.tax = gross - amount - (rounded.fee ?? 0n)
    else rounded.fee = gross - amount
    if (!isNear(rounded.fee, fee) || !isNear(rounded.tax, tax))
      // Some files write the gross amount of a debit without its sign. That of a payment below its fee has none.
      return amount < 0n && gross > 0n ? settle({ amount, gross: -gross, fee, tax }) : undefined
  }
  const isExact = isSame(rounded.fee, fee) && isSame(rounded.tax, tax)
  return { ...rounded, isRounded: !isExact }
}

const paiseOf = (units: bigint | undefined) => (units === undefined ? undefined : roundedPaise(units))
const movedBy = (paise: bigint | undefined, units: bigint | undefined) => (paise ?? 0n) * PER_PAISA - (units ?? 0n)
const isSame = (paise: bigint | undefined, units: bigint | undefined) => movedBy(paise, units) === 0n

function isNear(paise: bigint | undefined, units: bigint | undefined): boolean {
  const moved = movedBy(paise, units)
  return moved <= PER_PAISA && moved >= -PER_PAISA
}

const textOf = (amount: bigint, { fee, tax }: Kept): RowMoney => ({
  amount: toSumText(amount),
  fee: fee === undefined ? undefined : toSumText(fee),
  tax: tax === undefined ? undefined : toSumText(tax),
})
