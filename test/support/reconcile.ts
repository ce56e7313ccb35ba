import type { Database } from '../../src/platform/db/pool.ts'
import { notificationRequest } from './acquirer.ts'
import type { HttpClient, HttpResponse, Request } from './http-client.ts'
import { type Entry, isUnsure, type Journal, type Names, statusOf } from './journal.ts'
import { creation } from './load.ts'
import { createdOrderId, forEach, statusRequest } from './requests.ts'
import type { Tenant } from './tenants.ts'
import { until } from './wait.ts'

export type Reconciled = {
  /** Requests whose result the client does not know: no response, or 503. */
  unsure: number
  /** Unsure requests for which the client later found out whether they were stored. */
  resolved: number
  /** Acknowledged, but not stored, or stored with another status. */
  lost: number
  /** One order stored or acknowledged as two. */
  doubled: number
  /** Stored, but unknown to the client even after it checked every unsure request. */
  orphaned: number
}

type Row = {
  order_id: string
  merchant_order_id: string
  idempotency_key: string | null
  status: string
  utr: string | null
}

/** Number of acknowledged creates that are repeated too; each must get its first response again. */
const REPLAYED = 50
const CONCURRENT_REQUESTS = 10

/** Checks requests without a response like a merchant's server, then compares journal and database. */
export async function reconcile(options: {
  journal: Journal
  tenant: Tenant
  url: string
  client: HttpClient
  /** A direct connection to the database, unaffected by the fault. */
  db: Database
}): Promise<Reconciled> {
  const { journal, tenant, url, client, db } = options
  await untilNothingIsUnderWay(db)
  const send = (request: Request) => client.send(url, request)
  const changing = journal.filter(({ kind }) => kind === 'create' || kind === 'notification')
  const unsure = changing.filter(isUnsure)
  const certain = journal.filter((entry) => entry.names?.idempotencyKey !== undefined && entry.orderIds.size > 0)
  let resolved = 0
  await forEach(unsure, CONCURRENT_REQUESTS, async (entry) => {
    if (await resolve(entry, tenant, send)) resolved++
  })
  await forEach(
    certain.slice(-REPLAYED),
    CONCURRENT_REQUESTS,
    async (entry) => void (await resolve(entry, tenant, send)),
  )

  const { rows } = await db.query<Row>(
    'select order_id, merchant_order_id, idempotency_key, status, utr from payment_intents where mid = $1',
    [tenant.merchant.mid],
  )
  const stored = new Map(rows.map((row) => [row.order_id, row]))
  const known = new Set(journal.flatMap(({ orderIds }) => [...orderIds]))
  const lostOrders = [...known].filter((orderId) => !stored.has(orderId))
  const lostPayments = journal.filter((entry) => isLostPayment(entry, stored))
  const ownNames = new Set(journal.map(({ storedAs }) => storedAs))
  return {
    unsure: unsure.length,
    resolved,
    lost: lostOrders.length + lostPayments.length,
    doubled: journal.filter((entry) => entry.orderIds.size > 1).length + doubledRows(rows),
    orphaned: rows.filter((row) => !known.has(row.order_id) && !ownNames.has(row.merchant_order_id)).length,
  }
}

/** Whether the result of the request of `entry` is now known. */
async function resolve(
  entry: Entry,
  tenant: Tenant,
  send: (request: Request) => Promise<HttpResponse>,
): Promise<boolean> {
  if (entry.paid) return (await send(notificationRequest(entry.paid.orderId, entry.paid.utr))).status === 200
  const names = entry.names as Names
  const repeat = async () => {
    const response = await send(creation(tenant.merchant, names, entry.operation))
    const orderId = createdOrderId(response)
    if (orderId !== undefined) entry.orderIds.add(orderId)
    return { response, orderId }
  }
  if (names.idempotencyKey !== undefined) return (await repeat()).orderId !== undefined
  // Without a key, checks its own order_id, and creates again if it was not stored.
  const ownOrderId = names.orderId as string
  const found = await send(statusRequest(tenant.merchant, ownOrderId))
  if (found.status === 404) return (await repeat()).orderId !== undefined
  const { response } = await repeat()
  if (response.status !== 409) return false
  entry.storedAs = ownOrderId
  return true
}

/** Whether the order does not show an acknowledged notification. */
function isLostPayment(entry: Entry, stored: Map<string, Row>): boolean {
  if (entry.paid === undefined || statusOf(entry) !== 200) return false
  const row = stored.get(entry.paid.orderId)
  return row?.status !== 'SUCCESS' || row.utr !== entry.paid.utr
}

/** Rows that share their order_id or Idempotency-Key with another row, which constraints must prevent. */
function doubledRows(rows: Row[]): number {
  const surplus = (values: (string | null)[]) => {
    const given = values.filter((value) => value !== null)
    return given.length - new Set(given).size
  }
  return surplus(rows.map((row) => row.merchant_order_id)) + surplus(rows.map((row) => row.idempotency_key))
}

/** A statement may still run and store something after its client has disconnected. */
async function untilNothingIsUnderWay(db: Database): Promise<void> {
  await until('every statement of the service is complete', async () => {
    const { rows } = await db.query(
      `select from pg_stat_activity
        where datname = current_database() and state <> 'idle' and backend_type = 'client backend' and pid <> pg_backend_pid()`,
    )
    return rows.length === 0
  })
}
