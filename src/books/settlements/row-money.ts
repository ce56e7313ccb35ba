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

/** Our columns that a file may give in several, whose sum counts, or with a minus before what was kept: `-MDR`. */
export const SUMMED_COLUMNS: readonly string[] = ['amount', 'fee', 'tax', 'gross']

/** What a row moves; undefined for a fee or tax of which the row says nothing. */
export type RowMoney = { amount: Paise; fee: Paise | undefined; tax: Paise | undefined }

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
    const take = (read: RowAmount, say: (fault: string) => string) => {
      if (read.fault) faults.push(say(read.fault))
      return read.units
    }
    const row = readAmount(fieldsOf, line)
    const total = take(row, (fault) =>
      hasSigns || fault.endsWith(LARGE_RULE) ? fault : `${amountCalled} ${RUPEES_RULE}`,
    )
    const [fee, tax, gross] = ['fee', 'tax', 'gross'].map((name) =>
      take(sumOfFields(fieldsOf(name), namesOf(name)), (fault) => `${called(name)} ${fault}`),
    )
    const amount = total === undefined ? undefined : exactPaise(total)
    if (!row.fault && amount === undefined) faults.push(`${amountCalled} ${RUPEES_RULE}`)
    if (amount !== undefined && isTooLarge(amount)) faults.push(`${amountCalled} ${LARGE_RULE}`)
    const whole = gross === undefined ? undefined : exactPaise(gross)
    if (gross !== undefined && whole === undefined) faults.push(`${called('gross')} ${RUPEES_RULE}`)
    if (faults.length > 0 || amount === undefined) return { faults }
    const kept = share({ amount, gross: whole, fee, tax })
    return typeof kept === 'string' ? { faults: [kept] } : { value: { amount, ...kept } }
  }

  /** The paise of fee and tax, or what is wrong with them. */
  function share({ amount, gross, fee, tax }: Stated): Kept | string {
    const isAbove = [fee, tax].some((one) => one !== undefined && one.paise >= 0 && !isZero(one))
    // Of a debit, a fee may be kept for it or be given back: both are written without a sign.
    const isOpen = hasSigns && amount < 0 && isAbove
    if (isOpen && gross === undefined)
      return `${called(fee && !isZero(fee) ? 'fee' : 'tax')} of a debit may be kept or given back: give the column of the gross amount, --column gross=…`
    const asWritten = settle({ amount, gross, fee, tax })
    const found =
      asWritten ?? (isOpen ? settle({ amount, gross, fee: fee && negated(fee), tax: tax && negated(tax) }) : undefined)
    if (found === undefined)
      return `${called('gross')} is not ${[amountCalled, ...given('fee'), ...given('tax')].join(' + ')}: the difference is more than 0.01`
    const [negative] = amount < 0 ? [] : (['fee', 'tax'] as const).filter((name) => (found[name] ?? 0) < 0)
    if (negative) return `${called(negative)} must not be negative where amount is not`
    if (found.isRounded) counts.rounded += 1
    return found
  }

  const given = (name: string) => (namesOf(name).length > 0 ? [called(name)] : [])

  return { read, counts }
}

/** Fee and tax may have parts of a paisa. */
type Stated = { amount: Paise; gross: Paise | undefined; fee: Units | undefined; tax: Units | undefined }
type Kept = { fee: Paise | undefined; tax: Paise | undefined; isRounded: boolean }

/** Rounds fee and tax so that they and the amount are the gross amount; undefined if they cannot be. */
function settle({ amount, gross, fee, tax }: Stated): Kept | undefined {
  const rounded = { fee: fee && roundedPaise(fee), tax: tax && roundedPaise(tax) }
  if (gross !== undefined) {
    if (tax !== undefined) rounded.tax = gross - amount - (rounded.fee ?? 0)
    else rounded.fee = gross - amount
    if (!isNear(rounded.fee, fee) || !isNear(rounded.tax, tax))
      // Some files write the gross amount of a debit without its sign. That of a payment below its fee has none.
      return amount < 0 && gross > 0 ? settle({ amount, gross: -gross, fee, tax }) : undefined
  }
  const isExact = isSame(rounded.fee, fee) && isSame(rounded.tax, tax)
  return { ...rounded, isRounded: !isExact }
}

const movedBy = (paise: Paise | undefined, units: Units | undefined) =>
  plus({ paise: paise ?? 0, parts: 0 }, negated(units ?? NO_UNITS))
const isSame = (paise: Paise | undefined, units: Units | undefined) => isZero(movedBy(paise, units))

/** Whether they differ by at most one paisa. */
function isNear(amount: Paise | undefined, units: Units | undefined): boolean {
  const { paise, parts } = movedBy(amount, units)
  return paise >= -1 && (paise < 1 || (paise === 1 && parts === 0))
}
