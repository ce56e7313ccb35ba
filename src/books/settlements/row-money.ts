import {
  amountReader,
  exactPaise,
  type FieldsOf,
  isTooLarge,
  isZero,
  LARGE_RULE,
  NO_UNITS,
  negated,
  plus,
  type RowAmount,
  RUPEES_RULE,
  roundedPaise,
  sumOfFields,
  type Units,
  withoutMinus,
} from '../../platform/csv/amounts.ts'
import type { Layout } from '../../platform/csv/layouts.ts'
import type { Paise } from '../../platform/money.ts'

/**
 * The service's columns to which a layout may assign several columns in the file, whose amounts are added up. A minus
 * before a column in the file, as in `-MDR`, subtracts the column.
 */
export const SUMMED_COLUMNS: readonly string[] = ['amount', 'fee', 'tax', 'gross']

/** The amounts in one row, in paise. An undefined `fee` or `tax` means that the row states none. */
type RowMoney = { amount: Paise; fee: Paise | undefined; tax: Paise | undefined }

/**
 * Returns the parser for a row's money columns, in rupees. The settled amount must be exact. Fee and tax may have more
 * than two decimals: the fee is rounded, and if the row states a gross amount, the tax is what remains of the gross
 * amount after amount and fee. `counts.rounded` is the number of rounded rows.
 */
export function rowMoneyReader({ columns, negativeBelow }: Layout) {
  const readAmount = amountReader(columns)
  const names = new Map(
    SUMMED_COLUMNS.map((name) => [name, columns.flatMap(([ours, theirs]) => (ours === name ? [theirs] : []))]),
  )
  const namesOf = (name: string) => names.get(name) as string[]
  const called = (name: string) => `${namesOf(name).map(withoutMinus).join(' + ')} (${name})`
  const hasSigns = negativeBelow.length > 0 || columns.some(([ours]) => ['sign', 'debit'].includes(ours))
  const amountColumns = columns.filter(([ours]) => ['credit', 'debit', 'amount'].includes(ours))
  const amountCalled = `${amountColumns.map(([, theirs]) => withoutMinus(theirs)).join(' + ')} (amount)`
  const counts = { rounded: 0 }

  function read(
    fieldsOf: FieldsOf,
    line: number,
    isNegative: boolean,
  ): { value: RowMoney; errors?: never } | { value?: never; errors: string[] } {
    const errors: string[] = []
    const addAmount = (read: RowAmount, say: (error: string) => string) => {
      if (read.error) errors.push(say(read.error))
      return read.units
    }
    const row = readAmount(fieldsOf, line, isNegative)
    if (row.doubt) errors.push(row.doubt)
    const total = addAmount(row, (error) =>
      hasSigns || error.endsWith(LARGE_RULE) ? error : `${amountCalled} ${RUPEES_RULE}`,
    )
    const [fee, tax, gross] = ['fee', 'tax', 'gross'].map((name) =>
      addAmount(sumOfFields(fieldsOf(name), namesOf(name)), (error) => `${called(name)} ${error}`),
    )
    const amount = total === undefined ? undefined : exactPaise(total)
    if (!row.error && amount === undefined) errors.push(`${amountCalled} ${RUPEES_RULE}`)
    if (amount !== undefined && isTooLarge(amount)) errors.push(`${amountCalled} ${LARGE_RULE}`)
    const whole = gross === undefined ? undefined : exactPaise(gross)
    if (gross !== undefined && whole === undefined) errors.push(`${called('gross')} ${RUPEES_RULE}`)
    if (errors.length > 0 || amount === undefined) return { errors }
    const stored = share({ amount, gross: whole, fee, tax })
    return typeof stored === 'string' ? { errors: [stored] } : { value: { amount, ...stored } }
  }

  /** Returns fee and tax in paise, or an error message. */
  function share({ amount, gross, fee, tax }: Stated): Stored | string {
    const isAbove = [fee, tax].some((one) => one !== undefined && one.paise >= 0 && !isZero(one))
    // The fee is ambiguous: files with signs write the fee of a debit without a sign, so the bank may have charged or
    // refunded the fee. Only the gross amount shows whether the fee was charged or refunded.
    const isOpen = hasSigns && amount < 0 && isAbove
    if (isOpen && gross === undefined)
      return `${called(fee && !isZero(fee) ? 'fee' : 'tax')} of a debit may be charged or refunded: name the column of the gross amount, --column gross=…`
    const asWritten = settle({ amount, gross, fee, tax })
    const found =
      asWritten ?? (isOpen ? settle({ amount, gross, fee: fee && negated(fee), tax: tax && negated(tax) }) : undefined)
    if (found === undefined)
      return `${called('gross')} is not ${[amountCalled, ...given('fee'), ...given('tax')].join(' + ')}: they differ by more than 0.01; check the columns of the layout`
    const [negative] = amount < 0 ? [] : (['fee', 'tax'] as const).filter((name) => (found[name] ?? 0) < 0)
    if (negative) return `${called(negative)} must not be negative unless amount is negative`
    if (found.isRounded) counts.rounded += 1
    return found
  }

  const given = (name: string) => (namesOf(name).length > 0 ? [called(name)] : [])

  return { read, counts }
}

/** Amounts in a row as the file states them. Fee and tax may contain fractions of a paisa. */
type Stated = { amount: Paise; gross: Paise | undefined; fee: Units | undefined; tax: Units | undefined }
type Stored = { fee: Paise | undefined; tax: Paise | undefined; isRounded: boolean }

/**
 * Rounds fee and tax so that amount, fee and tax add up to the gross amount. Returns undefined if no rounding achieves
 * this sum.
 */
function settle({ amount, gross, fee, tax }: Stated): Stored | undefined {
  const rounded = { fee: fee && roundedPaise(fee), tax: tax && roundedPaise(tax) }
  if (gross !== undefined) {
    if (tax !== undefined) rounded.tax = gross - amount - (rounded.fee ?? 0)
    else rounded.fee = gross - amount
    if (!isNear(rounded.fee, fee) || !isNear(rounded.tax, tax))
      // Some files write the gross amount of a debit without its sign, so the negated amount is tried. The negated
      // amount comes second, because the gross amount of a payment smaller than its fee is positive too.
      return amount < 0 && gross > 0 ? settle({ amount, gross: -gross, fee, tax }) : undefined
  }
  const isExact = isSame(rounded.fee, fee) && isSame(rounded.tax, tax)
  return { ...rounded, isRounded: !isExact }
}

const movedBy = (paise: Paise | undefined, units: Units | undefined) =>
  plus({ paise: paise ?? 0, parts: 0 }, negated(units ?? NO_UNITS))
const isSame = (paise: Paise | undefined, units: Units | undefined) => isZero(movedBy(paise, units))

/** Returns whether the two amounts differ by at most one paisa. */
function isNear(amount: Paise | undefined, units: Units | undefined): boolean {
  const { paise, parts } = movedBy(amount, units)
  return paise >= -1 && (paise < 1 || (paise === 1 && parts === 0))
}
