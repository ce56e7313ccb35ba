import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import type { Delivery } from '../../src/webhooks/deliveries.ts'
import { until } from '../support/wait.ts'

type Dependencies = Parameters<typeof startDeliveries>[0]

const NOW = new Date('2026-11-21T10:00:00Z')

const delivery = (number: number): Delivery => ({
  mid: 'M1',
  orderId: number.toString(16).padStart(32, '0'),
  merchantOrderId: `order-${number}`,
  sequence: 1,
  type: 'payment.succeeded',
  txnStatus: 'SUCCESS',
  amount: 200,
  utr: '523504870405',
  occurredAt: NOW,
  attempts: 0,
  redirectUrl: 'https://shop.example/thanks',
})

it('begins no more calls while their outcomes cannot be stored: all of them would be made again', async () => {
  const endpoint = { mid: 'M1', endpointId: 'return-call' }
  let calls = 0
  let looks = 0
  const metrics = { delivery: () => undefined, oldestDue: () => undefined, endpointSwitchedOff: () => undefined }
  const deliveries: Dependencies['deliveries'] = {
    findDue: async () => (looks++ === 0 ? [{ ...endpoint, dueAt: NOW, elsewhere: false }] : []),
    lease: async () => ({ ...endpoint, kind: 'return call' }),
    release: async () => undefined,
    findDueTo: async () => Array.from({ length: LIMITS.webhooks.readAtOnce }, (_, number) => delivery(number)),
    settle: async () => {
      throw new Error('the database is away')
    },
  }
  const worker = startDeliveries({
    deliveries,
    expiries: { sweep: async () => false, tell: async () => 0, watch: async () => undefined },
    call: async () => {
      calls++
      await sleep(5)
      return { status: 200, retryAfterSeconds: undefined, text: '' }
    },
    sealingKey: undefined,
    log: { warn: () => undefined, error: () => undefined },
    metrics,
    now: () => NOW,
    limits: { ...LIMITS.webhooks, lookIntervalMs: 20 },
  })
  await until('it had looked again after its failure', () => looks > 20)
  await worker.stop()
  expect(calls).toBeGreaterThan(0)
  expect(calls).toBeLessThanOrEqual(2 * LIMITS.webhooks.callsOfEndpoint)
})
