import { expect, it } from 'vitest'
import { expectUnbroken } from './expect-unbroken.ts'
import { planOf } from './plan.ts'

it('a month of the world of seed 2, whose books are closed, breaks no invariant', async () => {
  const counts = await expectUnbroken(planOf({ seed: 2, days: 31 }))
  expect(counts).toMatchObject({ orders: 31 * 8, closes: 1 })
}, 600_000)
