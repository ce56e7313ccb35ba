import { badRequest, orderNotFound, unavailable } from '../../errors.ts'
import { operation } from '../../platform/http/operation.ts'
import type { Patiently } from '../../platform/http/time-limits.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Waiting } from './enquiries.ts'
import type { Intents } from './intents.ts'
import { PAYMENT_STATUS, reportPaymentStatus, type StatusReporting, WHICH_PAYMENT } from './payment-status.ts'

export const checkPaymentStatus = operation({
  path: '/v1/payments/checkPaymentStatus',
  tag: 'Merchant',
  summary: 'Ask what became of a payment',
  description:
    'Ask before you ship. **Only `txnStatus` SUCCESS is paid**: `status` says whether `txnStatus` is final, and a payment that ' +
    'failed has `data` too. While it is PENDING, ask again after some seconds. A failed attempt leaves it PENDING with `Last ' +
    'attempt failed; still open`, since customers try again; what is unpaid 10 minutes after expiry is FAIL or REJECT. Money ' +
    'that comes even later makes it SUCCESS; a SUCCESS is never undone. While our ' +
    'database is briefly away, this call waits for up to 8 s before it answers 503, so give it a time-out of 10 s or more. A 503 ' +
    'says nothing about the payment.',
  body: WHICH_PAYMENT,
  refusals: [badRequest('order_id is required'), orderNotFound()],
  answer: PAYMENT_STATUS,
  // Shop plugins take a 503 of this call for a failed payment, even when the order is paid.
  route: { config: { waitsForDatabase: true } },
  handle: ({ intents, waiting, patiently, now }: Dependencies) => {
    return async (request, reply) => {
      const { body, caller } = request
      const { mid } = authorizeMerchant(caller, body.mid)
      const check = () => {
        if (reply.sent || request.socket.destroyed) throw unavailable()
      }
      const payment = await patiently(request, () => intents.findSharedStatus(mid, body.order_id, check))
      if (!payment) throw orderNotFound()
      const answer = reportPaymentStatus(reply, { intents, now }, payment, body.order_id)
      // The answer does not wait for the enquiry. After an error the caller's next request makes the enquiry due.
      const makeDue = waiting.enquiryFor(payment, now())
      if (makeDue) reply.raw.once('finish', () => void makeDue().catch(() => undefined))
      return answer
    }
  },
})

type Dependencies = StatusReporting & {
  intents: Pick<Intents, 'findSharedStatus'>
  waiting: Pick<Waiting, 'enquiryFor'>
  patiently: Patiently
}
