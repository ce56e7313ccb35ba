import * as z from 'zod'
import { errorText, text } from '../../../platform/fields.ts'
import { bankAmount } from '../../../platform/money.ts'
import { printableLine } from '../../../platform/printable.ts'
import { zonedMoment } from '../../../platform/time.ts'
import type { DisputeReport, DisputeStatus } from '../../disputes/dispute.ts'
import type { AcquirerClient } from '../client.ts'
import { codeOf, known, notBelieved, readBody } from '../json-request.ts'
import { paymentId } from '../notification.ts'
import type { CashfreeRequest } from './http.ts'

/**
 * The fields of a dispute in a response, or of `dispute` and `order_details` in a notification. An amount, a time or a
 * reason in an unknown format is treated as absent, so that the dispute is still recorded.
 */
export const CashfreeDispute = z.object({
  dispute_id: z.string(errorText('must be text')).regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a Cashfree identifier'),
  dispute_status: z.string(errorText('must be text')),
  order_id: text(64),
  cf_payment_id: paymentId,
  dispute_type: known(text(40)),
  dispute_amount: known(bankAmount.refine((paise) => paise > 0)),
  reason_code: known(text(40)),
  reason_description: known(z.string().transform((words) => printableLine(words, 200))),
  created_at: known(zonedMoment),
  updated_at: known(zonedMoment),
  respond_by: known(zonedMoment),
})

/** A `dispute_status` is a type, such as CHARGEBACK, and one of these words. */
const STATUSES: Readonly<Record<string, DisputeStatus>> = {
  CREATED: 'open',
  INSUFFICIENT_EVIDENCE: 'open',
  DOCS_RECEIVED: 'under review',
  UNDER_REVIEW: 'under review',
  MERCHANT_WON: 'won',
  MERCHANT_LOST: 'lost',
  MERCHANT_ACCEPTED: 'accepted',
}

/** Returns undefined for an unknown status, which changes nothing. */
export function toDisputeReport(dispute: z.output<typeof CashfreeDispute>): DisputeReport | undefined {
  const word = Object.keys(STATUSES).find((one) => dispute.dispute_status.endsWith(`_${one}`))
  if (word === undefined) return undefined
  return {
    id: dispute.dispute_id,
    orderId: dispute.order_id.toLowerCase(),
    paymentId: dispute.cf_payment_id,
    status: STATUSES[word] as DisputeStatus,
    statedAt: dispute.updated_at,
    openedAt: dispute.created_at,
    respondBy: dispute.respond_by,
    amount: dispute.dispute_amount,
    kind: dispute.dispute_type,
    reasonCode: dispute.reason_code,
    reasonText: dispute.reason_description,
  }
}

/** The order is in `order_details` or beside the other fields; the request names neither. */
const Response = z.looseObject({ order_details: z.looseObject({}).nullish() })

export const cashfreeDisputes = (request: CashfreeRequest): Pick<AcquirerClient, 'getDispute'> => ({
  async getDispute({ id, orderId }, signal) {
    const response = await request({ method: 'GET', path: `disputes/${id}` }, signal, [200, 404])
    if (response.status === 404) {
      if (codeOf(response) !== undefined) return undefined
      throw notBelieved(response, "Cashfree's 404 is not in its own format: check CASHFREE_API_URL")
    }
    const message = 'Cashfree returned a dispute in an unknown format'
    const { order_details: order, ...dispute } = readBody(Response, response, message, { orderId })
    const body = { order_id: orderId, ...order, ...dispute }
    const reported = readBody(CashfreeDispute, { ...response, body }, message, { orderId })
    if (reported.dispute_id !== id) throw notBelieved(response, 'Cashfree returned another dispute', { orderId })
    return toDisputeReport(reported)
  },
})
