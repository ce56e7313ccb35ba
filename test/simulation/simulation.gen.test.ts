import { expect, it } from 'vitest'
import { isGenerated } from '../support/generated.ts'
import { expectUnbroken } from './expect-unbroken.ts'
import { planOf } from './plan.ts'

/** Settings of `npm run test:simulation`. */
const { seed, days, minutes } = JSON.parse(process.env.SIMULATION ?? '{}') as Partial<
  Record<'seed' | 'days' | 'minutes', number>
>
const HOUR_MS = 3_600_000

it.runIf(!isGenerated())(
  'ten days of the world of seed 9 break no invariant',
  async () => {
    const counts = await expectUnbroken(planOf({ seed: 9, days: 10, ordersOfDay: 3 }))
    expect(counts).toMatchObject({ orders: 30, 'ops reconcile differences': 2 })
  },
  600_000,
)

it.runIf(isGenerated())(
  'no world breaks an invariant',
  async () => {
    const until = performance.now() + (minutes ?? 0) * 60_000
    for (let next = seed ?? Date.now() % 100_000; ; next += 1) {
      const since = performance.now()
      const counts = await expectUnbroken(planOf({ seed: next, days: days ?? 30 }))
      const seconds = Math.round((performance.now() - since) / 1000)
      console.log(`seed ${next}: ${seconds} s, ${JSON.stringify(counts)}`)
      if (performance.now() > until) break
    }
  },
  13 * HOUR_MS,
)
