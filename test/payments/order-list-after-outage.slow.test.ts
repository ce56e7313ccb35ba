import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest'
import { waitForReplica } from '../../src/platform/db/replica.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { checkedFields, createWithHistory, HISTORIES, listedFields } from '../support/order-states.ts'
import {
  createReplicatedDatabase,
  type ReplicatedPostgres,
  startReplicatedPostgres,
} from '../support/replicated-postgres.ts'
import { forEach } from '../support/requests.ts'
import { newMerchant, OWN_ORDERS, post, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

// A merchant whose webhook receiver is down all day reads one list instead of the status of each order. Runs with a
// replica, which serves the list, or on a distributed database: TEST_CITUS=1.

/** One more than a list that is read in one piece, so that the list is streamed, and each status is a short list. */
const ORDERS = 1_001
const CONCURRENCY = 20
const DAY = { s_date: '05-01-2026', e_date: '05-01-2026' }
const STATUSES = ['PENDING', 'SUCCESS', 'FAIL', 'REJECT']

let servers: ReplicatedPostgres | undefined
let replicaUrl: string | undefined
let service: TestService
let merchant: NewMerchant
/** What checkPaymentStatus returns for each order, in the order of the list. */
let checked: Awaited<ReturnType<typeof checkedFields>>[]

beforeAll(async () => {
  const webhooks = { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') }
  service = await startService({ webhooks, ...(ON_CITUS ? {} : { replicated: await replicated() }) })
  merchant = await newMerchant(service.db)
  await newWebhook(service.db, { mid: merchant.mid, url: 'https://127.0.0.1:1/' }, service.clock.now())
  const histories = Object.keys(HISTORIES)
  const orderIds: string[] = []
  // The first half has expired when the list is read.
  for (const [hour, count] of [
    [11, Math.floor(ORDERS / 2)],
    [12, Math.ceil(ORDERS / 2)],
  ] as const) {
    service.clock.set(`2026-01-05T${hour}:00:00+05:30`)
    orderIds.push(
      ...(await forEach(Array.from({ length: count }), CONCURRENCY, (_, index) =>
        createWithHistory(service, merchant, histories[index % histories.length] as string),
      )),
    )
  }
  checked = await forEach(orderIds.toSorted(), CONCURRENCY, (orderId) => checkedFields(service, merchant, orderId))
  if (replicaUrl !== undefined) expect(await waitForReplica(service.db, replicaUrl)).toBe(true)
}, 300_000)

// Outside beforeAll, because it would not run inside it.
afterAll(() => servers?.remove())

async function replicated() {
  servers = await startReplicatedPostgres(join(inject('runDirectory'), 'replicated-orders'))
  const urls = await createReplicatedDatabase(servers)
  replicaUrl = urls.replicaUrl
  return urls
}

const list = async (fields: Record<string, string> = {}, headers = {}) => {
  const response = await post(service.app, OWN_ORDERS, { mid: merchant.mid, ...DAY, ...fields }, merchant.key, headers)
  expect(response.status).toBe(200)
  return response
}

it('one fetchOrderList equals 1,001 checkPaymentStatus responses after a day without webhooks, in JSON and CSV', async () => {
  const { lists } = service.pools
  const onPrimary = replicaUrl === undefined ? undefined : [vi.spyOn(lists, 'query'), vi.spyOn(lists, 'connect')]
  expect((await list()).body.data.map(listedFields)).toEqual(checked)
  const csv = (await list({}, { accept: 'text/csv' })).text
  expect(parse<Record<string, string>>(csv, { columns: true }).map(listedFields)).toEqual(checked)
  for (const status of STATUSES) {
    const ofStatus = checked.filter((order) => order.status === status)
    expect(ofStatus.length).toBeGreaterThan(0)
    expect((await list({ status })).body.data.map(listedFields), status).toEqual(ofStatus)
  }
  expect(new Set(checked.map(({ msg }) => msg)).size).toBe(7)
  for (const calls of onPrimary ?? []) expect(calls).not.toHaveBeenCalled()
  const { rows } = await service.db.query(
    'select count(*) filter (where delivered_at is not null)::int as delivered, count(*)::int as events from webhook_deliveries',
  )
  expect(rows[0].delivered).toBe(0)
  expect(rows[0].events).toBeGreaterThan(ORDERS / 2)
})
