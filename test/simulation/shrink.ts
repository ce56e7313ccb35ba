import type { Plan } from './plan.ts'

/** Number of worlds that a search may let happen. */
const MOST_WORLDS = 30

/**
 * Leaves out orders and crashes of a plan, as long as the world still breaks an invariant. Returns the smallest plan that was
 * found.
 */
export async function shrink(plan: Plan, isBroken: (plan: Plan) => Promise<boolean>): Promise<Plan> {
  let smallest = plan
  let left = MOST_WORLDS
  const accepts = async (smaller: Plan) => {
    left -= 1
    if (!(await isBroken(smaller))) return false
    smallest = smaller
    return true
  }
  await accepts({ ...plan, orders: plan.orders.map((order) => ({ ...order, crash: undefined })) })
  for (let size = Math.ceil(smallest.orders.length / 2); size >= 1 && left > 0; size = Math.floor(size / 2)) {
    for (let from = 0; from < smallest.orders.length && left > 0; ) {
      const orders = smallest.orders.filter((_, index) => index < from || index >= from + size)
      if (!(await accepts({ ...smallest, orders }))) from += size
    }
  }
  return smallest
}
