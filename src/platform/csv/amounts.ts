import { MOST_PAISE_OF_IMPORT, type Paise } from '../money.ts'

/** The one grammar of rupees in the files of banks and acquirers. Nothing is ever a float. */

/** Decimals of a rupee that are read; fees of some acquirers have more than two. */
const DECIMALS = 20
/** Parts of a paisa that are computed: each is 10^-15 paise. */
const PARTS = 10 ** 15

/** An amount that may have parts of a paisa: `paise` is rounded down, and `parts`, from 0 to below PARTS, are added to it. */
export type Units = { paise: Paise; parts: number }

export const RUPEES_RULE = 'must be rupees with at most two decimals, such as 1,450.50'
export const LARGE_RULE = 'must be at most 100000000000 rupees'

/** Words for nothing, alone or behind a currency. */
const NOTHING = /^(?:₹|rs\.?|inr)?\s*(?:[-–—−]+|nil|n\.?\/?a\.?|null|none|nan)?$/i

/** Whether the field says that there is nothing. */
export const isNothing = (field: string): boolean => !/^\d/.test(field) && NOTHING.test(field.trim())

const WORD = '(?:credit|debit|[cd]r?)(?![a-z])\\.?'
const CURRENCY = '(?:₹|(?:rs|inr)(?![a-z])\\.?)'
const MARK = `\\( ?${WORD} ?\\)|${WORD}|${CURRENCY}|/-|[-+()]`
const AMOUNT = new RegExp(`^((?:(?:${MARK}) ?)*)(\\d[\\d,]*(?:\\.\\d*)?|\\.\\d+)((?: ?(?:${MARK}))*)$`, 'i')
const MARKS = new RegExp(MARK, 'gi')
const PLAIN = /^(\d{1,15})(?:\.(\d{1,2}))?$/
/** Digits in groups, as in India or in thousands. */
const WHOLE = /^(?:\d+|\d{1,3}(?:,\d{2,3})*,\d{3})$/

/**
 * Reads rupees such as `1,450.50`, `₹ -450`, `450.00-`, `(450.00)`, `Rs.12.3600` or `609894.61 (Dr)`. Returns an amount,
 * negative for a minus, brackets or DR; undefined for other text, and for marks that contradict each other.
 */
