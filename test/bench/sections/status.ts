import { type FormRequest, statusRequest } from '../../support/requests.ts'
import { newMerchant } from '../../support/tenants.ts'
import type { Section } from '../bench.ts'
import { startContender, startOurs, typical } from '../contenders.ts'
import { sideBySide } from '../side-by-side.ts'
import { fillOrders, orderIdOf } from '../tables.ts'

const ORDERS = 20_000
/** As many as one argument of a process can name. */
const ASKED_ABOUT = 200

/** checkPaymentStatus of orders that are pending, which every client asks again and again. */
export const status: Section = async (bench) => {
  const { db, url } = await bench.createDatabase('status')
  const merchant = await newMerchant(db)
  await fillOrders(db, ORDERS, merchant.mid)
  const requests = Array.from({ length: ASKED_ABOUT }, (_, i): FormRequest => {
    return statusRequest(merchant, orderIdOf(1 + (i * ORDERS) / ASKED_ABOUT))
  })

  return async () => {
    const [ours, first] = [await startOurs(url), await startContender(typical(url))]
    const sides = {
      ours: { service: ours, requests: () => requests },
      typical: { service: first, requests: () => requests },
    }
    const finding = await sideBySide(bench, `checkPaymentStatus of ${ORDERS} pending orders`, sides, {
      costAtMost: 0.6,
    })
    await Promise.all([ours.stop(), first.stop()])
    return [finding]
  }
}
