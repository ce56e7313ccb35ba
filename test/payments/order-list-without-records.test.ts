import { text } from 'node:stream/consumers'
import { afterEach, expect, it, vi } from 'vitest'
import { defineList } from '../../src/platform/lists/list.ts'
import { createLists } from '../../src/platform/lists/lists.ts'
import { formRequest } from '../support/requests.ts'
import { newMerchant, OWN_ORDERS, post, startService, UNAVAILABLE } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

/** Streams every list. A list that reads its whole range begins soon, whether or not it has found a record. */
const service = await startService({ limits: { lists: { shortRows: -1, firstRecordMs: 20 } } })
const DAYS = { s_date: '01-01-2026', e_date: '31-12-2026' }

afterEach(() => vi.restoreAllMocks())

/** Stops lists before they get a connection, until the returned function is called. */
function holdLists(): () => void {
  const { lists } = service.pools
  const connect = lists.connect.bind(lists) as (...args: unknown[]) => unknown
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  // Only a query of the pool passes a callback.
  vi.spyOn(lists, 'connect').mockImplementation(((...args: unknown[]) =>
    args.length > 0 ? connect(...args) : released.then(() => connect())) as never)
  return release
}

const untilHeld = (count: number) =>
  vi.waitFor(() => {
    const { calls } = vi.mocked(service.pools.lists.connect).mock
    expect(calls.filter((args: unknown[]) => args.length === 0)).toHaveLength(count)
  })

/** Sends the request and returns its response once the response has begun. */
function begin({ mid, key }: NewMerchant, status: string, accept = 'application/json') {
  const { path, body, headers } = formRequest(OWN_ORDERS, key, { mid, ...DAYS, status })
  const request = { method: 'POST', url: path, payload: body, headers: { ...headers, accept } } as const
  return service.app.inject({ ...request, payloadAsStream: true })
}

it.each(['SUCCESS', 'FAIL'])(
  'a list of %s orders begins before it has found an order, and may be empty',
  async (status) => {
    const merchant = await newMerchant(service.db)
    const release = holdLists()
    const json = await begin(merchant, status)
    const csv = await begin(await newMerchant(service.db), status, 'text/csv')
    release()
    expect([json.statusCode, csv.statusCode]).toEqual([200, 200])
    const empty = { status: true, statusCode: 200, msg: 'Orders found', data: [] }
    expect(JSON.parse(await text(json.stream()))).toEqual(empty)
    expect(await text(csv.stream())).toMatch(/^orderId,[\w,]+\r\n$/)
  },
)

it('every other list begins with its first record, or is empty and says so', async () => {
  const { mid, key } = await newMerchant(service.db)
  for (const status of [{}, { status: 'PENDING' }, { status: 'REJECT' }]) {
    const release = holdLists()
    const response = post(service.app, OWN_ORDERS, { mid, ...DAYS, ...status }, key)
    await untilHeld(1)
    setTimeout(release, 100)
    expect((await response).body).toEqual({ status: true, statusCode: 200, msg: 'No orders found', data: [] })
    vi.restoreAllMocks()
  }
})

it('the service reads two long lists with a status concurrently, and at the same time other lists', async () => {
  const [first, second, third, fourth] = await Promise.all([1, 2, 3, 4].map(() => newMerchant(service.db)))
  const release = holdLists()
  const begun = [await begin(first as NewMerchant, 'SUCCESS'), await begin(second as NewMerchant, 'FAIL')]
  const rejected = await begin(third as NewMerchant, 'PENDING')
  const { mid, key } = fourth as NewMerchant
  const other = post(service.app, OWN_ORDERS, { mid, ...DAYS }, key)
  await untilHeld(3)
  expect(rejected.statusCode).toBe(503)
  expect(JSON.parse(await text(rejected.stream()))).toEqual(UNAVAILABLE)
  release()
  for (const response of begun) expect(JSON.parse(await text(response.stream())).data).toEqual([])
  expect((await other).body.msg).toBe('No orders found')
  expect((await post(service.app, OWN_ORDERS, { mid, ...DAYS, status: 'FAIL' }, key)).status).toBe(200)
})

/** A list whose filter reads for minutes without finding a row. */
const ENDLESS = defineList({
  fields: [['number', 'a']],
  from: 'generate_series(1, 100000) a cross join generate_series(1, 100000) b',
  where: 'true',
  filter: 'a + b < 0',
  order: 'a',
})

it('PostgreSQL stops reading a list when the reader leaves, although the list has found no record', async () => {
  const isRead = async () =>
    (
      await service.db.query(
        `select from pg_stat_activity where state = 'active' and query like 'copy (select a from generate_series%'`,
      )
    ).rowCount === 1
  const reader = new AbortController()
  const { long } = createLists({ lists: service.pools.lists })
  const batches = long(ENDLESS, {}, reader.signal)
  batches.next().catch(() => undefined)
  await until('PostgreSQL was reading the list', isRead)
  reader.abort()
  await until('PostgreSQL had stopped', async () => !(await isRead()))
})
