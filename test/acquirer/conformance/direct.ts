import { ACQUIRER_SECRETS, NOTIFY, newUtr, notification, sign } from '../../support/acquirer.ts'
import { newSetuMerchant, SETU } from '../../support/fake-setu.ts'
import { newMerchant, post } from '../../support/service.ts'
import { startServiceBeside } from '../../support/service-with-bank.ts'
import type { Driver } from './driver.ts'

export const direct: Driver = async (options) => {
  const { service } = await startServiceBeside(SETU, options)
  const sendSigned = (body: string, signature: string | undefined, pathEnd = '') =>
    post(service.app, NOTIFY + pathEnd, body, undefined, {
      'content-type': 'application/json',
      ...(signature !== undefined && { 'x-signature': signature }),
    })
  return {
    name: 'direct',
    service,
    newMerchant: () => newMerchant(service.db),
    newStranger: () => newSetuMerchant(service),
    notification(orderId, { status = 'SUCCESS', utr, amount = 20_000, paidAt = service.clock.now(), about } = {}) {
      const reported = { status, UTR: utr ?? newUtr(), amount: amount / 100, paidAt: paidAt.toISOString() }
      return notification(about ?? orderId, reported)
    },
    send: (body, { secret, signed = body, pathEnd } = {}) =>
      sendSigned(body, sign(signed, service.clock.now(), secret), pathEnd),
    sendSigned,
    toldBy: 'notification',
    secrets: ACQUIRER_SECRETS,
    amountField: 'amount',
    idle: () => [],
    settings: {},
    bank: undefined,
  }
}
