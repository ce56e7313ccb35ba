import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { BUILD } from '../../build-info.ts'
import { ACCOUNT_KINDS, type AccountKind, splitAccountName } from '../../gateway/acquirers/accounts.ts'
import { ACQUIRER_NAMES, LINKING_NAMES } from '../../gateway/acquirers/acquirers.ts'
import type { AccountLabels } from '../../gateway/acquirers/client.ts'
import { FAILURE_REASONS, type FailureReason } from '../../gateway/payments/failure-reasons.ts'
import {
  EXCEPTION_KINDS,
  type ExceptionKind,
  type FinalStatus,
  type ReportSource,
} from '../../gateway/payments/outcome.ts'
import type { OpenCounts } from './overview.ts'

/** Upper bounds in seconds, centred on the 99th percentile of a payment's duration on a busy instance. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
const BATCH_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200]

/** HTTP statuses of rejected acquirer notifications. An outage (503) and an aborted request are not rejections. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 401, 404, 409, 413, 415])

/**
 * Sources whose payments the service counts. `ops` records payments in a separate process, so no instance counts
 * payments from `ops`.
 */
const SOURCES = ['notification', 'enquiry'] as const satisfies readonly ReportSource[]

type Labels = Readonly<Record<string, readonly (string | number)[]>>

/**
 * Help text and labels for each counter. Label values are listed so that every combination starts at 0, because
 * Prometheus sees no increase in a counter that first appears as 1.
 */
const COUNTERS = {
  payment_intents_created_total: ['Payment intents created', {}],
  payment_intents_by_next_acquirer_total: [
    'Payment intents created by the fallback acquirer after the first acquirer created no link, by kind of the first acquirer account',
    { account: ACCOUNT_KINDS },
  ],
  payment_intent_conflicts_total: [
    'Payment intents rejected because their order_id or Idempotency-Key was already used',
    {},
  ],
  payment_notifications_refused_total: [
    'Acquirer notifications rejected, by HTTP status and kind of acquirer account',
    { status: [...REJECTIONS], account: ACCOUNT_KINDS },
  ],
  payment_exceptions_total: [
    'Payment exceptions stored, by kind and acquirer; repeated reports are not counted',
    { kind: EXCEPTION_KINDS, acquirer: ACQUIRER_NAMES },
  ],
  payments_total: [
    'Payments recorded by this instance, by status and source; repeated reports are not counted',
    { status: ['SUCCESS', 'FAIL', 'REJECT'], source: SOURCES },
  ],
  payment_failures_total: [
    'Failed payment attempts recorded by this instance, by reason and acquirer; repeated reports are not counted',
    { reason: FAILURE_REASONS, acquirer: ACQUIRER_NAMES },
  ],
  payment_attempts_surplus_total: [
    'Failed payment attempts counted but not stored because the order has the maximum number of stored attempts; repeated reports are counted',
    {},
  ],
  payment_unknown_instruments_total: [
    'Payments recorded by this instance whose report names an unknown payment instrument, by acquirer; repeated reports are not counted',
    { acquirer: ACQUIRER_NAMES },
  ],
  acquirer_calls_total: [
    'Calls to acquirer APIs, by account, call and outcome; "refused" means that the configuration must be corrected',
    {
      acquirer: LINKING_NAMES,
      account: ACCOUNT_KINDS,
      call: ['createLink', 'closeLink', 'getPayment', 'refund', 'getRefund'],
      outcome: ['done', 'crowded', 'refused', 'bad answer', 'unavailable'],
    },
  ],
  webhook_deliveries_total: [
    'Delivery attempts of webhooks and return-URL callbacks, by outcome; "refused address" means not public, or http instead of https',
    { kind: ['webhook', 'return call'], outcome: ['delivered', 'failed', 'refused address'] },
  ],
  webhook_endpoints_switched_off_total: [
    'Webhook endpoints disabled by the service, by reason',
    { reason: ['answered 410', 'failed for 5 days'] },
  ],
} as const satisfies Record<string, readonly [help: string, labels: Labels]>

const GAUGES = {
  payment_last_notification_timestamp_seconds:
    'Time when this instance last accepted an acquirer notification; 0 before the first',
  webhook_oldest_due_seconds: 'Age of the oldest due delivery to an enabled webhook endpoint; 0 without any',
}

/**
 * A request to measure. `accountKind` is the kind of the account that sent a notification, or of the account that
 * created no link.
 */
type MeasuredRequest = { route: string; status: number; accountKind?: AccountKind | undefined }

type PoolCounts = { totalCount: number; idleCount: number; waitingCount: number }

export type Metrics = ReturnType<typeof createMetrics>

/**
 * Creates the metrics for Prometheus. Calls `countOpen` at every scrape; if the call fails, the metrics for open items
 * have no value. Labels contain only values that the service defines, never text from a request.
 */
