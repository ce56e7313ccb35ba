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
  let previous: Entry | undefined
  let isWhole = true

  return {
    /** `balance` is undefined where the bank leaves it out. */
    add(line: number, amount: bigint, balance: bigint | undefined): void {
      if (balance === undefined) isWhole = false
      const entry = { amount, balance: balance ?? 0n }
      if (previous !== undefined && isWhole) {
        for (const reading of readings) {
          const [older, newer] = reading.oldestFirst ? [previous, entry] : [entry, previous]
          if (newer.balance !== older.balance + reading.sign * newer.amount) reading.brokenAt ??= line
        }
      }
      first ??= entry
      previous = entry
    },

    /** What is wrong; or the newest balance, undefined where not every line has one, so that nothing is proved. */
    end(): (LineFault & { newest?: never }) | { text?: never; newest: bigint | undefined } {
      const whole = readings.find(({ brokenAt }) => brokenAt === undefined)
      if (!isWhole || first === undefined) return { newest: undefined }
      if (whole?.sign === 1n) return { newest: (whole.oldestFirst ? previous : first)?.balance }
      const line = Math.max(...readings.filter(({ sign }) => whole || sign === 1n).map(({ brokenAt = 2 }) => brokenAt))
      return { line, text: whole ? EXCHANGED : MISSING }
    },
  }
}

type Entry = { amount: bigint; balance: bigint }

const EXCHANGED = 'the balances say that debit and credit are exchanged: exchange them in the layout'
const MISSING =
  'the balance does not follow from the line before: a line is missing, doubled or changed; get the file from the bank again'

export type BalanceChain = ReturnType<typeof createBalanceChain>
