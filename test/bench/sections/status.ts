import { asRole } from '../../support/database-url.ts'
import { type FormRequest, statusRequest } from '../../support/requests.ts'
import type { NewMerchant } from '../../support/tenants.ts'
import type { Section } from '../bench.ts'
import { startContender, startOurs, typical } from '../contenders.ts'
import { sideBySide } from '../side-by-side.ts'
import { fillOrders, newMerchants, orderIdOf } from '../tables.ts'

const ORDERS = 20_000
/** The largest number of orders that fits in one argument of a process. */
const POLLED = 200

/**
 * Measures checkPaymentStatus of pending orders, which every client polls: first the orders of one merchant, then
 * those of all merchants in turn.
 */
export const status: Section = async (bench) => {
  const { db, url } = await bench.createDatabase('status')
  const merchants = await newMerchants(db)
  await fillOrders(
    db,
    ORDERS,
    merchants.map(({ mid }) => mid),
  )

  return async () => {
    const [ours, first] = [await startOurs(url), await startContender(typical(asRole(url, 'upi_owner')))]
    const findings = []
    for (const polling of [1, merchants.length]) {
      const requests = Array.from({ length: POLLED }, (_, i): FormRequest => {
        const order = polling === 1 ? i * merchants.length : i
        return statusRequest(merchants[order % merchants.length] as NewMerchant, orderIdOf(1 + order))
      })
      const sides = {
        ours: { service: ours, requests: () => requests },
        typical: { service: first, requests: () => requests },
      }
      const what = `checkPaymentStatus of ${ORDERS} pending orders, polled by ${polling} merchant(s)`
      findings.push(await sideBySide(bench, what, sides, { costAtMost: 0.4, rateAtLeast: 1.8 }))
    }
    await Promise.all([ours.stop(), first.stop()])
    return findings
  }
}
