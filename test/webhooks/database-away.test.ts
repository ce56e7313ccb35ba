import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import type { Delivery } from '../../src/webhooks/deliveries.ts'
import { until } from '../support/wait.ts'

type Dependencies = Parameters<typeof startDeliveries>[0]

const NOW = new Date('2026-11-21T10:00:00Z')

const ENDPOINT = { mid: 'M1', endpointId: 'return-call', kind: 'return call' } as const

const delivery = (number: number): Delivery => ({
  mid: 'M1',
  orderId: number.toString(16).padStart(32, '0'),
  merchantOrderId: `order-${number}`,
  sequence: 1,
  type: 'payment.succeeded',
  txnStatus: 'SUCCESS',
  amount: 20_000,
  utr: '523504870405',
  occurredAt: NOW,
  endpoint: ENDPOINT,
  attempts: 0,
  dueAgainAt: '2026-11-21 10:00:40+00',
  redirectUrl: 'https://shop.example/thanks',
})

const DUE = { ...ENDPOINT, dueAt: NOW, failing: false }

/** A worker to whose endpoint there is always something due, with a database that fails as `changes` say. */
function startWorker(call: Dependencies['call'], changes: Partial<Dependencies['deliveries']>) {
  const looks = { count: 0 }
  let taken = 0
  const worker = startDeliveries({
    deliveries: {
      findDue: async () => {
        looks.count++
        return [DUE]
      },
      take: async (_mid, _endpointId, limit) => Array.from({ length: limit }, () => delivery(taken++)),
      settle: async () => null,
      ...changes,
    },
    call,
    sealingKey: undefined,
    log: { warn: () => undefined, error: () => undefined },
    metrics: { delivery: () => undefined, oldestDue: () => undefined, endpointSwitchedOff: () => undefined },
    now: () => NOW,
    limits: { ...LIMITS.webhooks, lookIntervalMs: 20 },
  })
  return { looks, stop: worker.stop }
}

const TAKEN = { status: 200, retryAfterSeconds: undefined, text: '' }

it('begins no more calls while their outcomes cannot be stored: all of them would be made again', async () => {
  let calls = 0
  const call = async () => {
    calls++
    await sleep(5)
    return TAKEN
  }
  let looksAtFailure = 0
  const worker = startWorker(call, {
    findDue: async () => (looksAtFailure++ === 0 ? [DUE] : []),
    settle: async () => {
      throw new Error('the database is away')
    },
  })
  await until('it had looked again after its failure', () => looksAtFailure > 20)
  await worker.stop()
  expect(calls).toBeGreaterThan(0)
  expect(calls).toBeLessThanOrEqual(LIMITS.webhooks.callsOfEndpoint)
})

it('begins no calls beside those that are under way since the database failed', async () => {
  let underWay = 0
  let most = 0
  let takes = 0
  const ended: (() => void)[] = []
  const call = async () => {
    most = Math.max(most, ++underWay)
    await new Promise<void>((resolve) => ended.push(resolve))
    underWay--
    return TAKEN
  }
  const worker = startWorker(call, {
    take: async (_mid, _endpointId, limit) => {
      if (takes++ > 0) throw new Error('the database is away')
      return Array.from({ length: limit }, (_, number) => delivery(number))
    },
  })
  await until('it had looked often', () => worker.looks.count > 20)
  expect(most).toBe(LIMITS.webhooks.callsOfEndpoint)
  const stopping = worker.stop()
  for (const end of ended) end()
  await stopping
})
