import { randomInt } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { badRequest, refundNotFound } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { bodyCheck } from '../../platform/http/input.ts'
import type { AcquirerClient } from '../acquirers/client.ts'
import { FAILURE_REASONS } from '../payments/failure-reasons.ts'
import type { Checkout, Intents } from '../payments/intents.ts'
import type { FinalStatus } from '../payments/outcome.ts'
import type { Reports } from '../payments/reports.ts'
import { refundId } from '../refunds/check-refund-status.ts'
import type { RefundUpdates } from '../refunds/record-update.ts'
import type { Refund } from '../refunds/refund.ts'
import { listRefunds } from '../refunds/store.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { LANGUAGES } from './texts.ts'

/** A request to simulate the outcome of a payment or, with `refund_id`, of a refund. */
export const Simulation = z.object({
  status: z.enum(['SUCCESS', 'FAIL', 'REJECT', 'EXPIRE', 'END', 'CANCEL', 'LATE', 'TWICE', 'OTHER_AMOUNT']),
  /** Failure reason of a simulated attempt. */
  reason: z.enum(FAILURE_REASONS).optional(),
  /** The merchant's or the service's identifier of the refund. */
  refund_id: refundId.optional(),
})

/**
 * Whether the service's sandbox can complete a refund: those at `direct`. Other refunds are completed in their
 * acquirer's sandbox.
 */
export const isInSandbox = ({ acquirer }: Pick<Refund, 'acquirer'>) => acquirer === 'direct'

/**
 * Minutes after expiry at which a late payment or a final status is simulated, more than the 10 minutes in which a
 * payment is still on time.
 */
const LATE_BY_MINUTES = 60

const ONE_RUPEE_IN_PAISE = 100

/** Handles the simulation form of a sandbox's pay pages. Scripts may send the same request. */
export function simulation(app: FastifyInstance, dependencies: Dependencies) {
  const check = bodyCheck(Simulation)
  type Request = { Params: { orderId: string }; Querystring: { lang?: unknown }; Body: Record<string, unknown> }
  app.post<Request>(`${ORDER_PATH}/simulate`, async ({ params, query, body }, reply) => {
    const fields = check(body)
    const checkout = await dependencies.findCheckout(params.orderId)
    await simulate(checkout, fields, dependencies)
    const lang = LANGUAGES.find((code) => code === query.lang)
    return reply.redirect(`../${checkout.orderId}${lang === undefined ? '' : `?lang=${lang}`}`, 303)
  })
}

type Dependencies = {
  findCheckout: FindCheckout
  intents: Pick<Intents, 'expire' | 'cancel'>
  reports: Reports
  now: () => Date
  /** Returns the client of the account that created a link. */
  clientOf: (account: string) => Promise<Pick<AcquirerClient, 'simulate'> | undefined>
  refunds: Pick<RefundUpdates, 'record'>
  pools: Pick<Pools, 'pages'>
}

/** Simulates a customer's payment and the bank's report of it, which is processed like a real one. */
async function simulate(
  { mid, orderId, amount, payee, paymentLink }: Checkout,
  { status, reason, refund_id: name }: z.output<typeof Simulation>,
  { intents, reports, refunds: updates, pools, now, clientOf }: Dependencies,
): Promise<unknown> {
  if (name !== undefined) return endRefund()
  const client = paymentLink && (await clientOf(paymentLink.acquirer))
  switch (status) {
    case 'EXPIRE':
      return intents.expire({ mid, orderId }, now())
    case 'END':
      return end()
    case 'CANCEL':
      await intents.cancel(mid, orderId, now(), () => undefined)
      return
    case 'LATE':
      await end()
      return report('SUCCESS')
    case 'TWICE':
      // An acquirer's link is paid only once, because the acquirer rejects a second payment.
      if (client) return report('SUCCESS')
      await report('SUCCESS')
      return report('SUCCESS')
    case 'OTHER_AMOUNT':
      return report('SUCCESS', amount + ONE_RUPEE_IN_PAISE)
    default:
      return report(status)
  }

  /** Moves the expiry so far back that the order's status is final. */
  function end() {
    return intents.expire({ mid, orderId }, new Date(now().getTime() - LATE_BY_MINUTES * 60_000))
  }

  /** Records a simulated payment. If an acquirer created the link, the acquirer's sandbox simulates it instead. */
  async function report(outcome: FinalStatus, paise = amount): Promise<void> {
    if (client) {
      return client.simulate(paymentLink, { payeeVpa: payee.vpa, amount: paise, succeeds: outcome === 'SUCCESS' })
    }
    const failure = reason && outcome !== 'SUCCESS' ? { reason } : undefined
    const played = { orderId, status: outcome, utr: newReference(), amount: paise, paidAt: now(), failure }
    await reports.record(played, { source: 'sandbox', now })
  }

  async function endRefund(): Promise<void> {
    if (status !== 'SUCCESS' && status !== 'FAIL') throw badRequest('status of a refund must be SUCCESS or FAIL')
    const refunds = (await listRefunds(pools.pages, { mid, orderId })).filter(isInSandbox)
    const refund =
      refunds.find(({ refundId }) => refundId === name) ?? refunds.find(({ ourRefundId }) => ourRefundId === name)
    if (!refund) throw refundNotFound()
    const end = { status, reference: status === 'SUCCESS' ? newReference() : '', reason: 'simulated in the sandbox' }
    await updates.record(refund, end, { source: 'notification', by: 'acquirer', now })
  }
}

const newReference = () => String(randomInt(10 ** 11, 10 ** 12))
