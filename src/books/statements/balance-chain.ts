import type { LineError } from '../../platform/csv/csv.ts'
import type { Paise } from '../../platform/money.ts'

/**
 * Largest number of consecutive lines on one day that may be in any order. Longer days are split, so that a day with
 * 1,000,000 lines needs less than 100 MB.
 */
const MOST_LINES_IN_ANY_ORDER = 25_000
const DOUBTS_STORED = 20

/**
 * Checks each statement line against the balance after the line, because a missing, duplicated or truncated line breaks
 * the chain of balances. The file may start with its oldest or newest line, and the lines of one day may be in any
 * order. Amounts are in paise.
 */
export function createBalanceChain() {
  // Also tries sign -1, because some bank exports swap the names of the debit and credit columns.
  const readings = [true, false].flatMap((oldestFirst) => [1, -1].map((sign) => newReading(oldestFirst, sign)))
  const doubts: Doubt[] = []
  const looseDoubts: Doubt[] = []
  let signDoubt: LineError | undefined
  let first: Entry | undefined
  let last: Entry | undefined
  let ofFirstDay: readonly Entry[] = []
  let ofDay: Entry[] = []
  let isWhole = true

  /** Adds the lines of the finished day to the chain in each reading of the file. */
  function closeDay(): void {
    const lines = ofDay
    const [from, until] = [lines[0], lines.at(-1)]
    if (from === undefined || until === undefined) return
    const chains = new Map([1, -1].map((sign) => [sign, chainOf(lines, sign)]))
    for (const reading of readings.filter(({ broken }) => broken === undefined)) {
      const inside = lines.find((entry, at) => at > 0 && !follows(lines[at - 1], entry, reading))
      const off = follows(last, from, reading) ? inside : from
      if (off) reading.isAsWritten = false
      const chain = chains.get(reading.sign)
      if (last !== undefined) reading.chain = reading.chain && chain && joined(reading, reading.chain, chain)
      else reading.chain = inside === undefined && chain ? asWritten(lines, reading, chain) : chain
      if (reading.chain === undefined)
        reading.broken = { line: (off ?? from).line, after: last?.line ?? 0, to: until.line }
    }
    if (last === undefined) ofFirstDay = lines
    last = until
    ofDay = []
  }

  /**
   * Returns the error for an amount of the oldest day whose sign is doubtful, because no balance before the amount is
   * known.
   */
  function errorOfOldest(lines: readonly Entry[], { opening }: Balances): LineError[] {
    const oldest = lines.find(({ amount, balance, isBare }) => isBare && balance - amount === opening)
    return oldest ? [{ line: oldest.line, text: UNPROVED_SIGN }] : []
  }

  return {
    /** `balance` is undefined if the bank omits the balance. */
    add(
      line: number,
      { day, amount, balance, isBare }: Omit<Entry, 'line' | 'balance'> & { balance: Paise | undefined },
    ): void {
      if (balance === undefined) isWhole = false
      if (balance === undefined || !isWhole) return
      if (ofDay[0]?.day !== day || ofDay.length === MOST_LINES_IN_ANY_ORDER) closeDay()
      const entry = { line, day, amount, balance, isBare }
      first ??= entry
      ofDay.push(entry)
    },

    /**
     * Records a possible error. The error is reported only if the balances do not prove that the file is complete: if
     * they break at the line `above`, or if they cannot be checked.
     */
    doubt(doubt: Doubt): void {
      const alike = doubt.above === undefined ? looseDoubts : doubts
      if (alike.length < DOUBTS_STORED) alike.push(doubt)
    },

    /** Records that the file marks some amounts as credits, and others not. The balances must prove the signs. */
    doubtSigns(error: LineError): void {
      signDoubt ??= error
    },

    /**
     * Returns the errors, or the balances and days of the complete file. Returns neither errors nor balances if a line
     * lacks a balance, because only a complete series of balances proves that the file is complete. `seen` contains the
     * balances that the operator entered, which decide between several possible readings.
     */
    end(seen: { [Side in keyof Balances]?: Paise | undefined } = {}): { errors: LineError[]; proved?: Proved } {
      const lines = ofDay
      closeDay()
      const ofSigns = signDoubt ? [signDoubt] : []
      if (!isWhole || first === undefined || last === undefined)
        return { errors: [...doubts, ...looseDoubts, ...ofSigns].map(errorOf) }
      const isReversed = first.day > last.day
      const whole = readings
        .flatMap((reading) => (reading.chain ? [{ ...reading, ...endsOf(reading, reading.chain) }] : []))
        // If all amounts are equal, both orders of the lines form a valid chain, so the rank decides.
        .sort((a, b) => rank(b) - rank(a))[0]
      if (whole?.sign === 1) {
        const [oldest, newest] = whole.oldestFirst ? [first, last] : [last, first]
        const { opening, closing } = whole
        const ofOldest =
          signDoubt && seen.opening === undefined ? errorOfOldest(whole.oldestFirst ? ofFirstDay : lines, whole) : []
        if (ofOldest.length > 0) return { errors: ofOldest }
        return { errors: [], proved: { opening, closing, oldestDay: oldest.day, newestDay: newest.day } }
      }
      const { line, after, to } = readings
        .flatMap(({ broken, sign }) => (broken && sign === 1 ? [broken] : []))
        .sort((a, b) => b.line - a.line)[0] ?? { line: first.line, after: 0, to: 0 }
      if (whole) return { errors: [{ line, text: EXCHANGED }] }
      const near = [...ofSigns, ...doubts.filter(({ above = 0 }) => after < above && above <= to)].map(errorOf)
      return { errors: near.length > 0 ? near : [{ line, text: MISSING }] }

      function rank({ oldestFirst, isAsWritten, opening, closing }: Reading & Balances): number {
        const isSeen = (seen.opening ?? opening) === opening && (seen.closing ?? closing) === closing
        return (isSeen ? 4 : 0) + (oldestFirst !== isReversed ? 2 : 0) + (isAsWritten ? 1 : 0)
      }

      /**
       * Returns the chain's first and last balance. If the chain may begin at any of several balances, the balance that
       * the operator entered takes precedence, then the balance at the end of the file.
       */
      function endsOf({ oldestFirst }: Reading, { begins, ends }: Chain): Balances {
        const atEnd = (oldestFirst ? last : first)?.balance
        const liked = [seen.closing, seen.opening, atEnd].find((one) => one !== undefined && ends.has(one))
        const closing = liked ?? ([...ends][0] as Paise)
        return { closing, opening: begins === ends ? closing : ([...begins][0] as Paise) }
      }
    },
  }
}

