import { MOST_PAISE_OF_IMPORT, type Paise } from '../money.ts'

/** Parses amounts in rupees from the files of banks and acquirers, without ever converting an amount to a float. */

/**
 * Largest number of decimals that are read from an amount in rupees, because some acquirers' fees have more than two
 * decimals.
 */
const DECIMALS = 20
/** Number of parts into which a paisa is divided for computing: each part is 10^-15 paise. */
const PARTS = 10 ** 15

/**
 * An amount that may include a fraction of a paisa. The amount is the sum of `paise`, which is rounded down, and
 * `parts`, from 0 to below PARTS.
 */
export type Units = { paise: Paise; parts: number }

export const RUPEES_RULE = 'must be rupees with at most two decimals, such as 1,450.50'
export const LARGE_RULE = 'must be at most 100000000000 rupees'

/** Matches text that means "no amount", alone or after a currency. */
const NOTHING = /^(?:₹|rs\.?|inr)?\s*(?:[-–—−]+|nil|n\.?\/?a\.?|null|none|nan)?$/i

/** Whether the field contains text that means "no amount", or is empty. */
export const isNothing = (field: string): boolean => !/^\d/.test(field) && NOTHING.test(field.trim())

const WORD = '(?:credit|debit|[cd]r?)(?![a-z])\\.?'
const CURRENCY = '(?:₹|(?:rs|inr)(?![a-z])\\.?)'
const MARK = `\\( ?${WORD} ?\\)|${WORD}|${CURRENCY}|/-|[-+()]`
const AMOUNT = new RegExp(`^((?:(?:${MARK}) ?)*)(\\d[\\d,]*(?:\\.\\d*)?|\\.\\d+)((?: ?(?:${MARK}))*)$`, 'i')
const MARKS = new RegExp(MARK, 'gi')
const PLAIN = /^(\d{1,15})(?:\.(\d{1,2}))?$/
/** A whole number, without commas or grouped by commas in the Indian way or in thousands. */
const WHOLE = /^(?:\d+|\d{1,3}(?:,\d{2,3})*,\d{3})$/

/**
 * Parses rupees such as `1,450.50`, `₹ -450`, `450.00-`, `(450.00)`, `Rs.12.3600` or `609894.61 (Dr)`. Returns an
 * amount, negative for a minus, brackets or DR; undefined for other text, and for signs that contradict each other.
 */
export function readUnits(written: string): Units | undefined {
  // Handles the form of nearly every field separately, because the full grammar takes ten times as long.
  const [plain, rupees = '', rest = ''] = PLAIN.exec(written) ?? []
  if (plain !== undefined) return { paise: Number(rupees + rest.padEnd(2, '0')), parts: 0 }
  const text = written
    // Replaces no-break and thin spaces with commas, because these spaces separate groups of digits. Ordinary spaces do
    // not separate groups.
    .replace(/(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{2,3}(?!\d))/g, ',')
    .replace(/\s+/g, ' ')
    .replace(/[−–—]/g, '-')
    .trim()
    // Some banks group the digits of an overdrawn account together with the minus, as in `-,77,65,332.30`.
    .replace(/^-,(?=(?:\d{2,3},)*\d{3}(?:\.|$))/, '-')
  const [, before = '', number, behind = ''] = AMOUNT.exec(text) ?? []
  if (number === undefined) return undefined
  const [whole = '', decimals = ''] = number.split('.')
  const digits = (whole || '0').replaceAll(',', '').replace(/^0+(?=\d)/, '')
  if (!WHOLE.test(whole || '0') || digits.length > 15 || decimals.length > DECIMALS) return undefined
  const isNegative = signOf(before, behind)
  if (isNegative === undefined) return undefined
  const [exact, below] = [decimals.slice(0, 17).padEnd(17, '0'), decimals.slice(17)]
  const parts = Number(exact.slice(2))
  // Decimals too small for PARTS count as one part, so that the amount is neither zero nor exactly half a paisa.
  const isBetween = parts % 10 === 0 && /[1-9]/.test(below)
  const units = { paise: Number(digits + exact.slice(0, 2)), parts: isBetween ? parts + 1 : parts }
  return isNegative ? negated(units) : units
}

export const NO_UNITS: Units = { paise: 0, parts: 0 }

export const negated = ({ paise, parts }: Units): Units =>
  parts === 0 ? { paise: 0 - paise, parts } : { paise: -paise - 1, parts: PARTS - parts }

export function plus(one: Units, other: Units): Units {
  const parts = one.parts + other.parts
  const carried = parts < PARTS ? 0 : 1
  return { paise: one.paise + other.paise + carried, parts: parts - carried * PARTS }
}

export const isZero = ({ paise, parts }: Units): boolean => paise === 0 && parts === 0

export const isTooLarge = (paise: Paise): boolean => Math.abs(paise) > MOST_PAISE_OF_IMPORT

