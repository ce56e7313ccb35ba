import { vi } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { startBanks } from './banks.ts'
import { checkAtEnd, checkQuietly, noExceptionIsObsolete } from './invariants.ts'
import { createMerchants, type KnownOrder } from './merchants.ts'
import { createOperators, dayOf } from './operators.ts'
import { DAY_MS, type Plan } from './plan.ts'
import { BEGIN, createWorld, QUIET, startBalancer } from './world.ts'

/** Days without a movement of money after which the world ends: everything is paid out, refunded and judged. */
const QUIET_DAYS = 6
const HOUR_MS = 3_600_000

export type Simulated = { broken: string[]; diary: string[]; counts: Record<string, number> }

/** Lets a planned world happen. Returns the invariants that it broke, and its diary until then. */
export async function simulate(plan: Plan): Promise<Simulated> {
  vi.useFakeTimers({ toFake: ['Date'], now: BEGIN })
  const world = await createWorld(plan.seed)
  const receiver = await startReceiver()
  const balancer = await startBalancer((path, headers, body) => {
    const kept = Object.entries(headers).filter(
      ([name]) => name.startsWith('x-') || /^(content-type|authorization)$/.test(name),
    )
    return world.request({ method: 'POST', path, headers: Object.fromEntries(kept), body })
  })
  const broken: string[] = []
  try {
    const { url, db } = await createTestDatabase()
    const banks = await startBanks(balancer.url, world.today)
    await world.start(url, db, banks.settings)
    const merchants = await createMerchants({ plan, world, banks, db, receiver })
    const forms = plan.merchants.map(({ form }) => form)
    const operators = await createOperators({ url, db, world, banks, merchants, forms })
    const scene = { plan, world, banks, merchants, operators, db, receiver }
    planDay(0)
    await world.run()
    await operators.week()
    await world.run()
    await merchants.readRefunds(() => true)
    await merchants.readStatuses(() => true)
    broken.push(...(await checkAtEnd(scene)))

    /** Plans the next day when a day begins, until nothing has moved for some days. */
    function planDay(day: number) {
      const at = (hours: number) => day * DAY_MS + hours * HOUR_MS
      world.plan(at(0), 'day', async () => {
        for (const order of plan.orders) if (Math.floor(order.at / DAY_MS) === day) merchants.plan(order)
        for (const order of plan.orders) {
          if (Math.floor(order.at / DAY_MS) + (order.dispute?.afterDays ?? Number.NaN) !== day) continue
          const known = merchants.orders.find((one) => one.plan === order)
          if (known) world.plan(at(15), 'dispute', () => operators.dispute(known))
        }
        for (let hour = 1; hour < 24; hour += 4) world.work(hour * 3_600)
      })
      if (day > 0) {
        world.plan(at(6), 'late reports', () => banks.sendLate())
        world.plan(at(11), 'morning', () => operators.morning())
        world.plan(at(10), QUIET, async () => {
          broken.push(...(await noExceptionIsObsolete(scene)))
        })
        world.plan(at(20), 'evening', () => operators.evening(day > plan.days))
        world.plan(at(13), QUIET, async () => {
          banks.noteRefunds()
          const isYoung = (days: number) => (order: KnownOrder) => at(0) - order.plan.at < days * DAY_MS
          await merchants.readRefunds(isYoung(20))
          await merchants.readStatuses(isYoung(2))
          broken.push(...(await checkQuietly(scene)))
          if (broken.length > 0) throw new Error('an invariant is broken')
        })
      }
      if (day % 7 === 6 || day === plan.days + 1) world.plan(at(12), 'week', () => operators.week())
      const month = dayOf(day - 5).slice(0, 7)
      if (dayOf(day).endsWith('-05') && day > 5) world.plan(at(14), 'close', () => operators.close(month))
      world.plan(at(23), 'night', async () => {
        const isQuiet = banks.movements.every((one) => one.day < dayOf(day - QUIET_DAYS))
        if (day < plan.days || !isQuiet) planDay(day + 1)
      })
    }
  } catch (error) {
    if (broken.length === 0) broken.push(`${(error as Error).stack}`)
  } finally {
    await world.stop()
    receiver.close()
    balancer.server.closeAllConnections()
    balancer.server.close()
    vi.useRealTimers()
  }
  return { broken, diary: world.diary, counts: world.counts }
}
