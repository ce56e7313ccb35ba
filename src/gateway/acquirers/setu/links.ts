import * as z from 'zod'
import { transactionNote } from '../../payments/upi-links.ts'
import type { Links } from '../client.ts'
import { notBelieved, orAbsent, throwUnmade } from '../json-request.ts'
import { readPaymentLink } from '../payment-link.ts'
import { ACQUIRER_ID, type SetuRequest } from './http.ts'

const DynamicQr = z.object({
  id: z.string().regex(ACQUIRER_ID),
  intentLink: z.string(),
  status: orAbsent(z.enum(['inactive', 'active'])),
  referenceId: orAbsent(z.string()),
})

/** `name` is the name of the acquirer account. */
export function setuLinks(name: string, request: SetuRequest): Links {
  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId } = intent
      const body = {
        merchantVpa: intent.payee.vpa,
        amount: intent.amount,
        expiryDate: intent.expiresAt.toISOString(),
        referenceId: orderId,
        transactionNote: transactionNote(intent.note),
      }
      // An error with one of Setu's own codes means that no QR code was created.
      const response = await request({ method: 'POST', path: 'dqr', merchantId, body }, signal, [201]).catch(
        throwUnmade((code) => code !== undefined),
      )
      const { data: created } = DynamicQr.safeParse(response.body)
      // Rejects another order's link even if payee and amount are equal, because such a link would pay the other order.
      if (!created || (created.referenceId ?? orderId) !== orderId) {
        throw notBelieved(response, 'Setu created a QR that does not match the order', { orderId })
      }
      const { reference, payeeVpa } = readPaymentLink(
        { link: created.intentLink, requestId: response.requestId },
        intent,
        payees,
      )
      return {
        paymentLink: { acquirer: name, merchantId, id: created.id, reference, link: created.intentLink },
        payeeVpa,
      }
    },

    async closeLink({ id, merchantId }, signal) {
      // Setu returns 400 or 404 for a QR that was paid or has expired.
      const response = await request({ method: 'PUT', path: `dqr/${id}/expire`, merchantId }, signal, [200, 400, 404])
      return response.status === 200 ? 'closed' : 'paid'
    },
  }
}
