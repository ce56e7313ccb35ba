import { setTimeout as sleep, setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { fewAtOnce, fewInTime } from '../../src/db/few-at-once.ts'

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

describe('work with a key', () => {
  it('gets half of the places, and work with another key passes what waits for it', async () => {
    const inTurn = fewAtOnce(4)
    const running: string[] = []
    const never = (name: string) => () => {
      running.push(name)
      return new Promise<void>(() => undefined)
    }
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void inTurn(never(name), 'a')
    expect(running).toEqual(['a1', 'a2'])
    const done = ['b1', 'b2', 'b3'].map((name) => inTurn(async () => name, 'b'))
    expect(await Promise.all(done)).toEqual(['b1', 'b2', 'b3'])
    expect(running).toEqual(['a1', 'a2'])
  })

  it('takes turns with that of other keys for a place that is given back', async () => {
    const inTurn = fewAtOnce(1)
    const order: string[] = []
    const work = (name: string) => async () => {
      order.push(name)
      await turnOfTheLoop()
    }
    await Promise.all(['a1', 'a2', 'a3'].map((name) => inTurn(work(name), 'a')).concat(inTurn(work('b1'), 'b')))
    expect(order).toEqual(['a1', 'a2', 'b1', 'a3'])
  })

  it('is refused when half as many as may wait have its key, or when it has waited too long', async () => {
    const inTime = fewInTime({ atOnce: 2, waiting: 8, waitingMs: 20 }, () => new Error('crowded'))
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const ofA = Array.from({ length: 6 }, () => inTime(() => gate, 'a').catch((error: Error) => error.message))
    expect(await Promise.all(ofA.slice(4))).toEqual(['crowded', 'crowded'])
    expect(await inTime(async () => 'done', 'b')).toBe('done')
    await sleep(50)
    open()
    // The first one had its place at once.
    expect(await Promise.all(ofA.slice(0, 4))).toEqual([undefined, 'crowded', 'crowded', 'crowded'])
  })
})
