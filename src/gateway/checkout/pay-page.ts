import * as z from 'zod'
import { internalError, noPaymentHere, paymentClosed, unavailable } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { compressPage } from '../../platform/http/compression.ts'
import { operation } from '../../platform/http/operation.ts'
import { listSecondPayments } from '../payments/pay-page-facts.ts'
import type { Waiting } from '../payments/status-checks.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { listRefunds } from '../refunds/store.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { drawPayPage, errorPage } from './page.ts'
import { offersToPay, pageState, stateKey } from './page-state.ts'
import type { DrawQr } from './qr.ts'
import { isInSandbox } from './simulate.ts'
import { LANGUAGES, textsFor } from './texts.ts'
import { APPS, isInAppBrowser, platformOf } from './wallet-links.ts'

/** Seconds after which a browser reloads a page that was rejected with 503. */
const ERROR_PAGE_RELOAD_SECONDS = 5

export const payPage = operation({
  name: 'payPage',
  path: ORDER_PATH,
  tag: 'Customer',
  summary: 'Show the pay page',
  description:
    'The `payment_url` of createOrderRequest, for browsers. The page updates itself when the payment status changes; after a failed attempt ' +
    'the customer can pay again. In English, or in Hindi if `Accept-Language` prefers it; `?lang=en` or `?lang=hi` chooses one.',
  access: 'anyone',
  errors: [noPaymentHere(), paymentClosed(), internalError(), unavailable()],
  response: { description: 'The page.', type: 'text/html', toBody: (page: string) => page },
  route: {
    config: {
      errorPage: (failure, { headers, query }) =>
        errorPage(failure, headers['accept-language'], (query as Record<string, unknown>).lang),
    },
    // A page without JavaScript relies on reloading itself, so it must also reload after a 503.
    onSend: [
      async (_request, reply) => {
        if (reply.statusCode === 503) reply.header('refresh', ERROR_PAGE_RELOAD_SECONDS)
      },
      compressPage,
    ],
  },
  handle: ({ findCheckout, drawQr, pools, waiting, now, sandbox, publicUrl }: Dependencies) => {
    return async ({ params, query, headers }, reply) => {
      const checkout = await findCheckout(params.orderId)
      const moment = now()
      const { reload, back, again, app, lang } = PageQuery.parse(query)
      // A reload shows that the customer still has the page open without JavaScript, and `back` that they have returned
      // from an app, so a status check is scheduled.
      if (reload || back !== undefined) {
        const orders = new Map([[checkout.orderId, undefined]])
        reply.raw.once('finish', () => void waiting.schedule(orders, moment).catch(() => undefined))
      }
      const texts = textsFor(headers['accept-language'], lang)
      const visit = { openedAppAt: back, unpaidAttemptAt: again }
      const state = pageState(checkout, moment, visit)
      const isPaid = checkout.status === 'SUCCESS'
      const refunds = isPaid ? await listRefunds(pools.pages, checkout) : []
      const platform = platformOf(headers['user-agent'])
      const isInApp = platform !== 'unknown' && isInAppBrowser(headers['user-agent'])
      const page = drawPayPage(checkout, {
        now: moment,
        texts,
        visit,
        app,
        requestedLanguage: lang,
        isPhone: platform !== 'unknown',
        platform,
        browserAddress: isInApp ? `${publicUrl}/pay/${checkout.orderId}` : undefined,
        qr: offersToPay(state) ? await drawQr('png', upiQrLink(checkout)) : undefined,
        refunds,
        secondPayments: isPaid ? await listSecondPayments(pools.pages, checkout) : [],
        sandboxRefunds: sandbox ? refunds.filter(isInSandbox) : [],
        sandbox,
        publicUrl,
      })
      // The page's script polls this header with HEAD requests while it gets no events.
      reply.headers({ ...page.headers, 'x-payment-state': stateKey(checkout, moment) })
      // The body is the page of the order's own state, because its customer may have paid.
      if (checkout.merchantDisabled && !isPaid) reply.code(410).headers(paymentClosed().headers)
      return page.body
    }
  },
})

/** A moment in the page's own links, in milliseconds; any other text is ignored. */
const moment = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform((text) => new Date(Number(text)))
  .optional()
  .catch(undefined)

/** The parameters of the page's own links. A value that the page does not write is ignored. */
const PageQuery = z.object({
  /** Set by a page without JavaScript that reloads itself. */
  reload: z
    .unknown()
    .optional()
    .transform((value) => value !== undefined),
  back: moment,
  again: moment,
  app: z.enum(APPS).optional().catch(undefined),
  lang: z.enum(LANGUAGES).optional().catch(undefined),
})

type Dependencies = {
  findCheckout: FindCheckout
  drawQr: DrawQr
  pools: Pick<Pools, 'pages'>
  waiting: Pick<Waiting, 'schedule'>
  now: () => Date
  /** Whether pay pages contain a form that simulates payments. */
  sandbox: boolean
  publicUrl: string
}
