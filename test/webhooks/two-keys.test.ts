import { createSecretKey, type KeyObject } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createCaller } from '../../src/outside/call.ts'
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
  service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
})

it('an instance that cannot sign leaves the endpoint to one that can, and says so once in a while', async () => {
  const { db, clock } = service
  const merchant = await newMerchant(db)
  const receiver = await listen(answerOk)
  await newWebhook(db, { mid: merchant.mid, url: `http://127.0.0.1:${receiver.port}/` }, clock.now())
  await reportPayment(service, await createOrder(service, merchant))
  const errors: unknown[] = []
  let looks = 0
  const deliveries = createDeliveries(db)
  const limits = { ...LIMITS.webhooks, lookIntervalMs: 20 }
  const start = (sealingKey: KeyObject) =>
    startDeliveries({
      deliveries: {
        ...deliveries,
        findDue: (...args) => {
          looks++
          return deliveries.findDue(...args)
        },
      },
      call: createCaller({ allowedNetworks, limits: LIMITS.outside, now: clock.now }),
      sealingKey,
      log: { warn: () => undefined, error: (fault: unknown) => void errors.push(fault) },
      metrics: { delivery: () => undefined, oldestDue: () => undefined, endpointSwitchedOff: () => undefined },
      now: clock.now,
      limits,
    })
  const earlier = start(EARLIER_KEY)
  await until('it has looked often', () => looks > 20)
  expect(errors).toHaveLength(1)
  const present = start(SEALING_KEY)
  try {
    await until('it was delivered by the other one', () => receiver.connections === 1)
  } finally {
    await Promise.all([earlier.stop(), present.stop()])
  }
})
