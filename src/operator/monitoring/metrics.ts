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

/** Upper bounds in seconds. The p99 of a payment on a busy instance is in the middle of them. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
const BATCH_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200]

/** Statuses that refuse a notification of an acquirer. An outage (503) or a client that left is no refusal. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 404, 409, 413, 415])

/** Sources of payments that the service counts. Payments recorded by the operator's commands are not counted. */
const SOURCES = ['notification', 'enquiry'] as const satisfies readonly ReportSource[]

type Labels = Readonly<Record<string, readonly (string | number)[]>>

/**
 * Help text and labels of each counter. All values of the labels are listed, so that every combination begins at 0:
 * Prometheus sees no increase in a counter that first appears as 1.
 */
const COUNTERS = {
  payment_intents_created_total: ['Intents stored', {}],
  payment_intents_by_next_acquirer_total: [
    'Intents whose link the next acquirer of the merchant has made, since the first one had made none, by what account the first one is',
    { account: ACCOUNT_KINDS },
  ],
  payment_intent_conflicts_total: [
    'Intents that were not stored, since their order_id or Idempotency-Key was taken',
    {},
  ],
  payment_notifications_refused_total: [
    'Notifications of the acquirer that were refused, by status and what account they are for',
    { status: [...REFUSALS], account: ACCOUNT_KINDS },
  ],
  payment_exceptions_total: [
    'Payments that the operator has to look into, by kind and acquirer; repeats of one are not counted',
    { kind: EXCEPTION_KINDS, acquirer: ACQUIRER_NAMES },
  ],
  payments_total: [
    'Payments that this instance recorded, by status and by who reported them; repeats are not counted',
    { status: ['SUCCESS', 'FAIL', 'REJECT'], source: SOURCES },
  ],
  payment_failures_total: [
    'Failed attempts to pay that this instance recorded, by reason and acquirer; repeats are not counted',
    { reason: FAILURE_REASONS, acquirer: ACQUIRER_NAMES },
  ],
  payment_attempts_surplus_total: [
    'Failed attempts that were only counted, since so many of their order are stored already; repeats are counted too',
    {},
  ],
  acquirer_calls_total: [
    'Calls of acquirers that make their own links, by account, call and outcome; refused is the set-up, which has to be mended',
    {
      acquirer: LINKING_NAMES,
      account: ACCOUNT_KINDS,
      call: ['createLink', 'closeLink', 'getPayment', 'refund', 'getRefund'],
      outcome: ['done', 'crowded', 'refused', 'bad answer', 'unavailable'],
    },
  ],
  webhook_deliveries_total: [
    'Webhooks and return calls by outcome; a refused address is not public, or its URL must be https',
    { kind: ['webhook', 'return call'], outcome: ['delivered', 'failed', 'refused address'] },
  ],
  webhook_endpoints_switched_off_total: [
    'Webhooks that the service has switched off, by reason',
    { reason: ['answered 410', 'failed for 5 days'] },
  ],
} as const satisfies Record<string, readonly [help: string, labels: Labels]>

const GAUGES = {
  payment_last_notification_timestamp_seconds:
    'When this instance accepted a notification of an acquirer for the last time; 0 before the first',
  webhook_oldest_due_seconds:
    'For how long the oldest delivery has been due, of endpoints that are not switched off; 0 when none is',
}

/** `accountKind` is that of a notification's account, or of the account that failed to make a link. */
type MeasuredRequest = { route: string; status: number; accountKind?: AccountKind | undefined }

type PoolCounts = { totalCount: number; idleCount: number; waitingCount: number }

export type Metrics = ReturnType<typeof createMetrics>

/**
 * The operator's metrics for Prometheus. `countOpen` is called at every scrape; while it fails, its metrics have no
 * value. Labels contain only names of the service, never text that a caller sent.
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
    help: 'Requests by route and status, and how long they took; a 503 because an acquirer made no link has the account too',
    labelNames: ['route', 'status', 'account'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const batchRows = new Histogram({
    name: 'payment_intent_batch_rows',
    help: 'Intents stored by one statement',
    buckets: BATCH_BUCKETS,
    registers,
  })
  const counters = mapEach(COUNTERS, (name, [help, labels]) => {
    const counter = new Counter({ name, help, labelNames: Object.keys(labels), registers })
    for (const combination of combinationsOf(labels)) counter.inc(combination, 0)
    return counter
  })
  const gauges = mapEach(GAUGES, (name, help) => new Gauge({ name, help, registers }))
  /** Counted in paise, because a sum of fractions of a rupee would drift. */
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
  const countByAge = (name: string, help: string, of: keyof OpenCounts) =>
    new Gauge({
      name,
      help: `${help}, by how long they have been open; in the database, so the same on each instance`,
      labelNames: ['age'],
      registers,
      async collect() {
        const open = await countOpen().catch(() => undefined)
        this.reset()
        for (const [age, count] of Object.entries(open?.[of] ?? {})) this.set({ age }, count)
      },
    })
  countByAge('payment_exceptions_open', 'Exceptions that nobody has resolved', 'exceptions')
  countByAge('payment_refunds_open', 'Refunds without an end', 'refunds')
  let countAcquirers = async () => 0
  new Gauge({
    name: 'payment_acquirers_configured',
    help: 'Accounts at acquirers that can tell this service of payments; with 0 every order stays unpaid',
    registers,
    async collect() {
      const count = await countAcquirers().catch(() => undefined)
      this.reset()
      if (count !== undefined) this.set(count)
    },
  })
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

  // A cache, because prom-client builds strings to find a child by its labels. Route and status have few combinations.
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
      if (REFUSALS.has(status))
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
    },
    acquirerCall: (account: AccountLabels, call: string, outcome: string) =>
      counters.acquirer_calls_total.inc({ ...account, call, outcome }),
    madeByNextAcquirer: (account: AccountKind) => counters.payment_intents_by_next_acquirer_total.inc({ account }),
    acquirersConfigured: (count: () => Promise<number>) => {
      countAcquirers = count
    },
    webhooks: {
      delivery: (kind: 'webhook' | 'return call', outcome: 'delivered' | 'failed' | 'refused address') =>
        counters.webhook_deliveries_total.inc({ kind, outcome }),
      oldestDue: (seconds: number) => gauges.webhook_oldest_due_seconds.set(seconds),
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

/** Every combination of one value for each label. */
const combinationsOf = (labels: Labels): Record<string, string | number>[] =>
  Object.entries(labels).reduce<Record<string, string | number>[]>(
    (chosen, [label, values]) => chosen.flatMap((one) => values.map((value) => ({ ...one, [label]: value }))),
    [{}],
  )

/** `/metrics`, on the operator's port. */
export function metricsRoutes(app: FastifyInstance, { registry }: Pick<Metrics, 'registry'>) {
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
}
