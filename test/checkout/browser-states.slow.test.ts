import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { browserPath, type OpenPage, useCheckout, violations } from '../support/browser.ts'
import { CANCEL, newKey, post } from '../support/service.ts'
import { USER_AGENTS } from '../support/user-agents.ts'

const PHONE = {
  viewport: { width: 360, height: 640 },
  isMobile: true,
  hasTouch: true,
  userAgent: USER_AGENTS.chromeOnAndroid,
}
const DESKTOP = { viewport: { width: 1280, height: 800 } }
const DEVICES = { phone: PHONE, desktop: DESKTOP }

type Languages = { 'en-IN': string; 'hi-IN': string }

const RETURN: Languages = { 'en-IN': 'Return to Chai Point', 'hi-IN': 'Chai Point पर वापस जाएँ' }
const APPS_OR_QR = { phone: ['apps'], desktop: ['QR'] }
const NONE = { phone: [], desktop: [] }
const back = (locale: keyof Languages) => ({ phone: [RETURN[locale]], desktop: [RETURN[locale]] })

type State = {
  name: string
  title: Languages
  /** The visible main actions: the app tiles, the QR, or the text of the main button. */
  first: (locale: keyof Languages) => { phone: string[]; desktop: string[] }
  /** The quiet button, if the state has one. */
  quiet?: Languages
}

/** Each state of the pay page. Only the first three offer to pay. */
const STATES: State[] = [
  {
    name: 'open',
    title: { 'en-IN': 'Pay', 'hi-IN': 'भुगतान करें' },
    first: () => APPS_OR_QR,
  },
  {
    name: 'attempt failed, tone retry',
    title: { 'en-IN': '₹200 not paid yet', 'hi-IN': '₹200 का भुगतान अभी नहीं हुआ' },
    first: () => APPS_OR_QR,
  },
  {
    name: 'attempt failed, tone wait, confirmed as unpaid',
    title: { 'en-IN': '₹200 not confirmed', 'hi-IN': '₹200 की पुष्टि नहीं हुई' },
    first: () => APPS_OR_QR,
  },
  {
    name: 'attempt failed, tone wait',
    title: { 'en-IN': '₹200 not confirmed', 'hi-IN': '₹200 की पुष्टि नहीं हुई' },
    first: () => NONE,
    quiet: {
      'en-IN': 'My money has not left my account: pay another way',
      'hi-IN': 'मेरे खाते से पैसे नहीं कटे: किसी और तरह से भुगतान करें',
    },
  },
  {
    name: 'unreadable status',
    title: { 'en-IN': '₹200 not confirmed', 'hi-IN': '₹200 की पुष्टि नहीं हुई' },
    first: () => NONE,
    quiet: {
      'en-IN': 'My money has not left my account: pay another way',
      'hi-IN': 'मेरे खाते से पैसे नहीं कटे: किसी और तरह से भुगतान करें',
    },
  },
  {
    name: 'attempt failed, tone stop',
    title: { 'en-IN': 'Chai Point cannot receive ₹200 now', 'hi-IN': 'Chai Point को अभी ₹200 नहीं मिल सकते' },
    first: back,
  },
  {
    name: 'waiting',
    title: { 'en-IN': 'Approve in PhonePe', 'hi-IN': 'PhonePe में मंज़ूरी दें' },
    first: () => NONE,
    quiet: { 'en-IN': 'I have not paid: choose another app', 'hi-IN': 'मैंने भुगतान नहीं किया: दूसरा ऐप चुनें' },
  },
  {
    name: 'amount mismatch',
    title: { 'en-IN': '₹201 arrived instead of ₹200', 'hi-IN': '₹200 की जगह ₹201 मिले' },
    first: back,
  },
  {
    name: 'paid',
    title: { 'en-IN': '₹200 paid', 'hi-IN': '₹200 का भुगतान हो गया' },
    first: back,
  },
  {
    name: 'paid, with a refund',
    title: { 'en-IN': '₹200 paid', 'hi-IN': '₹200 का भुगतान हो गया' },
    first: back,
  },
  {
    name: 'refunded',
    title: { 'en-IN': '₹200 refunded', 'hi-IN': '₹200 लौटाए गए' },
    first: back,
  },
  {
    name: 'time up',
    title: { 'en-IN': 'Time is up', 'hi-IN': 'समय समाप्त हो गया' },
    first: () => NONE,
  },
  {
    name: 'expired',
    title: { 'en-IN': '₹200 not paid in time', 'hi-IN': '₹200 का भुगतान समय पर नहीं हुआ' },
    first: back,
  },
  {
    name: 'failed',
    title: { 'en-IN': '₹200 not paid', 'hi-IN': '₹200 का भुगतान नहीं हो पाया' },
    first: back,
  },
  {
    name: 'cancelled',
    title: { 'en-IN': 'Order cancelled', 'hi-IN': 'ऑर्डर बंद हो गया' },
    first: back,
  },
  {
    name: 'unknown',
    title: { 'en-IN': 'Payment', 'hi-IN': 'भुगतान' },
    first: () => NONE,
  },
]

