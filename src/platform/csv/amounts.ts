/** The one grammar of rupees in the files of banks and acquirers. Nothing is ever a float. */

/** Decimals of a rupee that are read exactly; fees of some acquirers have more than two. */
const DECIMALS = 20
/** Units of a paisa. */
export const PER_PAISA = 10n ** BigInt(DECIMALS - 2)

export const RUPEES_RULE = 'must be rupees with at most two decimals, such as 1,450.50'

/** Words for nothing, alone or behind a currency. */
const NOTHING = /^(?:₹|rs\.?|inr)?\s*(?:[-–—−]+|nil|n\.?\/?a\.?|null|none|nan)?$/i

/** Whether the field says that there is nothing. */
export const isNothing = (field: string): boolean => !/^\d/.test(field) && NOTHING.test(field.trim())

const WORD = '(?:credit|debit|[cd]r?)(?![a-z])\\.?'
const CURRENCY = '(?:₹|(?:rs|inr)(?![a-z])\\.?)'
const MARK = `\\( ?${WORD} ?\\)|${WORD}|${CURRENCY}|/-|[-+()]`
const AMOUNT = new RegExp(`^((?:(?:${MARK}) ?)*)(\\d[\\d,]*(?:\\.\\d*)?|\\.\\d+)((?: ?(?:${MARK}))*)$`, 'i')
const MARKS = new RegExp(MARK, 'gi')
const PLAIN = /^(\d{1,12})(?:\.(\d{1,2}))?$/
/** Digits in groups, as in India or in thousands; at most 12 digits. */
const WHOLE = /^(?:\d+|\d{1,3}(?:,\d{2,3})*,\d{3})$/

/**
 * Reads rupees such as `1,450.50`, `₹ -450`, `450.00-`, `(450.00)`, `Rs.12.3600` or `609894.61 (Dr)`. Returns units of 10^-20 rupees,
 * negative for a minus, brackets or DR; undefined for other text, and for marks that contradict each other.
 */
export function readUnits(written: string): bigint | undefined {
  // Nearly every field; the whole grammar takes ten times as long.
  const [plain, rupees = '', rest = ''] = PLAIN.exec(written) ?? []
  if (plain !== undefined) return BigInt(rupees + rest.padEnd(DECIMALS, '0'))
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
  if (!WHOLE.test(whole || '0') || digits.length > 12 || decimals.length > DECIMALS) return undefined
  const isNegative = signOf(before, behind)
  if (isNegative === undefined) return undefined
  const units = BigInt(digits + decimals.padEnd(DECIMALS, '0'))
  return isNegative ? -units : units
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

/** What a column beside the amount says: 1 for a credit, -1 for a debit, undefined for anything else. */
const readSign = (field: string): bigint | undefined => (CREDIT.test(field) ? 1n : DEBIT.test(field) ? -1n : undefined)

/** Paise of units; undefined where they are no whole paise. */
export const exactPaise = (units: bigint): bigint | undefined =>
  units % PER_PAISA === 0n ? units / PER_PAISA : undefined

/** Paise of units, half a paisa away from 0. */
export function roundedPaise(units: bigint): bigint {
  const [sign, size] = units < 0n ? [-1n, -units] : [1n, units]
  return sign * ((size + PER_PAISA / 2n) / PER_PAISA)
}

/** Paise of an amount of the grammar; undefined for other text, and for parts of a paisa, since no amount is rounded. */
export function readPaise(written: string): bigint | undefined {
  const units = readUnits(written)
  return units === undefined ? undefined : exactPaise(units)
}

/** A row's amount in units, or what is wrong with it. Nothing is undefined. */
export type RowAmount = { units: bigint | undefined; fault?: never } | { units?: never; fault: string }

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
  const WRONG = { fault: `${called.join(' and ')} ${rule}` }
  const AMBIGUOUS = { fault: `${called.join(' and ')} must not have three decimals: 1.450 may be 1,450.00 or 1.45` }
  let debits: { areNegative: boolean; line: number } | undefined

  /** The units of a debit, whose sign is that of the first one of the file. */
  function debited(units: bigint, line: number): RowAmount {
    if (units === 0n) return { units }
    debits ??= { areNegative: units < 0n, line }
    const isLikeFirst = debits.areNegative === units < 0n
    if (isLikeFirst) return { units: units < 0n ? units : -units }
    const [here, there] = units < 0n ? ['has', 'has not'] : ['has not', 'has']
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
      if (credit.fault || debit.fault) return WRONG
      const [credited = 0n, taken = 0n] = [credit.units, debit.units]
      if (credited < 0n || (credited !== 0n && taken !== 0n)) return WRONG
      if (credit.units === undefined && debit.units === undefined) return { units: undefined }
      return taken === 0n ? { units: credited } : debited(taken, line)
    }
    const sum = sumOfFields(fieldsOf('amount'), amounts)
    const [sign] = fieldsOf('sign')
    // Nothing needs no sign: a line may tell the balance alone.
    if (sum.fault || sign === undefined || !sum.units) return sum.fault ? WRONG : sum
    const factor = readSign(sign)
    // A minus beside DR may be a debit that was taken back.
    return factor === undefined || sum.units < 0n ? WRONG : { units: factor * sum.units }
  }
}

/** Whether a number may be thousands with a dot, as some countries write them, or rupees with three decimals. */
const isLikeThousands = (field: string) => /^\D*[1-9]\d{0,2}\.\d{3}(?!\d)/.test(field)

/** The sum of fields of the columns `names`, of which those with a minus are taken away; undefined where all are nothing. */
export function sumOfFields(fields: readonly string[], names: readonly string[]): RowAmount {
  let sum: bigint | undefined
  for (const [index, field] of fields.entries()) {
    if (isNothing(field)) continue
    const units = readUnits(field)
    if (units === undefined) return { fault: 'must be rupees' }
    sum = (sum ?? 0n) + (names[index]?.startsWith('-') ? -units : units)
  }
  return { units: sum }
}

export const withoutMinus = (name: string) => name.replace(/^-/, '')
