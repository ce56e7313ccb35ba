import { createSecretKey } from 'node:crypto'
import { expect, it } from 'vitest'
import { deliveryJobs } from '../../src/gateway/webhooks/deliver.ts'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { LIMITS } from '../../src/limits.ts'
import type { EncryptionKeys } from '../../src/platform/encryption.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import { listen, respondOk } from '../support/listener.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { newMerchant, startService } from '../support/service.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const OTHER_KEY = createSecretKey(Buffer.alloc(32, 8))

const service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })

it('an instance without the encryption key logs an error once and leaves the webhook to an instance with the key', async () => {
  const { db, clock } = service
  const merchant = await newMerchant(db)
  const receiver = await listen(respondOk)
  await newWebhook(db, { mid: merchant.mid, url: `http://127.0.0.1:${receiver.port}/` }, clock.now())
  await reportPayment(service, await createOrder(service, merchant))
  const errors: unknown[] = []
  const limits = LIMITS.webhooks
  const instanceWith = (encryptionKeys: EncryptionKeys) =>
    deliveryJobs({
      deliveries: createDeliveries(db),
      http: createOutboundClient({ allowedNetworks: allow('127.0.0.1/32'), limits: LIMITS.outbound, now: clock.now }),
      encryptionKeys,
      log: { warn: () => undefined, error: (fault: unknown) => void errors.push(fault) },
      metrics: { delivery: () => undefined, oldestPending: () => undefined, endpointSwitchedOff: () => undefined },
      now: clock.now,
      limits,
    })
  const earlier = instanceWith([OTHER_KEY])
  for (let look = 0; look < 3; look++) await runPendingJobs(earlier)
  expect([errors.length, receiver.connections]).toEqual([1, 0])
  await runPendingJobs(instanceWith(ENCRYPTION_KEYS))
  expect(receiver.connections).toBe(1)
})
