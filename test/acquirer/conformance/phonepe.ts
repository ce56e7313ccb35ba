import { statusCheckRulesOf } from '../../../src/gateway/acquirers/acquirers.ts'
import { statusCheckJobs } from '../../../src/gateway/acquirers/check-status.ts'
import { createReports } from '../../../src/gateway/payments/reports.ts'
import { createStatusChecks } from '../../../src/gateway/payments/status-checks.ts'
import { LIMITS } from '../../../src/limits.ts'
import { newUtr } from '../../support/acquirer.ts'
import { newPhonepeMerchant, PHONEPE, PHONEPE_SECRETS } from '../../support/fake-phonepe.ts'
import { runAllPendingJobs } from '../../support/pending-jobs.ts'
import { newMerchant, post, unique } from '../../support/service.ts'
import { startServiceBeside } from '../../support/service-with-bank.ts'
import type { Driver, IssuingBank, Stage } from './driver.ts'
import { startInstance } from './instance.ts'

const CALLS = { link: 'createOrder', checkStatus: 'order', refund: 'refund', findRefund: 'findRefund' }

/** Notifications only schedule status checks, so the driver runs the checks before a case continues. */
export const phonepe: Driver = async (options) => {
  const { service, bank } = await startServiceBeside(PHONEPE, options)
  const { clock, db } = service
  const { pay } = bank
  const { endLate } = bank.refunds
  const settings = PHONEPE.settings(bank)
  const instance = startInstance({ service, settings, name: 'phonepe' } as Stage)
  const statusChecks = statusCheckJobs({
    statusChecks: createStatusChecks(db),
    clientOf: instance.clientOf,
    rulesOf: statusCheckRulesOf,
    reports: createReports(db),
    now: clock.now,
    limits: LIMITS.acquirers,
  })
  async function runStatusChecks() {
    clock.advance(3)
    await runAllPendingJobs(statusChecks)
    await instance.look()
  }
  const orderOf = (orderId: string) => {
    const order = bank.orders.get(orderId)
    if (order) return order
    throw new Error(`PhonePe does not know ${orderId}`)
  }
  const sendSigned = (body: string, signature: string | undefined) =>
    post(service.app, PHONEPE.path, body, undefined, {
      'content-type': 'application/json',
      ...(signature !== undefined && { 'x-phonepe-checksum-signature': signature }),
    })
  return {
    name: 'phonepe',
    service,
    newMerchant: () => newPhonepeMerchant(service),
    newStranger: () => newMerchant(service.db),
    /** The payment is also in the bank's records, because only the status check's result is recorded. */
    notification(orderId, { status = 'SUCCESS', utr, amount = 20_000, paidAt = clock.now(), instrument, about } = {}) {
      const order = orderOf(orderId)
      const state = status === 'SUCCESS' ? ('success' as const) : ('failed' as const)
      const payment = { id: unique('OM'), status: state, amount, rrn: utr ?? newUtr(), instrument, at: paidAt }
      order.payments.push(payment)
      return bank.encrypt(bank.eventOf({ ...order, orderId: about ?? orderId }, payment)).body
    },
    async send(body, { secret, signed = body, pathEnd = '' } = {}) {
      const response = await post(
        service.app,
        PHONEPE.path + pathEnd,
        body,
        undefined,
        bank.encrypt(signed, secret).headers,
      )
      if (response.status === 200) await runStatusChecks()
      return response
    },
    sendSigned,
    toldBy: 'enquiry',
    secrets: PHONEPE_SECRETS,
    amountField: 'amount',
    idle(orderId) {
      const { event: _, ...reported } = bank.eventOf(orderOf(orderId), {
        id: '1',
        status: 'success',
        amount: 1,
        rrn: '',
        at: clock.now(),
      })
      const events = ['pg.transaction.failed', 'settlement.processed', 'pg.order.created', 'constructor', undefined]
      return events.flatMap((event) =>
        [reported, { payload: null }, { payload: 'text' }].map((of) => JSON.stringify({ ...of, event })),
      )
    },
    settings,
    // The fake's types are narrower than the changes that a case may apply to any bank.
    bank: Object.assign(bank, {
      calls: CALLS,
      preparing: [CALLS.link],
      linkOf: (orderId: string) => orderOf(orderId).link,
      created: () => [...bank.orders.keys()],
      isOpen: (orderId: string) => bank.stateOf(orderOf(orderId)) === 'PENDING',
      async pay(...how: Parameters<typeof pay>) {
        const paid = await pay(...how)
        if (paid.responses.includes(200)) await runStatusChecks()
        return paid
      },
      refunds: Object.assign(bank.refunds, {
        async endLate() {
          await endLate()
          await runStatusChecks()
        },
      }),
    }) as unknown as IssuingBank,
  }
}
