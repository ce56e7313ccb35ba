import { internalError, paymentClosed, unavailable } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { operation } from '../../platform/http/operation.ts'
import type { Waiting } from '../payments/status-checks.ts'
import { type FindCheckout, noPaymentHere, ORDER_PATH } from './find-checkout.ts'
import { errorPage, pageHeaders, pageState, payPageText } from './page.ts'
import { refundsInSandbox } from './simulate.ts'
import { textsFor } from './texts.ts'
import { isInAppBrowser, platformOf } from './wallet-links.ts'

/** Seconds after which a browser reloads a page that was rejected with 503. */
const ERROR_PAGE_RELOAD_SECONDS = 5

export const payPage = operation({
  name: 'payPage',
  path: ORDER_PATH,
  tag: 'Customer',
  summary: 'Show the pay page',
  description:
    'The `payment_url` of createOrderRequest, for browsers. The page updates itself when the payment status changes; after a failed attempt ' +
    'the customer can pay again. In English, or in Hindi if `Accept-Language` prefers it.',
  access: 'anyone',
  errors: [noPaymentHere(), paymentClosed(), internalError(), unavailable()],
  response: { description: 'The page.', type: 'text/html', toBody: (page: string) => page },
  route: {
    config: { errorPage: (failure, request) => errorPage(failure, request.headers['accept-language']) },
    // A page without JavaScript relies on reloading itself, so it must also reload after a 503.
    onSend: (_request, reply, payload, done) => {
      if (reply.statusCode === 503) reply.header('refresh', ERROR_PAGE_RELOAD_SECONDS)
      done(null, payload)
    },
  },
  handle: ({ findCheckout, pools, waiting, now, sandbox, publicUrl }: Dependencies) => {
    return async ({ params, query, headers }, reply) => {
      const checkout = await findCheckout(params.orderId)
      const moment = now()
      // A reload shows that the customer still has the page open without JavaScript, so a status check is scheduled.
      if ('reload' in query) {
        const orders = new Map([[checkout.orderId, undefined]])
        reply.raw.once('finish', () => void waiting.schedule(orders, moment).catch(() => undefined))
      }
      const texts = textsFor(headers['accept-language'])
      const refunds = sandbox && checkout.status === 'SUCCESS' ? await refundsInSandbox(pools.pages, checkout) : []
      // The page's script polls these x-payment headers with HEAD requests while it gets no events.
      reply.headers({
        ...pageHeaders(texts),
        'x-payment-state': pageState(checkout, moment),
        'x-payment-utr': checkout.utr ?? '',
      })
      const platform = platformOf(headers['user-agent'])
      const isInApp = platform !== 'unknown' && isInAppBrowser(headers['user-agent'])
      const device = { platform, browserAddress: isInApp ? `${publicUrl}/pay/${checkout.orderId}` : undefined }
      return payPageText(checkout, { now: moment, sandbox, refunds, device, texts })
    }
  },
})

type Dependencies = {
  findCheckout: FindCheckout
  pools: Pick<Pools, 'pages'>
  waiting: Pick<Waiting, 'schedule'>
  now: () => Date
  /** Whether pay pages contain a form that simulates payments. */
  sandbox: boolean
  publicUrl: string
}
