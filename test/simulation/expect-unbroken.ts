import type { Plan } from './plan.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulate.ts'

/** How often a broken world is repeated, because the order of concurrent statements is PostgreSQL's. */
const REPEATS = 10

/**
 * Lets a planned world happen. Returns what happened how often. If the world breaks an invariant, throws an error with the diary
 * of the smallest plan that breaks one, and with the rate at which that plan breaks it.
 */
export async function expectUnbroken(plan: Plan): Promise<Record<string, number>> {
  const { broken, diary, counts } = await simulate(plan)
  if (broken.length === 0) return counts
  const [first] = broken
  console.log(`seed ${plan.seed} breaks an invariant, and is shrunk: ${first}\n${diary.join('\n')}`)
  const isBroken = async (smaller: Plan) => (await simulate(smaller)).broken.length > 0
  const smallest = await shrink(plan, isBroken)
  const last = await simulate(smallest)
  let times = 0
  for (let repeat = 0; repeat < REPEATS; repeat += 1) if (await isBroken(smallest)) times += 1
  const orders = smallest.orders.map(({ number }) => number).join(', ')
  throw new Error(
    `seed ${plan.seed} breaks an invariant: ${broken.join('\n')}\nIts orders ${orders} alone break one in ${times} of ` +
      `${REPEATS} worlds: ${last.broken.join('\n')}\n${last.diary.join('\n')}`,
  )
}