/** A line. `isBare` is true if the file states no sign for the amount. */
type Entry = { line: number; day: string; amount: Paise; balance: Paise; isBare?: boolean | undefined }
type Doubt = LineError & { above?: number }
/** The balance before the oldest line and the balance after the newest line. */
type Balances = { opening: Paise; closing: Paise }
export type Proved = Balances & { oldestDay: string; newestDay: string }

/**
 * One interpretation of the order and signs in the file. `broken` is the place where the chain breaks: at `line`, among
 * the lines after `after` up to `to`.
 */
type Reading = {
  oldestFirst: boolean
  sign: Paise
  isAsWritten: boolean
  chain: Chain | undefined
  broken: Broken | undefined
}
type Broken = { line: number; after: number; to: number }

const newReading = (oldestFirst: boolean, sign: Paise): Reading => ({
  ...{ oldestFirst, sign, isAsWritten: true },
  ...{ chain: undefined, broken: undefined },
})

/**
 * The balances at which a chain may begin and end. If the amounts add up to 0, both sets are the same, because the
 * chain ends where it begins.
 */
type Chain = { begins: ReadonlySet<Paise>; ends: ReadonlySet<Paise> }

/**
 * Returns the chain through all these lines in any order, or undefined if no chain exists. Each line is an edge from
 * the balance before the line to the balance after the line, so a chain is an Eulerian path. Except at the two ends, as
 * many edges enter a balance as leave it, and all balances are reachable from the start.
 */
function chainOf(lines: readonly Entry[], sign: Paise): Chain | undefined {
  const next = new Map<Paise, Paise[]>()
  const surplus = new Map<Paise, number>()
  for (const { amount, balance } of lines) {
    const before = balance - sign * amount
    const others = next.get(before)
    if (others) others.push(balance)
    else next.set(before, [balance])
    surplus.set(before, (surplus.get(before) ?? 0) + 1)
    surplus.set(balance, (surplus.get(balance) ?? 0) - 1)
  }
  const uneven = [...surplus].filter(([, more]) => more !== 0)
  if (uneven.length > 2 || uneven.some(([, more]) => Math.abs(more) > 1)) return undefined
  const [begin] = uneven.find(([, more]) => more === 1) ?? [...surplus][0] ?? []
  const [end] = uneven.find(([, more]) => more === -1) ?? []
  const reached = new Set(begin === undefined ? [] : [begin])
  for (const balance of reached) for (const to of next.get(balance) ?? []) reached.add(to)
  if (begin === undefined || reached.size < surplus.size) return undefined
  return end === undefined ? { begins: reached, ends: reached } : { begins: new Set([begin]), ends: new Set([end]) }
}

/**
 * Returns the chain of the file's first lines in file order. If their amounts add up to 0, no earlier line determines
 * the starting balance, and a wrong starting balance could hide that a line is missing below.
 */
function asWritten(lines: readonly Entry[], { oldestFirst }: Reading, { begins, ends }: Chain): Chain {
  if (begins !== ends) return { begins, ends }
  const end = new Set([(lines.at(oldestFirst ? -1 : 0) as Entry).balance])
  return { begins: end, ends: end }
}

/**
 * Returns the chain of the lines above joined with the chain of the lines below, or undefined if their balances do not
 * meet.
 */
function joined({ oldestFirst }: Reading, above: Chain, below: Chain): Chain | undefined {
  const [older, newer] = oldestFirst ? [above, below] : [below, above]
  const common = new Set([...older.ends].filter((balance) => newer.begins.has(balance)))
  if (common.size === 0) return undefined
  return {
    begins: older.begins === older.ends ? common : older.begins,
    ends: newer.begins === newer.ends ? common : newer.ends,
  }
}

function follows(above: Entry | undefined, below: Entry, { oldestFirst, sign }: Reading): boolean {
  const [older, newer] = oldestFirst ? [above, below] : [below, above]
  return older === undefined || newer === undefined || newer.balance === older.balance + sign * newer.amount
}

const errorOf = ({ line, text }: Doubt): LineError => ({ line, text })

const EXCHANGED = 'the balances show that debit and credit are swapped: swap them in the layout'
const UNPROVED_SIGN =
  'the amount has no Cr, unlike others, and no earlier balance proves that it is a credit: add --opening with the balance before it to the import'
const MISSING =
  'the balance does not follow from the line before: a line is missing, duplicated or changed; download the file from the bank again'