export function readUnits(written: string): Units | undefined {
  // Nearly every field; the whole grammar takes ten times as long.
  const [plain, rupees = '', rest = ''] = PLAIN.exec(written) ?? []
  if (plain !== undefined) return { paise: Number(rupees + rest.padEnd(2, '0')), parts: 0 }
  const text = written
    // These blanks separate groups of digits; any other does not.
    .replace(/(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{2,3}(?!\d))/g, ',')
    .replace(/\s+/g, ' ')
    .replace(/[−–—]/g, '-')
    .trim()
  const [, before = '', number, behind = ''] = AMOUNT.exec(text) ?? []
  if (number === undefined) return undefined
  const [whole = '', decimals = ''] = number.split('.')
  const digits = (whole || '0').replaceAll(',', '').replace(/^0+(?=\d)/, '')
  if (!WHOLE.test(whole || '0') || digits.length > 15 || decimals.length > DECIMALS) return undefined
  const isNegative = signOf(before, behind)
  if (isNegative === undefined) return undefined
  const [exact, below] = [decimals.slice(0, 17).padEnd(17, '0'), decimals.slice(17)]
  const parts = Number(exact.slice(2))
  // Decimals below PARTS are kept as one part, so that they are neither nothing nor half a paisa.
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

/** Whether the marks around a number make it negative; undefined where they contradict each other or are no pair. */
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

/** Paise of an amount; undefined where it is no whole paise. */
export const exactPaise = ({ paise, parts }: Units): Paise | undefined => (parts === 0 ? paise : undefined)

/** Paise of an amount, half a paisa away from 0. */
export const roundedPaise = ({ paise, parts }: Units): Paise =>
  parts > PARTS / 2 || (parts === PARTS / 2 && paise >= 0) ? paise + 1 : paise

/** Paise of an amount of the grammar; undefined for other text, and for parts of a paisa, since no amount is rounded. */
export function readPaise(written: string): Paise | undefined {
  const units = readUnits(written)
  return units && exactPaise(units)
}

/** A row's amount, or what is wrong with it. Nothing is undefined. */
export type RowAmount = { units: Units | undefined; fault?: never } | { units?: never; fault: string }

/** The fields of a row by our name of their columns. */
export type FieldsOf = (name: string) => readonly string[]

/**
 * Returns the reader of the amounts of one file, by our `columns` and its own names for them: `credit` and `debit`, of which one is 0
 * or nothing; or the sum of `amount`, with `sign` beside it. A debit may be written with a minus, if all debits of the file are.
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
  const LARGE = { fault: `${called.join(' and ')} ${LARGE_RULE}` }
  const WRONG = { fault: `${called.join(' and ')} ${rule}` }
  const AMBIGUOUS = { fault: `${called.join(' and ')} must not have three decimals: 1.450 may be 1,450.00 or 1.45` }
  let debits: { areNegative: boolean; line: number } | undefined

  const faultOf = (...sums: RowAmount[]) => (sums.some(({ fault }) => fault === LARGE_RULE) ? LARGE : WRONG)

  /** The amount of a debit, whose sign is that of the first one of the file. */
  function debited(units: Units, line: number): RowAmount {
    if (isZero(units)) return { units }
    const isNegative = units.paise < 0
    debits ??= { areNegative: isNegative, line }
    const isLikeFirst = debits.areNegative === isNegative
    if (isLikeFirst) return { units: isNegative ? units : negated(units) }
    const [here, there] = isNegative ? ['has', 'has not'] : ['has not', 'has']
    return {
      fault: `${called.join(' and ')}: the debit ${here} a minus, and that of line ${debits.line} ${there}, so it may be one or be taken back`,
    }
  }

  return (fieldsOf: FieldsOf, line: number): RowAmount => {
    // A sum has fees beside the amount, which may have three decimals.
    const isSum = [credits, debitNames, amounts].some((names) => names.length > 1)
    if (!isSum && ['credit', 'debit', 'amount'].some((name) => fieldsOf(name).some(isLikeThousands))) return AMBIGUOUS
    if (isOfTwo) {
      const credit = sumOfFields(fieldsOf('credit'), credits)
      const debit = sumOfFields(fieldsOf('debit'), debitNames)
      if (credit.fault || debit.fault) return faultOf(credit, debit)
      const [credited = NO_UNITS, taken = NO_UNITS] = [credit.units, debit.units]
      if (credited.paise < 0 || !(isZero(credited) || isZero(taken))) return WRONG
      if (credit.units === undefined && debit.units === undefined) return { units: undefined }
      return isZero(taken) ? { units: credited } : debited(taken, line)
    }
    const sum = sumOfFields(fieldsOf('amount'), amounts)
    const [sign] = fieldsOf('sign')
    // Nothing needs no sign: a line may tell the balance alone.
    if (sum.fault) return faultOf(sum)
    if (sign === undefined || sum.units === undefined || isZero(sum.units)) return sum
    // A minus beside DR may be a debit that was taken back.
    if (sum.units.paise < 0) return WRONG
    if (CREDIT.test(sign)) return sum
    return DEBIT.test(sign) ? { units: negated(sum.units) } : WRONG
  }
}

/** Whether a number may be thousands with a dot, as some countries write them, or rupees with three decimals. */
const isLikeThousands = (field: string) => /^\D*[1-9]\d{0,2}\.\d{3}(?!\d)/.test(field)

/** The sum of fields of the columns `names`, of which those with a minus are taken away; undefined where all are nothing. */
export function sumOfFields(fields: readonly string[], names: readonly string[]): RowAmount {
  let sum: Units | undefined
  for (const [index, field] of fields.entries()) {
    if (isNothing(field)) continue
    const units = readUnits(field)
    if (units === undefined) return { fault: RUPEES_RULE }
    if (isTooLarge(units.paise)) return { fault: LARGE_RULE }
    sum = plus(sum ?? NO_UNITS, names[index]?.startsWith('-') ? negated(units) : units)
  }
  return { units: sum }
}

export const withoutMinus = (name: string) => name.replace(/^-/, '')
