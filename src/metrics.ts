import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ExceptionKind, FinalStatus } from './payments/outcome.ts'
import type { ReportReason } from './payments/reports.ts'

/** Seconds; the p99 of a payment on a busy instance lies in the middle. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
const BATCH_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200]

/** What a notification of the acquirer can be refused with. An outage, and a client that left, refuse nothing. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 404, 409, 413, 415])

/** Each kind of exception at the start of its counter. */
const NO_EXCEPTIONS = {
  'unknown order': 0,
  'amount differs': 0,
  'UTR of another order': 0,
  'double payment': 0,
  'late payment': 0,
  'failure after success': 0,
  unreadable: 0,
} satisfies Record<ExceptionKind, 0>

/** Who tells a running service of payments. The commands of the operator record payments too, which no service counts. */
const TOLD_BY = ['notification', 'enquiry'] as const satisfies readonly ReportReason[]

const ACQUIRER_CALLS = ['prepare', 'close', 'enquire'].flatMap((call) =>
  ['done', 'crowded', 'refused', 'bad answer', 'unavailable'].map((outcome) => ({ call, outcome })),
)

type PoolCounts = { totalCount: number; idleCount: number; waitingCount: number }

export type Metrics = ReturnType<typeof createMetrics>

/**
 * What the operator watches, in the format of Prometheus. `countOpenExceptions` is asked at every scrape; while it fails, that
 * metric has no value. Labels hold names of ours only, never what a caller sent.
 */
