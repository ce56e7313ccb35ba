import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { newUtr } from '../support/acquirer.ts'
import { stopAtEnd } from '../support/at-end.ts'
import { createHttpClient } from '../support/http-client.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { type FormRequest, statusRequest } from '../support/requests.ts'
import { CANCEL, newMerchant, post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const service = await startService({ limits: { databaseWait: { pauseMs: 20 } } })
const merchant = await newMerchant(service.db)
const other = await newMerchant(service.db)
await service.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = service.app.server.address() as AddressInfo
const url = `http://127.0.0.1:${port}`
const { send, close } = createHttpClient()
stopAtEnd(close)

const { requests } = service.pools
const { query } = requests
afterEach(() => {
  requests.query = query
})

/** Makes look-ups wait until `release`; later ones run, unless `fail` returns an error. Records their orderIds. */
function delayLookUps(fail: (orderIds: string[]) => Error | undefined = () => undefined) {
  const lookUps: string[][] = []
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  requests.query = (async (statement: { text: string; values: (string | string[])[] }) => {
    if (statement.text.includes('"failureReported"')) {
      const orderIds = [statement.values[1] as string | string[]].flat()
      lookUps.push(orderIds)
      await released
      const error = fail(orderIds)
      if (error) throw error
    }
    return (query as (statement: unknown) => unknown).call(requests, statement)
  }) as never
  return { lookUps, release }
}

const ask = (request: FormRequest) => send(url, request)
const isWaiting = (lookUps: string[][]) => until('the first look-up waits', () => lookUps.length === 1)

/** One order of each status that a look-up can return, and one that is unknown. */
async function ordersOfEachStatus() {
  const orders = []
  for (const name of ['open', 'paid', 'failed', 'cancelled'])
    orders.push(await createOrder(service, merchant, { order_id: name }))
  const [open, paid, failed] = orders as [string, string, string]
  await reportPayment(service, paid)
  await reportPayment(service, failed, { status: 'FAIL', UTR: newUtr() })
  await post(service.app, CANCEL, { mid: merchant.mid, order_id: 'cancelled' }, merchant.key)
  return [open, 'open', paid, 'paid', failed, 'failed', 'cancelled', 'unknown']
}

it('a shared look-up returns to each request the same result as a separate look-up', async () => {
  const orders = await ordersOfEachStatus()
  const alone = []
  for (const order of orders) alone.push((await ask(statusRequest(merchant, order))).text)
  const { release } = delayLookUps()
  const together = orders.map((order) => ask(statusRequest(merchant, order)))
  const ofOther = ask(statusRequest(other, 'paid'))
  await send(url, { method: 'GET', path: '/livez' })
  release()
  expect((await Promise.all(together)).map(({ text }) => text)).toEqual(alone)
  expect((await ofOther).status).toBe(404)
  // Both identifiers of an order get the same PENDING, which contains neither.
  expect(new Set(alone).size).toBe(6)
})

it.skipIf(ON_CITUS)('status requests that arrive during a look-up share the next look-up', async () => {
  const { lookUps, release } = delayLookUps()
  const first = ask(statusRequest(merchant, 'unknown'))
  await isWaiting(lookUps)
  const names = Array.from({ length: 20 }, (_, i) => `order-${i}`)
  const responses = names.map((name) => ask(statusRequest(merchant, name)))
  // They have arrived once the same process has responded to a later request.
  await Promise.all(names.map(() => send(url, { method: 'GET', path: '/livez' })))
  release()
  expect((await Promise.all([first, ...responses])).map(({ status }) => status)).toEqual(Array(21).fill(404))
  expect(lookUps[1]?.toSorted()).toEqual(names.toSorted())
})

it.skipIf(ON_CITUS)('a status request leaves the shared look-up if the client has disconnected', async () => {
  const { lookUps, release } = delayLookUps()
  const first = ask(statusRequest(merchant, 'unknown'))
  await isWaiting(lookUps)
  const { path, headers, body } = statusRequest(merchant, 'left')
  const head = Object.entries({ host: 'localhost', ...headers, 'content-length': String(body.length) })
  const socket = connect(port, '127.0.0.1')
  const accepted = once(service.app.server, 'request')
  socket.write(`POST ${path} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`)
  const [request] = await accepted
  await until('the request has arrived', () => request.complete)
  socket.destroy()
  await until('its connection is closed', () => request.socket.destroyed)
  const staying = ask(statusRequest(merchant, 'staying'))
  await send(url, { method: 'GET', path: '/livez' })
  release()
  await Promise.all([first, staying])
  expect(lookUps.flat().toSorted()).toEqual(['staying', 'unknown'])
})

it.skipIf(ON_CITUS)(
  'the service repeats the look-up of each request separately if a shared look-up fails in an outage',
  async () => {
    const lost = new Error('Connection terminated unexpectedly')
    let failures = 0
    const { lookUps, release } = delayLookUps((orderIds) =>
      orderIds.length > 1 && failures++ === 0 ? lost : undefined,
    )
    const first = ask(statusRequest(merchant, 'unknown'))
    await isWaiting(lookUps)
    const responses = ['paid', 'failed'].map((name) => ask(statusRequest(merchant, name)))
    await until('a look-up fails', async () => {
      await send(url, { method: 'GET', path: '/livez' })
      release()
      return failures > 0
    })
    expect((await Promise.all([first, ...responses])).map(({ status }) => status)).toEqual([404, 200, 200])
  },
)
