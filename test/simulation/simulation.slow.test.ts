import { expect, it } from 'vitest'
import { expectUnbroken } from './expect-unbroken.ts'
import { planOf } from './plan.ts'

it.each([2, 4])(
  'a month of the world of seed %i, whose books are closed, breaks no invariant',
  async (seed) => {
    const counts = await expectUnbroken(planOf({ seed, days: 31 }))
    expect(counts).toMatchObject({ orders: 31 * 8, closes: 1 })
  },
  600_000,
)