export function createMetrics(
  pools: Record<string, PoolCounts>,
  countOpenExceptions: () => Promise<Record<string, number>>,
) {
  const registry = new Registry()
  const registers = [registry]
  // Event-loop lag, memory and garbage collection among them.
  collectDefaultMetrics({ register: registry })

  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Requests by route and status, and how long they took',
    labelNames: ['route', 'status'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const created = new Counter({ name: 'payment_intents_created_total', help: 'Intents stored', registers })
  const conflicts = new Counter({
    name: 'payment_intent_conflicts_total',
    help: 'Intents that were not stored, since their order_id or Idempotency-Key was taken',
    registers,
  })
  const batchRows = new Histogram({
    name: 'payment_intent_batch_rows',
    help: 'Intents stored by one statement',
    buckets: BATCH_BUCKETS,
    registers,
  })
  const refused = new Counter({
    name: 'payment_notifications_refused_total',
    help: 'Notifications of the acquirer that were refused, by status',
    labelNames: ['status'],
    registers,
  })
  // Prometheus sees no increase in a counter that first appears as 1, so the counters of alerts begin at 0.
  for (const status of REFUSALS) refused.inc({ status }, 0)
  const lastNotification = new Gauge({
    name: 'payment_last_notification_timestamp_seconds',
    help: 'When this instance accepted a notification of an acquirer for the last time; 0 before the first',
    registers,
  })
  const exceptions = new Counter({
    name: 'payment_exceptions_total',
    help: 'Payments that the operator has to look into, by kind; repeats of one are not counted',
    labelNames: ['kind'],
    registers,
  })
  for (const [kind, start] of Object.entries(NO_EXCEPTIONS)) exceptions.inc({ kind }, start)
  new Gauge({
    name: 'payment_exceptions_open',
    help: 'Exceptions that nobody has resolved, by how long they have been open; in the database, so the same on each instance',
    labelNames: ['age'],
    registers,
    async collect() {
      const open = await countOpenExceptions().catch(() => ({}))
      this.reset()
      for (const [age, count] of Object.entries(open)) this.set({ age }, count)
    },
  })
  const payments = new Counter({
    name: 'payments_total',
    help: 'Payments that this instance recorded, by status and by who told of them; repeats are not counted',
    labelNames: ['status', 'reason'],
    registers,
  })
  for (const reason of TOLD_BY) for (const status of ['SUCCESS', 'FAIL', 'REJECT']) payments.inc({ status, reason }, 0)
  const surplusAttempts = new Counter({
    name: 'payment_attempts_surplus_total',
    help: 'Failed attempts that were only counted, since so many of their order are stored already; repeats are counted too',
    registers,
  })
  /** A sum of fractions would drift. */
  let paidPaise = 0
  new Counter({
    name: 'payments_rupees_total',
    help: 'Rupees of the successful payments that this instance recorded',
    registers,
    collect() {
      this.reset()
      this.inc(paidPaise / 100)
    },
  })
  const acquirerCalls = new Counter({
    name: 'acquirer_calls_total',
    help: 'Calls of acquirers that make their own links, by call and outcome; refused is the set-up, which has to be mended',
    labelNames: ['acquirer', 'call', 'outcome'],
    registers,
  })
  for (const { call, outcome } of ACQUIRER_CALLS) acquirerCalls.inc({ acquirer: 'setu', call, outcome }, 0)
  const acquirers = new Gauge({
    name: 'payment_acquirers_configured',
    help: 'Acquirers that can tell this service of payments; with 0 every order stays unpaid',
    registers,
  })
  const deliveries = new Counter({
    name: 'webhook_deliveries_total',
    help: 'Webhooks and return calls by outcome; a refused address is not public, or its URL must be https',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  for (const kind of ['webhook', 'return call'] as const) {
    for (const outcome of ['delivered', 'failed', 'refused address'] as const) deliveries.inc({ kind, outcome }, 0)
  }
  const oldestDue = new Gauge({
    name: 'webhook_oldest_due_seconds',
    help: 'For how long the oldest delivery has been due, of endpoints that are not switched off; 0 when none is',
    registers,
  })
  const switchedOff = new Counter({
    name: 'webhook_endpoints_switched_off_total',
    help: 'Webhooks that the service has switched off, by reason',
    labelNames: ['reason'],
    registers,
  })
  for (const reason of ['answered 410', 'failed for 5 days']) switchedOff.inc({ reason }, 0)
  new Gauge({
    name: 'database_pool_connections',
    help: 'Connections by pool and state; waiting are requests without one',
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

  // Looking a child up by its labels builds strings; a route and status have few combinations.
  const children = new Map<string, Map<number, { observe: (seconds: number) => void }>>()
  function requestsOf(route: string, status: number) {
    if (!children.has(route)) requests.zero({ route, status: '500' })
    const byStatus = children.get(route) ?? new Map()
    children.set(route, byStatus)
    const child = byStatus.get(status) ?? requests.labels(route, String(status))
    byStatus.set(status, child)
    return child
  }

  return {
    registry,
    request(route: string, status: number, durationMs: number) {
      requestsOf(route, status).observe(durationMs / 1000)
    },
    /** A notification of an acquirer was answered with `status`. */
    notification(status: number, at: Date) {
      if (REFUSALS.has(status)) refused.inc({ status })
      else if (status === 200) lastNotification.set(at.getTime() / 1000)
    },
    paymentException(kind: ExceptionKind) {
      exceptions.inc({ kind })
    },
    payment(status: FinalStatus, reason: ReportReason, paise: number) {
      payments.inc({ status, reason })
      if (status === 'SUCCESS') paidPaise += paise
    },
    surplusAttempt() {
      surplusAttempts.inc()
    },
    acquirerCall(acquirer: string, call: string, outcome: string) {
      acquirerCalls.inc({ acquirer, call, outcome })
    },
    acquirersConfigured(count: number) {
      acquirers.set(count)
    },
    webhooks: {
      delivery(kind: 'webhook' | 'return call', outcome: 'delivered' | 'failed' | 'refused address') {
        deliveries.inc({ kind, outcome })
      },
      oldestDue(seconds: number) {
        oldestDue.set(seconds)
      },
      endpointSwitchedOff(reason: string) {
        switchedOff.inc({ reason })
      },
    },
    insertBatch(rows: number, stored: number) {
      batchRows.observe(rows)
      created.inc(stored)
      conflicts.inc(rows - stored)
    },
  }
}

/** `/metrics`, on a listener of its own that only the operator reaches. */
export function metricsRoutes(app: FastifyInstance, { registry }: Pick<Metrics, 'registry'>) {
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
}