/** Whether the text is an amount other than 0. */
export function isAmount(written: string): boolean {
  const units = readUnits(written)
  return units !== undefined && !isZero(units)
}

/**
 * Whether the signs around a number make the number negative; undefined if the signs contradict each other or a bracket
 * is missing.
 */
function signOf(before: string, behind: string): boolean | undefined {
  const [left, right] = [before, behind].map((marks) => marks.toLowerCase().match(MARKS) ?? [])
  const all = [...(left as string[]), ...(right as string[])]
  const has = (pattern: RegExp) => all.filter((mark) => pattern.test(mark)).length
  const [open, close] = [left, right].map((marks, side) => marks?.filter((mark) => mark === '()'[side]).length)
  const [minus, plus, credit, debit] = [has(/^-$/) + (open ?? 0), has(/^\+$/), has(/^\(? ?c/), has(/^\(? ?d/)]
  const isPaired = open === close && has(/^[()]$/) === 2 * (open ?? 0)
  if (!isPaired || minus > 1 || minus + plus > 1 || has(/^(?:₹|rs|inr)/) > 1) return undefined
  if (credit + debit > 1 || (credit > 0 && minus > 0) || (debit > 0 && plus > 0)) return undefined
  return minus + debit > 0
}

const CREDIT = /^\(? ?(?:credit|cr?)\.? ?\)?$/i
const DEBIT = /^\(? ?(?:debit|dr?)\.? ?\)?$/i

/** Returns the paise of an amount; undefined if the amount includes a fraction of a paisa. */
export const exactPaise = ({ paise, parts }: Units): Paise | undefined => (parts === 0 ? paise : undefined)

/** Returns the paise of an amount, with half a paisa rounded away from 0. */
export const roundedPaise = ({ paise, parts }: Units): Paise =>
  parts > PARTS / 2 || (parts === PARTS / 2 && paise >= 0) ? paise + 1 : paise

/**
 * Parses rupees into paise. Returns undefined for other text, and for an amount with a fraction of a paisa, because the
 * service never rounds an amount here.
 */
export function readPaise(written: string): Paise | undefined {
  const units = readUnits(written)
  return units && exactPaise(units)
}

/**
 * A row's amount, or the error in the amount. `units` is undefined if the row has no amount. `isBare` is true if the file
 * states no sign for the amount. `doubt` is an error unless balances prove the signs of the file.
 */
export type RowAmount =
  | { units: Units | undefined; isBare?: boolean; doubt?: string; error?: never }
  | { units?: never; isBare?: never; doubt?: never; error: string }

/** Returns the fields in a row that belong to one of the service's column names. */
export type FieldsOf = (name: string) => readonly string[]

/**
 * Returns a parser for the amounts of one file, by the service's `columns` and the file's own names for these columns.
 * A row has either `credit` and `debit`, one of which is 0 or empty, or one or more `amount` columns, which are summed,
 * with an optional `sign` column. A negative credit is a reversal. A debit may have a minus sign if all debits in the
 * file have a minus sign. The amounts of rows below a title of the layout's `negativeBelow` are negative.
 */
export function amountReader(columns: readonly (readonly [string, string])[]) {
  const namesOf = (name: string) => columns.flatMap(([ours, theirs]) => (ours === name ? [theirs] : []))
  const [credits, debitNames, amounts] = [namesOf('credit'), namesOf('debit'), namesOf('amount')]
  const isOfTwo = credits.length > 0
  const read = ['credit', 'debit', 'amount', 'sign']
  const called = columns.flatMap(([ours, theirs]) => (read.includes(ours) ? [`${withoutMinus(theirs)} (${ours})`] : []))
  const hasSign = namesOf('sign').length > 0
  const rule = hasSign
    ? 'must be one amount without a minus, such as 1,450.50, and CR or DR'
    : 'must be one amount, such as 1,450.50'
  const LARGE = { error: `${called.join(' and ')} ${LARGE_RULE}` }
  const WRONG = { error: `${called.join(' and ')} ${rule}` }
  const AMBIGUOUS = { error: `${called.join(' and ')} must not have three decimals: 1.450 may be 1,450.00 or 1.45` }
  const SIGNED = {
    error: `${called.join(' and ')} must have no sign below a line that --negative-below names: remove --negative-below from the layout if the file signs its amounts`,
  }
  let debits: { areNegative: boolean; line: number } | undefined
  const marks = amounts.map(() => markReader())

  const errorOf = (...sums: RowAmount[]) => (sums.some(({ error }) => error === LARGE_RULE) ? LARGE : WRONG)

  /** Returns the amount of a debit. The sign of the amount must be the same as the sign of the file's first debit. */
  function debited(units: Units, line: number): RowAmount {
    if (isZero(units)) return { units }
    const isNegative = units.paise < 0
    debits ??= { areNegative: isNegative, line }
    const isLikeFirst = debits.areNegative === isNegative
    if (isLikeFirst) return { units: isNegative ? units : negated(units) }
    const [here, there] = isNegative ? ['has a', 'does not'] : ['has no', 'does']
    return {
      error: `${called.join(' and ')}: the debit ${here} minus, but that of line ${debits.line} ${there}: it may be a debit or a reversal`,
    }
  }

  return (fieldsOf: FieldsOf, line: number, isNegative = false): RowAmount => {
    // A sum of several columns may include fees, which may have three decimals.
    const isSum = [credits, debitNames, amounts].some((names) => names.length > 1)
    if (!isSum && ['credit', 'debit', 'amount'].some((name) => fieldsOf(name).some(isLikeThousands))) return AMBIGUOUS
    if (isOfTwo) {
      const credit = sumOfFields(fieldsOf('credit'), credits)
      const debit = sumOfFields(fieldsOf('debit'), debitNames)
      if (credit.error || debit.error) return errorOf(credit, debit)
      const [credited = NO_UNITS, taken = NO_UNITS] = [credit.units, debit.units]
      if (!(isZero(credited) || isZero(taken))) return WRONG
      if (credit.units === undefined && debit.units === undefined) return { units: undefined }
      return isZero(taken) ? { units: credited } : debited(taken, line)
    }
    const sum = sumOfFields(fieldsOf('amount'), amounts)
    const [sign] = fieldsOf('sign')
    // A line without an amount needs no sign, because such a line may show only the balance.
    if (sum.error) return errorOf(sum)
    if (sum.units === undefined || isZero(sum.units)) return sum
    if (isNegative) {
      const isSigned = sum.units.paise < 0 || fieldsOf('amount').some((field) => markOf(field) === 'Cr')
      return isSigned ? SIGNED : { units: negated(sum.units) }
    }
    if (sign === undefined) {
      const found = fieldsOf('amount').map((field, at) => marks[at]?.(field, line))
      const doubt = found.find((one) => one?.doubt)?.doubt
      return {
        ...sum,
        isBare: found.some((one) => one?.isBare),
        ...(doubt && { doubt: `${called.join(' and ')}: ${doubt}` }),
      }
    }
    // An amount with both a minus sign and DR may be a reversed debit, so the sign is uncertain and the row is
    // rejected.
    if (sum.units.paise < 0) return WRONG
    if (CREDIT.test(sign)) return sum
    return DEBIT.test(sign) ? { units: negated(sum.units) } : WRONG
  }
}

/** Returns the mark of an amount as a credit, or that it has no sign; undefined for other signs and for 0. */
function markOf(field: string): 'Cr' | 'none' | undefined {
  if (!/[1-9]/.test(field)) return undefined
  if (/c/i.test(field)) return 'Cr'
  return /[-+(−–—]|d/i.test(field.replace('/-', '')) ? undefined : 'none'
}

/**
 * Returns a reader of the marks in one column of amounts. If credits are marked with Cr, an amount without a sign may be
 * a debit, which the reader doubts once for the file.
 */
function markReader() {
  const first: { [Mark in 'Cr' | 'none']?: number } = {}
  let isDoubted = false
  return (field: string, line: number): { isBare: boolean; doubt?: string } => {
    const mark = markOf(field)
    const isBare = mark === 'none'
    if (mark === undefined || isDoubted) return { isBare }
    first[mark] ??= line
    isDoubted = first.Cr !== undefined && first.none !== undefined
    if (!isDoubted) return { isBare }
    const doubt = isBare
      ? `the amount has no Cr, unlike that of line ${first.Cr}, so it may be a debit`
      : `the amount has Cr, unlike that of line ${first.none}, which may be a debit`
    return { isBare, doubt: `${doubt}: get a file that marks every amount, or with debits in a column of their own` }
  }
}

/**
 * Whether a number is ambiguous: thousands with a dot, as some countries write thousands, or rupees with three
 * decimals.
 */
const isLikeThousands = (field: string) => /^\D*[1-9]\d{0,2}\.\d{3}(?!\d)/.test(field)

/**
 * Returns the sum of the fields of the columns `names`; columns with a minus are subtracted. Returns undefined if all
 * fields are empty.
 */
export function sumOfFields(fields: readonly string[], names: readonly string[]): RowAmount {
  let sum: Units | undefined
  for (const [index, field] of fields.entries()) {
    if (isNothing(field)) continue
    const units = readUnits(field)
    if (units === undefined) return { error: RUPEES_RULE }
    if (isTooLarge(units.paise)) return { error: LARGE_RULE }
    sum = plus(sum ?? NO_UNITS, names[index]?.startsWith('-') ? negated(units) : units)
  }
  return { units: sum }
}

export const withoutMinus = (name: string) => name.replace(/^-/, '')
