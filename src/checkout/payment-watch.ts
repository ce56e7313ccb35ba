import type { Limits } from '../limits.ts'
import type { Checkout, Intents, PaymentState } from '../payments/intents.ts'
import { isFinal, type PageState, pageState } from './page.ts'

/**
 * `state` is called for each new state of the payment, with the UTR once it is paid. The last call is `over`, when the state is
 * final, or `leave`, when this instance stops and the page has to connect to another one.
 */
export type PageListener = {
  state: (state: PageState, utr: string | null) => void
  heartbeat: () => void
  over: () => void
  leave: () => void
}

type Page = { checkout: Checkout; shown: PageState | undefined; listener: PageListener }

export type PaymentWatch = ReturnType<typeof createPaymentWatch>

/**
 * Tells open pay pages what becomes of their payments. However many are open, an instance asks the database once a
 * second; with none open it does not ask at all.
 */
export function createPaymentWatch({
  intents,
  now,
  limits: { lookUpIntervalMs, heartbeatLookUps },
  onError,
}: {
  intents: Pick<Intents, 'findStates'>
  now: () => Date
  limits: Limits['pages']
  onError: (error: unknown) => void
}) {
  const pages = new Set<Page>()
  let timer: NodeJS.Timeout | undefined
  let ticks = 0
  let closed = false

  async function tick() {
    timer = undefined
    ticks++
    try {
      await lookUp()
    } catch (error) {
      // The next try is a second later; the pages stay open.
      onError(error)
    }
    if (ticks % heartbeatLookUps === 0) for (const { listener } of pages) listener.heartbeat()
    schedule()
  }

  async function lookUp() {
    // The last page may have closed since this look-up was planned.
    if (pages.size === 0) return
    const states = await intents.findStates([...new Set([...pages].map(({ checkout }) => checkout.orderId))])
    const moment = now()
    for (const page of pages) {
      tell(page, states.get(page.checkout.orderId) ?? page.checkout, moment)
    }
  }

  function tell(page: Page, payment: PaymentState, moment: Date) {
    const state = pageState(payment, moment)
    if (state !== page.shown) page.listener.state(state, payment.utr)
    page.shown = state
    if (isFinal(state)) end(page)
  }

  function end(page: Page) {
    pages.delete(page)
    page.listener.over()
  }

  function schedule() {
    if (pages.size > 0) timer ??= setTimeout(tick, lookUpIntervalMs)
  }

  return {
    /** Watches a payment for a page and calls `state` at once. Returns the function that ends it. */
    open(checkout: Checkout, listener: PageListener): () => unknown {
      // A request may still be on its way here while the instance closes.
      if (closed) {
        listener.leave()
        return () => undefined
      }
      const page: Page = { checkout, shown: undefined, listener }
      pages.add(page)
      tell(page, checkout, now())
      schedule()
      return () => pages.delete(page)
    },

    /** Ends every page's connection; the browsers come back by themselves, to another instance. */
    close() {
      closed = true
      clearTimeout(timer)
      for (const page of pages) {
        pages.delete(page)
        page.listener.leave()
      }
    },
  }
}
