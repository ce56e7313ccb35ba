import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { fewAtOnce } from '../../src/db/few-at-once.ts'

it('runs at most so many pieces of work at once, in the order of the calls, and goes on after one that failed', async () => {
  const inTurn = fewAtOnce(3)
  const begun: number[] = []
  let running = 0
  let most = 0
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) =>
      inTurn(async () => {
        begun.push(i)
        most = Math.max(most, ++running)
        await turnOfTheLoop()
        running--
        if (i === 5) throw new Error('away')
        return i
      }),
    ),
  )
  expect(most).toBe(3)
  expect(begun).toEqual(Array.from({ length: 20 }, (_, i) => i))
  expect(results.flatMap((result, i) => (result.status === 'rejected' ? [i] : []))).toEqual([5])
})
