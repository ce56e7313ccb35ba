import * as z from 'zod'
import { errorText, text } from '../../../platform/fields.ts'
import { printableLine } from '../../../platform/printable.ts'
import type { DisputeReport, DisputeStatus } from '../../disputes/dispute.ts'
import type { AcquirerClient } from '../client.ts'
import { codeOf, known, notBelieved, readBody } from '../json-request.ts'
import { paymentId } from '../notification.ts'
import { amount, moment, type RazorpayRequest, razorpayId } from './http.ts'

/**
 * The fields of a dispute in responses and notifications. An amount, a time or a reason in an unknown format is treated
 * as absent, so that the dispute is still recorded.
 */
export const RazorpayDispute = z.object({
  id: razorpayId,
  payment_id: paymentId,
  status: z.string(errorText('must be text')),
  phase: known(text(40)),
  amount: known(amount),
  reason_code: known(text(40)),
  reason_description: known(z.string().transform((words) => printableLine(words, 200))),
  created_at: moment,
  respond_by: moment,
})

/** The states of a dispute by Razorpay's statuses and by the ends of its events. */
const STATES = new Map<string, DisputeStatus>([
  ['created', 'open'],
  ['action_required', 'open'],
  ['open', 'open'],
  ['under_review', 'under review'],
  ['won', 'won'],
  ['lost', 'lost'],
  ['closed', 'closed'],
])

/** Events of disputes, with the status that the event states. */
export const DISPUTE_EVENTS = new Map([...STATES.keys()].map((status) => [`payment.dispute.${status}`, status]))

/** `statedAt` is the time of a notification: a dispute has no time of its state. Returns undefined for an unknown status. */
export function toDisputeReport(
  { id, payment_id: payment, ...dispute }: z.output<typeof RazorpayDispute>,
  { orderId, statedAt }: { orderId: string; statedAt?: Date | undefined },
): DisputeReport | undefined {
  const status = STATES.get(dispute.status)
  if (status === undefined) return undefined
  return {
    ...{ id, orderId: orderId.toLowerCase(), paymentId: payment, status, statedAt, amount: dispute.amount },
    ...{ openedAt: dispute.created_at, respondBy: dispute.respond_by, kind: dispute.phase },
    ...{ reasonCode: dispute.reason_code, reasonText: dispute.reason_description },
  }
}

export const razorpayDisputes = (request: RazorpayRequest): Pick<AcquirerClient, 'getDispute'> => ({
  async getDispute({ id, orderId }, signal) {
    const response = await request({ method: 'GET', path: `disputes/${id}` }, signal, [200, 400, 404])
    if (response.status !== 200) {
      if (codeOf(response) !== undefined) return undefined
      throw notBelieved(response, "Razorpay's error is not in its own format: check RAZORPAY_API_URL")
    }
    const message = 'Razorpay returned a dispute in an unknown format'
    const reported = readBody(RazorpayDispute, response, message, { orderId })
    if (reported.id !== id) throw notBelieved(response, 'Razorpay returned another dispute', { orderId })
    return toDisputeReport(reported, { orderId })
  },
})