const MAIN_ACTIONS = `(() => {
  const isVisible = (element) => element.checkVisibility()
  const has = (selector) => [...document.querySelectorAll(selector)].some(isVisible)
  return [
    ...(has('.apps a') ? ['apps'] : []),
    ...(has('img.qr') ? ['QR'] : []),
    ...[...document.querySelectorAll('.first')].filter(isVisible).map((button) => button.textContent.trim()),
  ]
})()`

const widthOf = (tab: OpenPage) => tab.evaluate('document.documentElement.scrollWidth')

describe.runIf(browserPath)('each state of the pay page', () => {
  const checkout = useCheckout()
  const addresses = new Map<string, string>()

  beforeAll(async () => {
    const { app, db, clock } = checkout.service
    const fail = async (reason: string) => {
      const { orderId, payment_url } = await checkout.newOrder()
      await checkout.pay(orderId, { status: 'FAIL', reason })
      return payment_url
    }
    // The clock advances between the orders: first those that end, then those that stay open.
    addresses.set('expired', (await checkout.newOrder()).payment_url)
    addresses.set('failed', await fail('insufficient_funds'))
    clock.advance(10 * 60)
    addresses.set('time up', (await checkout.newOrder()).payment_url)
    clock.advance(15 * 60)
    const { payment_url } = await checkout.newOrder()
    addresses.set('open', payment_url)
    addresses.set('waiting', `${payment_url}?back=${clock.now().getTime()}&app=PhonePe`)
    addresses.set('attempt failed, tone retry', await fail('wrong_pin'))
    addresses.set('attempt failed, tone wait', await fail('not_authorised_in_time'))
    const confirmed = `${await fail('bank_unavailable')}?again=${clock.now().getTime()}`
    addresses.set('attempt failed, tone wait, confirmed as unpaid', confirmed)
    const unreadable = await checkout.newOrder()
    await db.query('update payment_intents set unreadable_at = $2 where order_id = $1', [
      unreadable.orderId,
      clock.now(),
    ])
    addresses.set('unreadable status', unreadable.payment_url)
    addresses.set('attempt failed, tone stop', await fail('payee_not_allowed'))
    const [mismatch, paid] = [await checkout.newOrder(), await checkout.newOrder()]
    await checkout.pay(paid.orderId)
    addresses.set('paid', paid.payment_url)
    addresses.set('amount mismatch', mismatch.payment_url)
    const report = notification(mismatch.orderId, { amount: 201 })
    expect((await notify(checkout.service, report)).status).toBe(409)
    const refunded = await checkout.newPaidOrder(1)
    addresses.set('paid, with a refund', refunded.order.payment_url)
    const whole = await checkout.newPaidOrder(20)
    await db.query(`update refunds set status = 'SUCCESS', ended_at = $2 where mid = $1`, [whole.mid, clock.now()])
    addresses.set('refunded', whole.order.payment_url)
    const cancelled = await checkout.newOrder()
    const { rows } = await db.query('select mid from payment_intents where order_id = $1', [cancelled.orderId])
    const [{ mid }] = rows
    await post(app, CANCEL, { mid, order_id: cancelled.orderId }, await newKey(db, { mid }))
    addresses.set('cancelled', cancelled.payment_url)
    addresses.set('unknown', `${checkout.publicUrl}/pay/x`)
  })

  const rows = STATES.flatMap((state) =>
    (['phone', 'desktop'] as const).flatMap((device) =>
      (['en-IN', 'hi-IN'] as const).map((locale) => ({ state, device, locale, name: state.name })),
    ),
  )

  it.each(rows)('$name, on a $device, $locale: main action, axe, widths', async ({ state, device, locale }) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const tab = await checkout.openTab({ ...DEVICES[device], locale, colorScheme, reducedMotion: 'reduce' })
      await tab.goto(addresses.get(state.name) as string)
      expect(await tab.title()).toBe(
        state.name === 'unknown' ? state.title[locale] : `${state.title[locale]} · Chai Point`,
      )
      expect(await tab.evaluate(MAIN_ACTIONS)).toEqual(state.first(locale)[device])
      if (state.quiet) expect(await tab.getByRole('link', { name: state.quiet[locale] }).isVisible()).toBe(true)
      expect(await violations(tab)).toEqual([])
      expect(await tab.evaluate('document.getAnimations().length')).toBe(0)
      for (const width of [320, 640, DEVICES[device].viewport.width]) {
        await tab.setViewportSize({ width, height: 640 })
        expect(await widthOf(tab)).toBe(width)
      }
      await tab.evaluate("document.documentElement.style.fontSize = '200%'")
      await tab.setViewportSize({ width: 360, height: 640 })
      expect(await widthOf(tab)).toBe(360)
      if (state.name === 'unknown') tab.faults.length = 0
    }
  })
})
