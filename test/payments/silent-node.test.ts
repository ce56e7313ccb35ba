import { expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { batchInserts } from '../../src/payments/insert-batches.ts'
import type { Intent } from '../../src/payments/intent.ts'

// Where the database is spread, a node can be silent: what is sent to it is not answered, and not refused either. `npm run
// test:deployment -- citus` tries it with a whole cluster.

const { batchesInFlight, waiting } = LIMITS.inserts

const intentOf = (node: string) => ({ orderId: crypto.randomUUID(), mid: node }) as Intent

/** A store whose node `silent` never answers; every merchant there has a lane of its own. */
function startStore() {
  const underWay: string[] = []
  const insert = batchInserts(
    ([first, ...others]) => {
      const node = first?.mid as string
      underWay.push(node)
      if (node === 'silent') return new Promise(() => undefined)
      return Promise.resolve(new Set([first, ...others].map((intent) => intent?.orderId as string)))
    },
    () => undefined,
    LIMITS.inserts,
  )
  return {
    underWay,
    store: (node: string, lane: string) => insert(intentOf(node), { lane, node }),
  }
}

it('a silent node takes half of the places of inserts, however many of its merchants create payments', async () => {
  const { underWay, store } = startStore()
  for (let merchant = 0; merchant < 100; merchant++) void store('silent', `silent ${merchant}`)
  const stored = await Promise.all(Array.from({ length: 100 }, (_, merchant) => store('other', `other ${merchant}`)))
  expect(stored).toEqual(Array(100).fill(true))
  expect(underWay.filter((node) => node === 'silent').length).toBe(batchesInFlight / 2)
})

it('the intents that wait for a silent node are no more than half of all that may wait', async () => {
  const { store } = startStore()
  const outcomes = Array.from({ length: waiting }, () =>
    store('silent', 'one merchant').catch(({ statusCode }) => statusCode as number),
  )
  expect(await store('other', 'another merchant')).toBe(true)
  const refused = await Promise.all(outcomes.slice(waiting / 2))
  expect(refused).toEqual(Array(waiting / 2).fill(503))
})
