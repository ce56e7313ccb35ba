import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { accountName, type PhonepeSettings } from '../accounts.ts'
import type { Links } from '../client.ts'
import { orAbsent, readBody, throwUnmade, undone } from '../json-request.ts'
import { readPaymentLink } from '../payment-link.ts'
import { isRejection, NAME, type PhonepeRequest, phonepeId } from './http.ts'

export const SHORTEST_EXPIRY_MINUTES = 5
export const EXPIRY_RULE = `phonepe accepts orders of at least ${SHORTEST_EXPIRY_MINUTES} minutes: set --expiry-minutes to ${SHORTEST_EXPIRY_MINUTES} or more`

/**
 * PhonePe's response to a create does not name the service's order, and `orderId` is PhonePe's own id. `qrData`, an
 * image of the link, is not read.
 */
const Created = z.object({
  orderId: phonepeId,
  state: orAbsent(z.enum(['CREATED', 'PENDING'])),
  intentUrl: z.string().max(2_048),
})

export function phonepeLinks({ account, isSandbox }: PhonepeSettings, request: PhonepeRequest): Links {
  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId, amount, createdAt, expiresAt } = intent
      const expireAfter = Math.round((expiresAt.getTime() - createdAt.getTime()) / 1000)
      if (expireAfter < SHORTEST_EXPIRY_MINUTES * 60) {
        throw undone(new AcquirerError('refused', EXPIRY_RULE, { orderId }))
      }
      const paymentFlow = { type: 'PG', paymentMode: { type: 'UPI_QR' } }
      const body = { merchantOrderId: orderId, amount, expireAfter, paymentFlow }
      // PhonePe rejects a merchantOrderId that it already has, for instance when a proxy repeated the request. The link
      // of the existing order is lost, because PhonePe returns a link only once.
      const response = await request({ method: 'POST', path: 'payments/v2/pay', body }, signal, [200]).catch(
        throwUnmade(isRejection),
      )
      const created = readBody(Created, response, 'PhonePe returned a created order in an unknown format', { orderId })
      const names = {
        acquirer: accountName(NAME, account),
        merchantId,
        id: created.orderId ?? orderId,
        link: created.intentUrl,
      }
      const unchecked = { link: created.intentUrl, requestId: response.requestId, isCurrencyOptional: true, isSandbox }
      const { reference, payeeVpa } = readPaymentLink(unchecked, intent, payees)
      return { paymentLink: { ...names, reference }, payeeVpa }
    },

    /** PhonePe has no call to close an order, so it stays open until its expiry. */
    closeLink: async () => 'unknown',
  }
}
