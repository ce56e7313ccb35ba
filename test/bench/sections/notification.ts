import { NOTIFY, notification, sign } from '../../support/acquirer.ts'
import type { FormRequest } from '../../support/requests.ts'
import { newMerchant } from '../../support/tenants.ts'
import type { WorkspaceDatabase } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { SECRET, type Service, startContender, startOurs, typical } from '../contenders.ts'
import { type Side, sideBySide } from '../side-by-side.ts'
import { fillOrders, orderIdOf } from '../tables.ts'

/** More notifications a second than any contender accepts. The 60,001 requests of a round are prepared in 0.6 s, as 22 MB. */
const MOST_PER_SECOND = 15_000
/** More orders than the warm-up and all rounds have requests for, which take 40 s together. */
const ORDERS = 41 * MOST_PER_SECOND

/** Measures the acquirer's notification of a payment, each for another order. */
export const notifications: Section = async (bench) => {
  const sides = await Promise.all([
    side(await bench.createDatabase('notification_ours'), startOurs),
    side(await bench.createComparedDatabase('notification_typical'), first),
  ])
  return async () => {
    const [ours, typical] = await Promise.all(sides.map((prepare) => prepare()))
    const finding = await sideBySide(
      bench,
      'paymentNotification that pays an order',
      { ours: ours as Side, typical: typical as Side },
      { costAtMost: 1.3 },
    )
    await Promise.all([ours, typical].map((one) => one?.service.stop()))
    return [finding]
  }
}

const first = (url: string) => startContender(typical(url))

async function side({ db, url }: WorkspaceDatabase, startService: (url: string) => Promise<Service>) {
  const { mid } = await newMerchant(db)
  await fillOrders(db, ORDERS, [mid])
  let next = 1
  /** Signed just before they are sent, because a signature is valid for 300 s. */
  const requests = (seconds: number) =>
    Array.from({ length: 1 + seconds * MOST_PER_SECOND }, (): FormRequest => {
      const now = new Date()
      const body = notification(orderIdOf(next++), { paidAt: now.toISOString() })
      const headers = { 'content-type': 'application/json', 'x-signature': sign(body, now, SECRET) }
      return { method: 'POST', path: NOTIFY, headers, body }
    })
  return async (): Promise<Side> => ({ service: await startService(url), requests, mode: 'once' })
}
