import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Limits } from '../../limits.ts'
import { startRepeating } from '../../platform/scheduler.ts'
import type { Checkout, Intents, PaymentState } from '../payments/intents.ts'
import { isOver } from '../payments/outcome.ts'
import type { Waiting } from '../payments/status-checks.ts'
import { stateKey } from './page-state.ts'

/** Polls per heartbeat. Heartbeats keep proxies from closing idle connections and let pages detect dead ones. */
const HEARTBEAT_LOOK_UPS = 20
/**
 * Range in milliseconds of the random delay before a browser reconnects. Without it, the 10,000 pages of a stopped
 * instance would connect to another instance simultaneously.
 */
const COME_BACK_FROM_MS = 1_000
const COME_BACK_TO_MS = 4_000

type Page = {
  checkout: Checkout
  /** The key of the state that was last sent to the page. */
  shown: string | undefined
  events: Readable
  /** When the customer returned to the page from an app; undefined if the customer never left it. */
  cameBackAt: Date | undefined
}

type Dependencies = {
  intents: Pick<Intents, 'findStates'>
  waiting: Pick<Waiting, 'schedule'>
  now: () => Date
  limits: Pick<Limits, 'pages'>
  onError: (error: Error) => void
}

/**
 * Sends payment states to open pay pages by server-sent events. An instance runs one query per second for all its open
 * pages, and none without open pages. A page to which the customer returned from an app schedules status checks at the
 * acquirer.
 */
export function createPaymentWatch({ intents, waiting, now, limits: { pages: limits }, onError }: Dependencies) {
  const heartbeat = `event: heartbeat\ndata: ${HEARTBEAT_LOOK_UPS * limits.lookUpIntervalMs}\n\n`
  const pagesOf = new Map<string, Set<Page>>()
  let openPages = 0
  let ticks = 0
  let closed = false
  const { stop } = startRepeating(tick, limits.lookUpIntervalMs, onError)

  async function tick() {
    ticks++
    try {
      await lookUp()
    } finally {
      if (ticks % HEARTBEAT_LOOK_UPS === 0) for (const { events } of allPages()) events.push(heartbeat)
    }
  }

  async function lookUp() {
    if (openPages === 0) return
    const states = await intents.findStates([...pagesOf.keys()])
    const moment = now()
    for (const page of allPages()) update(page, states.get(page.checkout.orderId) ?? page.checkout, moment)
    const cameBack = allPages().filter((page) => page.cameBackAt !== undefined)
    await waiting.schedule(new Map(cameBack.map((page) => [page.checkout.orderId, page.cameBackAt])), moment)
  }

  function update(page: Page, payment: PaymentState, moment: Date) {
    const key = stateKey(payment, moment)
    if (key !== page.shown) page.events.push(`data: ${key}\n\n`)
    page.shown = key
    // A payment of another amount has no final state, but must not keep its stream open until the operator resolves it.
    if (isOver(payment, moment)) {
      page.events.push('event: over\ndata:\n\n')
      end(page)
    }
  }

  function end(page: Page) {
    remove(page)
    page.events.push(null)
  }

  function remove(page: Page) {
    const { orderId } = page.checkout
    const ofOrder = pagesOf.get(orderId)
    if (!ofOrder?.delete(page)) return
    openPages--
    if (ofOrder.size === 0) pagesOf.delete(orderId)
  }

  const allPages = () => [...pagesOf.values()].flatMap((pages) => [...pages])

  return {
    /** Returns a page's event stream, from its current to its final state; undefined if too many streams are open. */
    open(checkout: Checkout, cameBack = false): Readable | undefined {
      const ofOrder = pagesOf.get(checkout.orderId) ?? new Set()
      if (openPages >= limits.open || ofOrder.size >= limits.openOfOrder) return undefined
      const events = new Readable({ read() {} })
      const cameBackAt = cameBack ? now() : undefined
      const page: Page = { checkout, shown: undefined, events, cameBackAt }
      pagesOf.set(checkout.orderId, ofOrder.add(page))
      openPages++
      events.once('close', () => remove(page))
      // Browsers send this id as Last-Event-ID when they reconnect, which distinguishes a reconnection from a
      // customer's return.
      events.push(`retry: ${randomInt(COME_BACK_FROM_MS, COME_BACK_TO_MS)}\nid: 1\n\n`)
      events.push(heartbeat)
      // While the instance shuts down, ends a new stream immediately, so that the browser reconnects to another
      // instance.
      if (closed) end(page)
      else update(page, checkout, now())
      return events
    },

    /** Ends the streams of all pages, whose browsers reconnect to another instance. */
    close() {
      closed = true
      void stop()
      for (const page of allPages()) end(page)
    },
  }
}
