import { describe, expect, it } from 'vitest'
import { createHttpClient } from '../support/http-client.ts'
import { CHANGING, intercept, startChanges } from '../support/late-changes.ts'
import { FORM } from '../support/requests.ts'
import { startServerProcess } from '../support/server-process.ts'
import { basic, form, REFUND } from '../support/service.ts'

const ROUNDS = 20
const CONCURRENCY = 250

describe.each(CHANGING)('%s', (operation) => {
  it('stores a change that returned 200, and allows a repeat after 503, whichever statement loses its connection', async () => {
    const { service, changes, untilQuiet } = await startChanges({})
    const endBackends = () =>
      service.db.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      )
    /** How a statement loses its connection. */
    const LOSSES: Record<string, Parameters<typeof intercept>[0]> = {
      'cut before it is sent'(_text, { stream }) {
        stream.destroy()
        return null
      },
      'cut after it is sent'(_text, { stream }, submit) {
        const error = submit()
        stream.end()
        return error
      },
      'ended by PostgreSQL before it is sent'(_text, _connection, submit) {
        void endBackends().then(submit)
        return null
      },
      'ended by PostgreSQL while it is carried out'(_text, _connection, submit) {
        ending = endBackends()
        return submit()
      },
    }
    let ending: Promise<unknown> | undefined
    let struck = 0
    for (const [loss, strike] of Object.entries(LOSSES)) {
      let place = 0
      for (let isOver = false; !isOver; place++) {
        const { send, isStored } = await changes[operation]()
        let left = place
        intercept((text, connection, submit) => {
          // Statements of the test itself are not affected.
          const isOfService = !/pg_terminate_backend|^select from/.test(text)
          return isOfService && left-- === 0 ? strike(text, connection, submit) : submit()
        })
        const { status } = await send()
        isOver = left >= 0
        left = -1
        if (status === 503) struck++
        else expect([status, await isStored()], `${loss}, statement ${place}`).toEqual([200, true])
        await ending
        await untilQuiet()
        // A repeat may use another one of the terminated connections.
        let repeat = await send()
        for (let tries = 0; repeat.status === 503 && tries < 20; tries++) repeat = await send()
        expect(repeat.status, `repeat after ${loss}, statement ${place}`).toBe(200)
        expect(await isStored()).toBe(true)
      }
      expect(place).toBeGreaterThan(5)
    }
    expect(struck).toBeGreaterThan(12)
  }, 120_000)
})

it(`the service stores no refund whose response was 503, among ${ROUNDS} × ${CONCURRENCY} concurrent refunds of one order over two instances`, async () => {
  const { service, mid, key, paidOrder } = await startChanges({})
  const instances = await Promise.all([1, 2].map(() => startServerProcess(service.databaseUrl)))
  const client = createHttpClient({ maxSockets: CONCURRENCY })
  const headers = { 'content-type': FORM, authorization: basic(key) }
  const statuses: (number | undefined)[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { order_id, orderId } = await paidOrder()
    const responses = await Promise.all(
      Array.from({ length: CONCURRENCY }, async (_, number) => {
        const refund_id = `${order_id}-${number}`
        const body = form({ mid, order_id, refund_id, amount: '1', note: 'One cup was cold' })
        const { url = '' } = instances[number % 2] ?? {}
        const { status } = await client.send(url, { method: 'POST', path: REFUND, headers, body })
        return { refund_id, status }
      }),
    )
    // The lock waits for any transaction that would still commit a change with a 503 response.
    await service.db.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
    const { rows } = await service.db.query<{ refund_id: string }>(
      'select refund_id from refunds where mid = $1 and order_id = $2 order by 1',
      [mid, orderId],
    )
    const accepted = responses.filter(({ status }) => status === 200).map(({ refund_id }) => refund_id)
    expect(rows.map(({ refund_id }) => refund_id)).toEqual(accepted.sort())
    statuses.push(...responses.map(({ status }) => status))
  }
  client.close()
  await Promise.all(instances.map((instance) => instance.stop()))
  const counts = [200, 409, 503].map((requested) => statuses.filter((status) => status === requested).length)
  expect(counts.reduce((sum, count) => sum + count)).toBe(ROUNDS * CONCURRENCY)
  expect(counts[0]).toBeGreaterThan(0)
}, 300_000)
