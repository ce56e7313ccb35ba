import { createSecretKey } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createCaller } from '../../src/webhooks/call.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import { createDeliveries } from '../../src/webhooks/deliveries.ts'
import { answerOk, listen } from '../support/listener.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { allow, newWebhook, SEALING_KEY } from '../support/webhooks.ts'

const EARLIER_KEY = createSecretKey(Buffer.alloc(32, 8))
const allowedNetworks = allow('127.0.0.1/32')

let service: TestService
beforeAll(async () => {
  service = await startService({
    webhooks: { sealingKey: SEALING_KEY, allowedNetworks },
    limits: { webhooks: { lookIntervalMs: 20 } },
  })
})

it('an instance that cannot sign leaves the endpoint to one that can, and says so once in a while', async () => {
  const { db, clock } = service
  const merchant = await newMerchant(db)
  const receiver = await listen(answerOk)
  const url = `http://127.0.0.1:${receiver.port}/`
  const webhook = await newWebhook(db, { mid: merchant.mid, url }, clock.now())
  // It is the first to take the endpoint.
  const deliveries = createDeliveries(db, 'with the earlier key')
  await deliveries.lease(webhook, new Date(clock.now().getTime() + LIMITS.webhooks.leaseMs), clock.now())
  await reportPayment(service, await createOrder(service, merchant))
  const errors: unknown[] = []
  let looks = 0
  const limits = { ...LIMITS.webhooks, lookIntervalMs: 20 }
  const earlier = startDeliveries({
    deliveries: {
      ...deliveries,
      findDue: (...args) => {
        looks++
        return deliveries.findDue(...args)
      },
    },
    call: createCaller({ allowedNetworks, limits, now: clock.now }),
    sealingKey: EARLIER_KEY,
    log: { warn: () => undefined, error: (fault: unknown) => void errors.push(fault) },
    metrics: { delivery: () => undefined, oldestDue: () => undefined, endpointSwitchedOff: () => undefined },
    now: clock.now,
    limits,
  })
  try {
    await until('it was delivered by the other one', () => receiver.connections === 1)
    await until('it has looked often', () => looks > 20)
    expect(errors).toHaveLength(1)
  } finally {
    await earlier.stop()
  }
})
