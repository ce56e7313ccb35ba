import type { LineFault } from '../csv.ts'

/**
 * Holds each line of a statement against the balance after it: a line that is missing, doubled or cut breaks the chain. The file may
 * begin with its oldest line, or with its newest. Amounts are in paise.
 */
export function createBalanceChain() {
  // A bank's export may have the names of its two columns exchanged.
  const readings = [true, false].flatMap((oldestFirst) =>
    [1n, -1n].map((sign) => ({ oldestFirst, sign, brokenAt: undefined as number | undefined })),
  )
  let first: Entry | undefined
  let last: Entry | undefined
  let isWhole = true

  return {
    /** `balance` is undefined where the bank leaves it out. */
    add(line: number, entry: Entry): void {
      if (entry.balance === undefined) isWhole = false
      if (last !== undefined && isWhole) {
        for (const reading of readings) {
          const [older, newer] = reading.oldestFirst ? [last, entry] : [entry, last]
          if (newer.balance !== (older.balance as bigint) + reading.sign * newer.amount) reading.brokenAt ??= line
        }
      }
      first ??= entry
      last = entry
    },

    /** What is wrong, or the newest line and the last one of the file: neither where not every line has a balance, so that nothing is proved. */
    end(): { faults: LineFault[]; newest?: Entry; last?: Entry } {
      if (!isWhole || first === undefined || last === undefined) return { faults: [] }
      const isReversed = first.day > last.day
      const wholes = readings.filter(({ brokenAt }) => brokenAt === undefined)
      // Of equal amounts, the balances follow from each other in both orders.
      const whole = wholes.find(({ oldestFirst }) => oldestFirst !== isReversed) ?? wholes[0]
      if (whole?.sign === 1n) return { faults: [], newest: whole.oldestFirst ? last : first, last }
      const line = Math.max(...readings.filter(({ sign }) => whole || sign === 1n).map(({ brokenAt = 2 }) => brokenAt))
      return { faults: [{ line, text: whole ? EXCHANGED : MISSING }] }
    },
  }
}

type Entry = { day: string; amount: bigint; balance: bigint | undefined }

const EXCHANGED = 'the balances say that debit and credit are exchanged: exchange them in the layout'
const MISSING =
  'the balance does not follow from the line before: a line is missing, doubled or changed; get the file from the bank again'
