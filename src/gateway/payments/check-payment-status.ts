import { badRequest, orderNotFound, unavailable } from '../../errors.ts'
import { operation } from '../../platform/http/operation.ts'
import type { WaitForDatabase } from '../../platform/http/time-limits.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Intents } from './intents.ts'
import { PAYMENT_STATUS, reportPaymentStatus, type StatusReporting, WHICH_PAYMENT } from './payment-status.ts'
import type { Waiting } from './status-checks.ts'

export const checkPaymentStatus = operation({
  path: '/v1/payments/checkPaymentStatus',
  tag: 'Merchant',
  access: 'status',
  summary: 'Check payment status',
  description:
    'Check the status before you fulfil the order. **Only `txnStatus` SUCCESS is paid**: `status` only states whether `txnStatus` ' +
    'is final, and a failed payment has `data` too. While the status is PENDING, check again after some seconds. A failed attempt ' +
    'leaves it PENDING with `Last attempt failed; still open`, since customers try again. An order that is unpaid 10 minutes after ' +
    'expiry becomes FAIL or REJECT. A later payment still changes it to SUCCESS, and a SUCCESS is never undone. While the ' +
    'database is briefly unavailable, this call waits up to 8 s before it returns 503, so set a time-out of at least 10 s. A 503 ' +
    'does not indicate whether the order is paid.',
  body: WHICH_PAYMENT,
  errors: [badRequest('order_id is required'), orderNotFound()],
  response: PAYMENT_STATUS,
  // Requests wait for the database, because store plugins treat a 503 from this call as a failed payment, even if the
  // order is paid.
  route: { config: { waitsForDatabase: true } },
  handle: ({ intents, waiting, waitForDatabase, now }: Dependencies) => {
    return async (request, reply) => {
      const { order_id } = request.body
      const { mid } = authorizeMerchant(request)
      const check = () => {
        if (reply.sent || request.socket.destroyed) throw unavailable()
      }
      const payment = await waitForDatabase(request, () => intents.findSharedStatus(mid, order_id, check))
      if (!payment) throw orderNotFound()
      const response = reportPaymentStatus(reply, { intents, now }, payment, order_id)
      // The response does not wait for the status check to be scheduled. After an error, the caller's next request
      // schedules the check.
      const toSchedule = waiting.statusCheckFor(payment, now())
      if (toSchedule) reply.raw.once('finish', () => void toSchedule().catch(() => undefined))
      return response
    }
  },
})

type Dependencies = StatusReporting & {
  intents: Pick<Intents, 'findSharedStatus'>
  waiting: Pick<Waiting, 'statusCheckFor'>
  waitForDatabase: WaitForDatabase
}
