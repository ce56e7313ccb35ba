import { describe, expect, it } from 'vitest'
import type { HttpClient } from '../../src/platform/outbound/http-client.ts'
import { isGenerated } from '../support/generated.ts'
import { changeAt, type Json, pathsIn } from '../support/json-changes.ts'
import { PATIENT_LIMITS } from '../support/service-with-bank.ts'
import { cashfree } from './conformance/cashfree.ts'
import type { Driver, Stage } from './conformance/driver.ts'
import { startInstance } from './conformance/instance.ts'
import { bankOf, newOrder, type Order, recorded, statusOf } from './conformance/orders.ts'
import { phonepe } from './conformance/phonepe.ts'
import { razorpay } from './conformance/razorpay.ts'
import { setu } from './conformance/setu.ts'

/** Matches status responses about a payment, but not logins. */
const STATUS_URLS = /\/last$|\/payments$|\/status\?/

const swapCase = (text: string) =>
  [...text].map((letter) => (letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase())).join('')

type Change = (body: Json) => void

/** Changes of a value: absent, null, empty, another type, another letter case. */
const BECOMES: readonly ((value: Json) => Json | undefined)[] = [
  () => undefined,
  () => null,
  () => '',
  () => [],
  () => ({}),
  () => true,
  (value) => (typeof value === 'number' ? String(value) : [value]),
  (value) => (typeof value === 'string' ? swapCase(value) : 'NA'),
]

/** Returns at least 200 changes of a response: each value alone, then two values at a time, in a fixed sequence. */
function changesOf(body: Json): Change[] {
  const paths = pathsIn(body)
  const single = paths.flatMap((path) =>
    BECOMES.map(
      (become): Change =>
        (to) =>
          changeAt(to, path, become),
    ),
  )
  const pick = <T>(from: readonly T[], at: number) => from[(at * 7919) % from.length] as T
  const pairs = Array.from(
    { length: Math.max(0, 200 - single.length) },
    (_, at): Change =>
      (to) => {
        changeAt(to, pick(paths, at), pick(BECOMES, at + 3))
        changeAt(to, pick(paths, at * 31 + 1), pick(BECOMES, at + 5))
      },
  )
  return [...single, ...pairs]
}

/**
 * Starts an instance that gets every status response changed by `change`. `seen.body` is the last response before the
 * change.
 */
function instanceWith(stage: Stage, change: Change) {
  const seen: { body: Json } = { body: null }
  const through = (http: HttpClient): HttpClient => ({
    async request(sent) {
      const response = await http.request(sent)
      if (!STATUS_URLS.test(sent.url) || !('body' in response) || response.status !== 200) return response
      const body = JSON.parse(String(response.body)) as Json
      seen.body = structuredClone(body)
      change(body)
      return { ...response, body: Buffer.from(JSON.stringify(body)) }
    },
  })
  return { ...startInstance(stage, undefined, through), seen }
}

async function newPaidOrder(stage: Stage, of: Order['of']): Promise<Order> {
  const order = await newOrder(stage, of)
  await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  return order
}

/** Calls `run` with each element of `all`, 20 at a time. */
async function inBatches<T, R>(all: readonly T[], run: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (let at = 0; at < all.length; at += 20) results.push(...(await Promise.all(all.slice(at, at + 20).map(run))))
  return results
}

/** From then on the status of an unpaid order is final. */
const OVER_SECONDS = 26 * 60

const kindsOf = async (stage: Stage, order: Order) => (await recorded(stage, order)).exceptions.map(([kind]) => kind)

function changed(body: Json, change: Change): string {
  const copy = structuredClone(body)
  change(copy)
  return JSON.stringify(copy)
}

describe.each<[string, Driver]>([
  ['setu', setu],
  ['cashfree', cashfree],
  ['phonepe', phonepe],
  ['razorpay', razorpay],
])('a status response from %s about a paid order', (_name, start) => {
  it('neither marks a paid order as FAIL nor stores a duplicate payment, whichever fields of the status response are changed', async () => {
    const stage = await start({ limits: PATIENT_LIMITS })
    const of = await stage.newMerchant()
    const unchanged = instanceWith(stage, () => undefined)
    await unchanged.checkStatus((await newPaidOrder(stage, of)).orderId)
    const { body } = unchanged.seen
    const all = changesOf(body)
    expect(all.length).toBeGreaterThanOrEqual(200)
    // Uses every ninth change, so that each value meets another kind of change.
    const changes = all.filter((_, index) => isGenerated() || index % 9 === 0)
    const orders = await inBatches(changes, async (change) => {
      const order = await newPaidOrder(stage, of)
      await instanceWith(stage, change)
        .checkStatus(order.orderId)
        .catch(() => undefined)
      return { order, change }
    })
    stage.service.clock.advance(OVER_SECONDS)
    const results = await inBatches(orders, async ({ order, change }) => {
      const [status, kinds] = [await statusOf(stage, order), await kindsOf(stage, order)]
      const isStored = status === 'SUCCESS' ? kinds.length === 0 : status === 'PENDING' && kinds.includes('unreadable')
      return isStored ? [] : [[status, kinds, changed(body, change)]]
    })
    expect(results.flat()).toEqual([])
    await inBatches(orders, async ({ order }) => {
      await unchanged.checkStatus(order.orderId)
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      expect((await kindsOf(stage, order)).filter((kind) => kind !== 'unreadable')).toEqual([])
    })
  }, 120_000)
})
