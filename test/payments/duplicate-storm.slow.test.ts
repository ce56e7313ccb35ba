import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, errorResponse, form, intentFields, newMerchant } from '../support/service.ts'

const REPEATS = 200
const STORMS = 5

let db: Database
let servers: ServerProcess[]
beforeAll(async () => {
  const database = await createTestDatabase()
  db = database.db
  servers = await Promise.all([startServerProcess(database.url), startServerProcess(database.url)])
})
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()))
})

describe('order guard over several processes', () => {
  it(`accepts exactly one of ${REPEATS} concurrent repeats of an order_id to two processes, and stores one row`, async () => {
    const { mid, key } = await newMerchant(db)
    const send = async (order_id: string, i: number) => {
      const response = await fetch(`${servers[i % 2]?.url}${CREATE}`, {
        method: 'POST',
        headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
        body: form(intentFields(mid, { order_id })),
      })
      return { status: response.status, body: await response.json() }
    }
    let warmUps = 0
    const warmUp = async () => {
      const responses = await Promise.all(Array.from({ length: 20 }, (_, i) => send(`warm-${warmUps}-${i}`, i)))
      warmUps++
      return responses.every(({ status }) => status === 200)
    }
    // A busy machine may not respond to the first requests in time, because connections and code are still cold.
    await expect.poll(warmUp, { timeout: 30_000 }).toBe(true)

    // A machine too busy to respond to all of them in time returns 503 to some; even then, two never succeed.
    const storm = async (orderId: string) => {
      const responses = await Promise.all(Array.from({ length: REPEATS }, (_, i) => send(orderId, i)))
      const count = (of: number) => responses.filter(({ status }) => status === of).length
      for (const { body } of responses.filter(({ status }) => status === 409)) {
        expect(body).toEqual(errorResponse(409, 'Order ID already exists'))
      }
      const { rowCount } = await db.query('select 1 from payment_intents where mid = $1 and merchant_order_id = $2', [
        mid,
        orderId,
      ])
      expect(rowCount).toBe(1)
      expect(count(200)).toBeLessThanOrEqual(1)
      expect(count(200) + count(409) + count(503)).toBe(REPEATS)
      return { won: count(200), rejected: count(409) }
    }
    let found = await storm('storm')
    for (let i = 1; found.rejected < REPEATS - 1 && i < STORMS; i++) found = await storm(`storm-${i}`)
    expect(found).toEqual({ won: 1, rejected: REPEATS - 1 })
  })
})