export function createMetrics(pools: Record<string, PoolCounts>, countOpen: () => Promise<OpenCounts>) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'upi_payments_build_info',
    help: 'Version and commit of the running build; the value is always 1',
    labelNames: ['version', 'commit'],
    registers,
  }).set(BUILD, 1)
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of HTTP requests, by route and status; account is set on a 503 caused by an acquirer that created no link',
    labelNames: ['route', 'status', 'account'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const batchRows = new Histogram({
    name: 'payment_intent_batch_rows',
    help: 'Payment intents inserted per statement',
    buckets: BATCH_BUCKETS,
    registers,
  })
  const counters = mapEach(COUNTERS, (name, [help, labels]) => {
    const counter = new Counter({ name, help, labelNames: Object.keys(labels), registers })
    for (const combination of combinationsOf(labels)) counter.inc(combination, 0)
    return counter
  })
  const gauges = mapEach(GAUGES, (name, help) => new Gauge({ name, help, registers }))
  /** The sum is in paise, because a floating-point sum in rupees would drift. */
  let paidPaise = 0
  new Counter({
    name: 'payments_rupees_total',
    help: 'Amount in rupees of the successful payments recorded by this instance',
    registers,
    collect() {
      this.reset()
      this.inc(paidPaise / 100)
    },
  })
  const countOpenItems = (name: string, help: string, of: keyof OpenCounts, label = 'age') =>
    new Gauge({
      name,
      help: `${help}, by ${label}; read from the database, so equal on every instance`,
      labelNames: [label],
      registers,
      async collect() {
        const open = await countOpen().catch(() => undefined)
        this.reset()
        for (const [value, count] of Object.entries(open?.[of] ?? {})) this.set({ [label]: value }, count)
      },
    })
  countOpenItems('payment_exceptions_open', 'Open payment exceptions', 'exceptions')
  countOpenItems('payment_refunds_open', 'Refunds without a final status', 'refunds')
  countOpenItems('payment_disputes_open', 'Disputes that await a response', 'disputes', 'deadline')
  let countAcquirers = async () => 0
  new Gauge({
    name: 'payment_acquirers_configured',
    help: 'Acquirer accounts that can notify this service of payments; with 0, every order stays unpaid',
    registers,
    async collect() {
      const count = await countAcquirers().catch(() => undefined)
      this.reset()
      if (count !== undefined) this.set(count)
    },
  })
  new Gauge({
    name: 'database_pool_connections',
    help: 'Database connections by pool and state; waiting counts requests without a connection',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
        this.set({ pool, state: 'busy' }, totalCount - idleCount)
        this.set({ pool, state: 'idle' }, idleCount)
        this.set({ pool, state: 'waiting' }, waitingCount)
      }
    },
  })

  // Caches the child metrics, because prom-client builds strings to find a child by its labels. The cache stays small,
  // because routes and statuses have few combinations.
  const children = new Map<string, Map<number, { observe: (seconds: number) => void }>>()
  return {
    registry,
    request({ route, status, accountKind: account }: MeasuredRequest, durationMs: number, at: Date) {
      const isNotification = route.startsWith('/acquirer/')
      if (!children.has(route)) requests.zero({ route, status: '500' })
      const byStatus = children.get(route) ?? new Map()
      children.set(route, byStatus)
      if (status === 503 && account && !isNotification) {
        requests.observe({ route, status: '503', account }, durationMs / 1000)
      } else {
        const child = byStatus.get(status) ?? requests.labels({ route, status: String(status) })
        byStatus.set(status, child)
        child.observe(durationMs / 1000)
      }
      if (!isNotification) return
      if (REJECTIONS.has(status))
        counters.payment_notifications_refused_total.inc({ status, account: account ?? 'default' })
      else if (status === 200) gauges.payment_last_notification_timestamp_seconds.set(at.getTime() / 1000)
    },
    reports: {
      onException: (kind: ExceptionKind, account: string) =>
        counters.payment_exceptions_total.inc({ kind, acquirer: splitAccountName(account).acquirer }),
      onPayment(status: FinalStatus, source: ReportSource, paise: number) {
        counters.payments_total.inc({ status, source })
        if (status === 'SUCCESS') paidPaise += paise
      },
      onFailure: (reason: FailureReason, account: string) =>
        counters.payment_failures_total.inc({ reason, acquirer: splitAccountName(account).acquirer }),
      onSurplusAttempt: () => counters.payment_attempts_surplus_total.inc(),
      onUnknownInstrument: (account: string) =>
        counters.payment_unknown_instruments_total.inc({ acquirer: splitAccountName(account).acquirer }),
    },
    acquirerCall: (account: AccountLabels, call: string, outcome: string) =>
      counters.acquirer_calls_total.inc({ ...account, call, outcome }),
    createdByFallback: (account: AccountKind) => counters.payment_intents_by_next_acquirer_total.inc({ account }),
    acquirersConfigured: (count: () => Promise<number>) => {
      countAcquirers = count
    },
    webhooks: {
      delivery: (kind: 'webhook' | 'return call', outcome: 'delivered' | 'failed' | 'refused address') =>
        counters.webhook_deliveries_total.inc({ kind, outcome }),
      oldestPending: (seconds: number) => gauges.webhook_oldest_due_seconds.set(seconds),
      endpointSwitchedOff: (reason: string) => counters.webhook_endpoints_switched_off_total.inc({ reason }),
    },
    insertBatch(rows: number, stored: number) {
      batchRows.observe(rows)
      counters.payment_intents_created_total.inc(stored)
      counters.payment_intent_conflicts_total.inc(rows - stored)
    },
  }
}

function mapEach<Name extends string, T, R>(each: Record<Name, T>, map: (name: Name, value: T) => R) {
  const mapped = Object.entries<T>(each).map(([name, value]) => [name, map(name as Name, value)])
  return Object.fromEntries(mapped) as Record<Name, R>
}

/** Returns every combination of label values. */
const combinationsOf = (labels: Labels): Record<string, string | number>[] =>
  Object.entries(labels).reduce<Record<string, string | number>[]>(
    (chosen, [label, values]) => chosen.flatMap((one) => values.map((value) => ({ ...one, [label]: value }))),
    [{}],
  )

/** Serves `/metrics` on the operator port. */
export function metricsRoutes(app: FastifyInstance, { registry }: Pick<Metrics, 'registry'>) {
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
}
