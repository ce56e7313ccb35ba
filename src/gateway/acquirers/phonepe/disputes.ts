import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import type { DisputeReport, DisputeStatus } from '../../disputes/dispute.ts'
import type { AcquirerClient } from '../client.ts'
import { readBody } from '../json-request.ts'
import { paymentId } from '../notification.ts'
import type { PhonepeRequest } from './http.ts'

const PAGE_DISPUTES = 100
const MOST_PAGES = 100

/** PhonePe lists the disputes of one status. */
const STATUSES: readonly (readonly [string, DisputeStatus])[] = [
  ['ACTION_REQUIRED', 'open'],
  ['UNDER_REVIEW', 'under review'],
  ['WON', 'won'],
  ['LOST', 'lost'],
]

/** PhonePe's pages name no field with the amount or the time to respond by, so both are unknown. */
const Dispute = z.object({
  disputeId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  merchantOrderId: z.string().min(1).max(64),
  transactionId: paymentId,
})
const Page = z.object({ disputes: z.array(z.unknown()) })

export const phonepeDisputes = (request: PhonepeRequest): Pick<AcquirerClient, 'listDisputes'> => ({
  async listDisputes({ from, to }, signal) {
    const found: DisputeReport[] = []
    for (const [word, status] of STATUSES) {
      for (let page = 0; ; page += 1) {
        if (page === MOST_PAGES) throw new AcquirerError('bad answer', 'PhonePe returned too many pages of disputes')
        const parameters = new URLSearchParams({
          ...{ from: String(from.getTime()), to: String(to.getTime()), status: word },
          ...{ offset: String(page * PAGE_DISPUTES), limit: String(PAGE_DISPUTES) },
        })
        const response = await request({ method: 'GET', path: `v1/disputes?${parameters}` }, signal, [200])
        const { disputes } = readBody(Page, response, 'PhonePe returned disputes in an unknown format')
        for (const one of disputes) {
          const { data } = Dispute.safeParse(one)
          if (data === undefined) continue
          const { disputeId: id, merchantOrderId, transactionId } = data
          found.push({ id, orderId: merchantOrderId.toLowerCase(), paymentId: transactionId, status })
        }
        if (disputes.length < PAGE_DISPUTES) break
      }
    }
    return found
  },
})
