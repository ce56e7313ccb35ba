import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBalanceChain } from '../../src/books/statements/balance-chain.ts'

/** A statement line: its day, its amount and the balance after it. */
type Line = { day: string; amount: number; balance: number; isBare?: boolean }

function read(lines: readonly Line[], seen = {}) {
  const chain = createBalanceChain()
  for (const [at, line] of lines.entries()) chain.add(at + 2, line)
  return chain.end(seen)
}

/** Creates lines with these amounts, grouped by day, after a balance of `opening`. */
function statement(days: readonly (readonly number[])[], opening = 0): Line[][] {
  let balance = opening
  return days.map((amounts, at) =>
    amounts.map((amount) => {
      balance += amount
      return { day: `2026-11-${String(at + 1).padStart(2, '0')}`, amount, balance }
    }),
  )
}

const permutations = <T>(items: readonly T[]): T[][] =>
  items.length < 2
    ? [[...items]]
    : items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((others) => [item, ...others]))

const follow = (lines: readonly Line[], sign: number) =>
  lines.every((line, at) => at === 0 || line.balance === (lines[at - 1] as Line).balance + sign * line.amount)

/** Returns whether each day's lines have an order in which every balance follows, by trying all orders. */
function isWhole(lines: readonly Line[], sign: number): boolean {
  const runs: Line[][] = []
  for (const line of lines) {
    if (runs.at(-1)?.[0]?.day === line.day) runs.at(-1)?.push(line)
    else runs.push([line])
  }
  return [runs, runs.map((run) => run.toReversed()).toReversed()].some((ordered) => {
    // If the first lines follow each other as written, that order is the only one allowed.
    const orders = ordered.map((run) =>
      run.includes(lines[0] as Line) && follow(run, sign) ? [run] : permutations(run),
    )
    const tried = (before: readonly Line[], [first, ...others]: readonly Line[][][]): boolean =>
      first === undefined ||
      first.some((order) => follow([...before.slice(-1), ...order], sign) && tried(order, others))
    return tried([], orders)
  })
}

const amount = fc.integer({ min: -3, max: 3 })
const days = fc.array(fc.array(amount, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 })
const shuffled = (lines: readonly Line[], keys: readonly number[]) =>
  lines
    .map((line, at) => ({ line, key: keys[at % keys.length] ?? 0 }))
    .sort((a, b) => a.key - b.key)
    .map(({ line }) => line)
const keys = fc.array(fc.nat(20), { minLength: 1, maxLength: 8 })

describe('the chain of balances', () => {
  it('accepts a bank statement if and only if the rows of each day can be ordered so that every balance follows from the previous balance', () => {
    const file = fc
      .record({
        days,
        keys,
        isReversed: fc.boolean(),
        cut: fc.option(fc.nat(15)),
        twin: fc.option(fc.nat(15)),
        wrong: fc.option(fc.record({ at: fc.nat(15), by: amount })),
      })
      .map(({ days, keys, isReversed, cut, twin, wrong }) => {
        const whole = statement(days)
          .flatMap((lines) => shuffled(lines, keys))
          .filter((_, at) => at !== cut)
        const lines = (isReversed ? whole.toReversed() : whole).flatMap((line, at) =>
          at === twin ? [line, line] : line,
        )
        return lines.map((line, at) => (at === wrong?.at ? { ...line, balance: line.balance + wrong.by } : line))
      })
      .filter((lines) => lines.length > 0 && lines.length <= 12)
    const outcomes = { accepted: 0, rejected: 0 }
    fc.assert(
      fc.property(file, (lines) => {
        const { errors, proved } = read(lines)
        if (errors[0]?.text.includes('are swapped')) expect(isWhole(lines, -1)).toBe(true)
        else expect(proved !== undefined).toBe(isWhole(lines, 1))
        outcomes[proved ? 'accepted' : 'rejected'] += 1
      }),
      { numRuns: 3_000 },
    )
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(300)
  })

  it("the balance chain accepts a complete file with each day's lines in any order, and returns its opening and closing balance", () => {
    fc.assert(
      fc.property(days, keys, amount, fc.boolean(), (days, keys, opening, isReversed) => {
        const whole = statement(days, opening)
        const closing = whole.flat().at(-1)?.balance as number
        const lines = whole.flatMap((one) => shuffled(one, keys))
        // Lines that add up to 0 may begin with any of their balances; at the start of a file, only the written order counts.
        fc.pre(days.at(isReversed ? -1 : 0)?.reduce((sum, one) => sum + one, 0) !== 0)
        const { errors, proved } = read(isReversed ? lines.toReversed() : lines, { opening, closing })
        expect(errors).toEqual([])
        expect(proved).toMatchObject({ opening, closing })
      }),
    )
  })

  it('the balance chain rejects a file in which a line of a middle day is missing', () => {
    // Each amount is a distinct power of two, so that no other amounts add up to it.
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 5 })
    fc.assert(
      fc.property(sizes, keys, fc.nat(100), fc.nat(100), fc.boolean(), (sizes, keys, day, line, isReversed) => {
        let last = 1
        const next = () => {
          last *= -2
          return last
        }
        const whole = statement(sizes.map((size) => Array.from({ length: size }, next)))
        const gap = 1 + (day % (whole.length - 2))
        const files = whole.map((one, at) => (at === gap ? one.toSpliced(line % one.length, 1) : one))
        const lines = files.flatMap((one) => shuffled(one, keys))
        const { errors, proved } = read(isReversed ? lines.toReversed() : lines)
        expect(proved).toBeUndefined()
        expect(errors).toEqual([{ line: expect.any(Number), text: expect.stringMatching(/a line is missing/) }])
      }),
    )
  })

  it('the balance chain rejects a missing line between equal days of an account that is emptied every day', () => {
    const [first, second, third] = statement([
      [100, -100],
      [100, -100],
      [100, -100],
    ]) as [Line[], Line[], Line[]]
    expect(read([...first, ...second.slice(1), ...third]).errors).toEqual([
      { line: 4, text: expect.stringMatching(/a line is missing/) },
    ])
  })

  it.each([
    ['oldest', false],
    ['newest', true],
  ])(
    'the balance chain does not prove the sign of the oldest amount in a file that marks only other amounts, with the %s line first',
    (_, isReversed) => {
      const [first, second] = statement([[120], [350, -50]]) as [Line[], Line[]]
      const opened = (lines: Line[], seen = {}) => {
        const chain = createBalanceChain()
        for (const [at, line] of (isReversed ? lines.toReversed() : lines).entries()) chain.add(at + 2, line)
        chain.doubtSigns({ line: 3, text: 'has no Cr' })
        return chain.end(seen)
      }
      const bare = first.map((line) => ({ ...line, isBare: true }))
      const oldest = isReversed ? 4 : 2
      expect(opened([...bare, ...second])).toEqual({
        errors: [{ line: oldest, text: expect.stringMatching(/no earlier balance proves .* add --opening/) }],
      })
      expect(opened([...bare, ...second], { opening: 0 }).proved).toMatchObject({ opening: 0, closing: 420 })
      expect(opened([...first, ...second.map((line) => ({ ...line, isBare: true }))]).errors).toEqual([])
    },
  )

  it('the balance chain reads 200,000 lines of one day in file order', () => {
    const [lines] = statement([Array.from({ length: 200_000 }, (_, at) => (at % 7) - 3)])
    expect(read(lines as Line[]).errors).toEqual([])
  })
})
