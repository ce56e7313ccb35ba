import type { LineFault } from '../../platform/csv/csv.ts'

/** Lines of one day that may stand in any order; more are several groups. A day of 1,000,000 lines needs less than 100 MB. */
const MOST_LINES_IN_ANY_ORDER = 25_000
const DOUBTS_KEPT = 20

/**
 * Compares each line of a statement with the balance after it: a line that is missing, doubled or cut breaks the chain. The file may
 * begin with its oldest line, or with its newest, and have the lines of one day in any order. Amounts are in paise.
 */
export function createBalanceChain() {
  // A bank's export may have the names of its two columns exchanged.
  const readings = [true, false].flatMap((oldestFirst) => [1n, -1n].map((sign) => newReading(oldestFirst, sign)))
  const doubts: Doubt[] = []
  let first: Entry | undefined
  let last: Entry | undefined
  let ofDay: Entry[] = []
  let isWhole = true

  /** Adds the lines of `ofDay` to the chain of each reading. */
  function closeDay(): void {
    const lines = ofDay
    const [from, until] = [lines[0], lines.at(-1)]
    if (from === undefined || until === undefined) return
    const chains = new Map([1n, -1n].map((sign) => [sign, chainOf(lines, sign)]))
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
    last = until
    ofDay = []
  }

  return {
    /** `balance` is undefined where the bank leaves it out. */
    add(
      line: number,
      { day, amount, balance }: Omit<Entry, 'line' | 'balance'> & { balance: bigint | undefined },
    ): void {
      if (balance === undefined) isWhole = false
      if (balance === undefined || !isWhole) return
      if (ofDay[0]?.day !== day || ofDay.length === MOST_LINES_IN_ANY_ORDER) closeDay()
      const entry = { line, day, amount, balance }
      first ??= entry
      ofDay.push(entry)
    },

    /** Adds a fault of what stands above the row in line `above`: it is reported unless the balances prove that nothing is missing. */
    doubt(doubt: Doubt): void {
      if (doubts.length < DOUBTS_KEPT) doubts.push(doubt)
    },

    /**
     * What is wrong, or the balances and days of the whole file: neither where not every line has a balance, so that nothing is
     * proved. `seen` are the balances that the person saw, where the file can be read in several ways.
     */
    end(seen: { [Side in keyof Balances]?: bigint | undefined } = {}): { faults: LineFault[]; proved?: Proved } {
      closeDay()
      if (!isWhole || first === undefined || last === undefined) return { faults: doubts.map(faultOf) }
      const isReversed = first.day > last.day
      const whole = readings
        .flatMap((reading) => (reading.chain ? [{ ...reading, ...endsOf(reading, reading.chain) }] : []))
        // Of equal amounts, the balances follow from each other in both orders.
        .sort((a, b) => rank(b) - rank(a))[0]
      if (whole?.sign === 1n) {
        const [oldest, newest] = whole.oldestFirst ? [first, last] : [last, first]
        const { opening, closing } = whole
        return { faults: [], proved: { opening, closing, oldestDay: oldest.day, newestDay: newest.day } }
      }
      const { line, after, to } = readings
        .flatMap(({ broken, sign }) => (broken && sign === 1n ? [broken] : []))
        .sort((a, b) => b.line - a.line)[0] ?? { line: first.line, after: 0, to: 0 }
      if (whole) return { faults: [{ line, text: EXCHANGED }] }
      const near = doubts.filter(({ above }) => after < above && above <= to).map(faultOf)
      return { faults: near.length > 0 ? near : [{ line, text: MISSING }] }

      function rank({ oldestFirst, isAsWritten, opening, closing }: Reading & Balances): number {
        const isSeen = (seen.opening ?? opening) === opening && (seen.closing ?? closing) === closing
        return (isSeen ? 4 : 0) + (oldestFirst !== isReversed ? 2 : 0) + (isAsWritten ? 1 : 0)
      }

      /** The chain's ends; of a chain that may begin anywhere the balance that was seen, or stands at the end of the file. */
      function endsOf({ oldestFirst }: Reading, { begins, ends }: Chain): Balances {
        const atEnd = (oldestFirst ? last : first)?.balance
        const liked = [seen.closing, seen.opening, atEnd].find((one) => one !== undefined && ends.has(one))
        const closing = liked ?? ([...ends][0] as bigint)
        return { closing, opening: begins === ends ? closing : ([...begins][0] as bigint) }
      }
    },
  }
}

type Entry = { line: number; day: string; amount: bigint; balance: bigint }
type Doubt = LineFault & { above: number }
/** Balances before the oldest line and after the newest one. */
type Balances = { opening: bigint; closing: bigint }
export type Proved = Balances & { oldestDay: string; newestDay: string }

/** How the file may be meant. `broken` is the line where its chain breaks, in the lines behind `after` until `to`. */
type Reading = {
  oldestFirst: boolean
  sign: bigint
  isAsWritten: boolean
  chain: Chain | undefined
  broken: Broken | undefined
}
type Broken = { line: number; after: number; to: number }

const newReading = (oldestFirst: boolean, sign: bigint): Reading => ({
  ...{ oldestFirst, sign, isAsWritten: true },
  ...{ chain: undefined, broken: undefined },
})

/** Balances at which a chain may begin and end. It is one set where the amounts add up to 0: then it ends where it begins. */
type Chain = { begins: ReadonlySet<bigint>; ends: ReadonlySet<bigint> }

/**
 * The chain of all these lines, in whatever order, in which each begins with the balance after the one before; undefined if there is
 * none. A line leads from the balance before it to the one after it: there is such a chain where as many lines lead to each
 * balance as from it, but for the chain's ends, and all of them can be reached from its beginning (Euler).
 */
function chainOf(lines: readonly Entry[], sign: bigint): Chain | undefined {
  const next = new Map<bigint, bigint[]>()
  const surplus = new Map<bigint, number>()
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
 * The chain of the file's first lines, in its order. If they add up to 0, no line above says with which of their balances they begin,
 * and another one than the file's could hide that a line below is missing.
 */
function asWritten(lines: readonly Entry[], { oldestFirst }: Reading, { begins, ends }: Chain): Chain {
  if (begins !== ends) return { begins, ends }
  const end = new Set([(lines.at(oldestFirst ? -1 : 0) as Entry).balance])
  return { begins: end, ends: end }
}

/** The chain of the lines so far and of those below them. */
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

const faultOf = ({ line, text }: Doubt): LineFault => ({ line, text })

const EXCHANGED = 'the balances say that debit and credit are exchanged: exchange them in the layout'
const MISSING =
  'the balance does not follow from the line before: a line is missing, doubled or changed; get the file from the bank again'
