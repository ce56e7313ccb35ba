import { describe, expect, it } from 'vitest'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { browserPath, type OpenPage, SOON, useCheckout, violations } from '../support/browser.ts'
import { decodePng } from '../support/decode-png.ts'
import { post, REFUND_STATUS } from '../support/service.ts'
import { USER_AGENTS } from '../support/user-agents.ts'

/** Opens a page and waits for its QR, which would be rejected if it were requested after the order's end. */
async function open(tab: OpenPage, address: string) {
  await tab.goto(address)
  for (const qr of await tab.locator('img.qr:visible').all()) {
    await expect.poll(() => qr.evaluate((image) => 'complete' in image && image.complete), SOON).toBe(true)
  }
}

const LEAVES = 'Returning to Chai Point'
const PAID = '₹200 paid'
const WRONG_PIN = { status: 'FAIL', UTR: undefined, reason: 'wrong_pin' }
const TRY_AGAIN = 'The UPI PIN was incorrect. Try again.'

const LEAVES_AFTER_MS = 8_000
/** Time-out for tests in which the browser's own time passes until the redirect. */
const LEFT = { timeout: 40_000 }
const TEST_OF_LEAVING_MS = 90_000

/** From now on the page's timers run only when the test advances the time; the browser's own timers continue. */
async function stopTime(tab: OpenPage) {
  await tab.clock.install({ time: '2001-01-01T00:00:00Z' })
  await tab.clock.pauseAt('2001-01-01T01:00:00Z')
}

/** Advances the page's stopped clock. Repeats a call that Chromium dropped while it looked for an app. */
async function advance(tab: OpenPage, ms: number) {
  const readTime = () => tab.evaluate<number>('Date.now()')
  const end = (await readTime()) + ms
  for (let left = ms; left > 0; left = end - (await readTime())) await tab.clock.runFor(left)
}

/** Marks the document, to detect whether the page was reloaded. */
const mark = (tab: OpenPage) => tab.evaluate('document.marked = true')
const isMarked = (tab: OpenPage) => tab.evaluate('document.marked === true')
/** Simulates another app in front of the page, and the return to the page. */
const setHidden = (tab: OpenPage, hidden: boolean) =>
  tab.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
/** Ignores failed connections, which the browser itself writes to the console. */
const forgiveConnections = (tab: OpenPage) => {
  expect(tab.faults.filter((fault) => !fault.startsWith('console: Failed to load resource'))).toEqual([])
  tab.faults.length = 0
}

const checkout = useCheckout()

describe.runIf(browserPath)('a customer in a real browser', () => {
  it(
    'a customer scans the QR, sees the payment without a reload and lands on the exact redirect_url',
    async () => {
      const redirectUrl = `${checkout.storeUrl}/thanks?order=1001&name=Asha%20Rao&sum=%E2%82%B9200&empty=`
      const order = await checkout.newOrder({ redirect_url: redirectUrl })
      expect(order.payment_url).toBe(`${checkout.publicUrl}/pay/${order.orderId}`)
      const tab = await checkout.openTab()
      await open(tab, order.payment_url)
      const qr = tab.getByRole('img', { name: 'QR code to pay ₹200 with a UPI app' })
      expect(decodePng(await qr.screenshot())).toMatch(
        new RegExp(`^upi://pay\\?ver=01&mode=22&pa=chaipoint@examplebank&.*tr=${order.orderId}&.*am=200\\.00&`),
      )
      await mark(tab)
      await checkout.pay(order.orderId)
      await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
      expect(await isMarked(tab)).toBe(true)
      await tab.waitForURL((url) => url.origin === checkout.storeUrl, LEFT)
      expect(tab.url()).toBe(redirectUrl)
      expect(checkout.visits.at(-1)).toBe(redirectUrl.slice(checkout.storeUrl.length))
    },
    TEST_OF_LEAVING_MS,
  )

  it.each([
    ['the page gets an event', '523544313855', '5235\u00a04431\u00a03855'],
    ['the page polls its state', 'PUNBA4431385', 'PUNBA4431385'],
  ])('the pay page shows “Paid” and the UTR for 8 seconds before the redirect: %s', async (way, utr, shown) => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?read` })
    const tab = await checkout.openTab()
    if (way === 'the page polls its state') await tab.route('**/events', (route) => route.fulfill({ status: 503 }))
    await stopTime(tab)
    await open(tab, order.payment_url)
    expect(await tab.locator('.utr').isVisible()).toBe(false)
    await checkout.pay(order.orderId, { UTR: utr })
    const paid = tab.getByRole('heading', { name: PAID })
    await expect
      .poll(async () => {
        if (!(await paid.isVisible())) await tab.clock.runFor(100)
        return paid.isVisible()
      }, SOON)
      .toBe(true)
    expect(await tab.locator('.utr').innerText()).toBe(shown)
    expect(await tab.getByRole('button', { name: 'Copy' }).isVisible()).toBe(true)
    expect(await tab.getByText(LEAVES).isVisible()).toBe(true)
    await tab.clock.runFor(7_800)
    expect([await paid.isVisible(), tab.url()]).toEqual([true, order.payment_url])
    await tab.clock.runFor(300)
    await tab.waitForURL(`${checkout.storeUrl}/thanks?read`, SOON)
    forgiveConnections(tab)
  })

  it.each([
    ['presses a key', (tab: OpenPage) => tab.keyboard.press('ArrowDown')],
    ['touches the page', (tab: OpenPage) => tab.touchscreen.tap(200, 20)],
    ['presses the mouse', (tab: OpenPage) => tab.mouse.down()],
    // Screen readers move the focus without a key.
    ['moves the focus', (tab: OpenPage) => tab.getByRole('link', { name: 'Return to Chai Point' }).focus()],
  ])('the pay page does not redirect after “Paid” if the customer %s', async (_what, act) => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?stayed` })
    const tab = await checkout.openTab({ hasTouch: true })
    await stopTime(tab)
    await open(tab, order.payment_url)
    await checkout.pay(order.orderId)
    await tab.getByText(LEAVES).waitFor(SOON)
    const back = tab.getByRole('link', { name: 'Return to Chai Point' })
    const before = await back.boundingBox()
    await act(tab)
    await tab.getByText(LEAVES).waitFor({ ...SOON, state: 'hidden' })
    await tab.clock.runFor(600_000)
    // The layout must not move under the customer's finger.
    expect([tab.url(), await back.boundingBox()]).toEqual([order.payment_url, before])
    await back.click()
    await tab.waitForURL(`${checkout.storeUrl}/thanks?stayed`, SOON)
  })

  it('the pay page redirects a paid customer only once the page is visible again after the wallet app', async () => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?away` })
    const tab = await checkout.openTab()
    await stopTime(tab)
    await open(tab, order.payment_url)
    await setHidden(tab, true)
    await checkout.pay(order.orderId)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    await tab.clock.runFor(60_000)
    expect(tab.url()).toBe(order.payment_url)
    await setHidden(tab, false)
    // The window regains the focus without a focus change within the page.
    await tab.evaluate("document.querySelector('.paid h2').dispatchEvent(new FocusEvent('focusin', { bubbles: true }))")
    await tab.clock.runFor(7_800)
    expect(tab.url()).toBe(order.payment_url)
    await tab.clock.runFor(300)
    await tab.waitForURL(`${checkout.storeUrl}/thanks?away`, SOON)
  })

  it('a paid customer who reloads or reopens the page stays on it and can copy the UTR', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab({ permissions: ['clipboard-read', 'clipboard-write'] })
    await stopTime(tab)
    await open(tab, order.payment_url)
    await checkout.pay(order.orderId, { UTR: '523504870777' })
    await tab.getByText(LEAVES).waitFor(SOON)
    for (const again of [() => tab.reload(), () => tab.goto('about:blank'), () => tab.reload()]) {
      await again()
      if (tab.url() === 'about:blank') await tab.goto(order.payment_url)
      await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
      await tab.clock.runFor(600_000)
      expect([tab.url(), await tab.getByText(LEAVES).isVisible()]).toEqual([order.payment_url, false])
    }
    await tab.getByRole('button', { name: 'Copy' }).click()
    await tab.getByRole('button', { name: 'Copied' }).waitFor(SOON)
    expect(await tab.evaluate('navigator.clipboard.readText()')).toBe('523504870777')
  })

  it('the pay page shows no “Copy” button if the browser offers no clipboard', async () => {
    const order = await checkout.newOrder()
    await checkout.pay(order.orderId)
    const tab = await checkout.openTab()
    await tab.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await tab.goto(order.payment_url)
    expect(await tab.locator('.utr').isVisible()).toBe(true)
    expect(await tab.getByRole('button').allTextContents()).toEqual(['Save receipt'])
  })

  it('“Stay here” stops the redirect after “Paid”, and “Save receipt” prints only the receipt', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await tab.addInitScript('globalThis.printed = 0; globalThis.print = () => { printed++ }')
    await stopTime(tab)
    await open(tab, order.payment_url)
    await checkout.pay(order.orderId)
    await tab.getByText(LEAVES).waitFor(SOON)
    expect(await tab.locator('.back').innerText()).toBe('Return to Chai Point(8)')
    await tab.getByRole('button', { name: 'Stay here' }).click()
    await tab.clock.runFor(60_000)
    await tab.getByRole('button', { name: 'Save receipt' }).click()
    expect([tab.url(), await tab.evaluate('printed')]).toEqual([order.payment_url, 1])
    await tab.emulateMedia({ media: 'print' })
    expect(await tab.locator('a:visible, button:visible').count()).toBe(0)
    expect(await tab.locator('.utr').isVisible()).toBe(true)
  })

  it('a customer sees a failed attempt, tries again on the same page, and pays', async () => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?second-try` })
    const tab = await checkout.openTab()
    await tab.clock.install()
    await open(tab, order.payment_url)
    await mark(tab)
    const note = tab.getByText(TRY_AGAIN)
    expect(await note.isVisible()).toBe(false)
    await checkout.pay(order.orderId, WRONG_PIN)
    await note.waitFor(SOON)
    expect(await tab.evaluate('document.activeElement.textContent')).toBe('₹200 not paid yet')
    expect(decodePng(await tab.locator('img.qr').first().screenshot())).toContain(`tr=${order.orderId}`)
    expect(await tab.locator('.back').count()).toBe(0)
    await checkout.pay(order.orderId)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    expect([await isMarked(tab), await note.isVisible()]).toEqual([true, false])
    await tab.clock.runFor(LEAVES_AFTER_MS)
    await tab.waitForURL(`${checkout.storeUrl}/thanks?second-try`, SOON)
  })

  it('a customer can leave an open order unpaid; the main button to return appears only with the final status', async () => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?failed` })
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    const [unpaid, back] = ['.unpaid', '.back'].map((link) => tab.locator(link))
    expect(await unpaid?.innerText()).toBe('Return to Chai Point without paying')
    expect(await unpaid?.getAttribute('href')).toBe(`${checkout.storeUrl}/thanks?failed`)
    await checkout.pay(order.orderId, WRONG_PIN)
    await tab.getByText(TRY_AGAIN).waitFor(SOON)
    checkout.service.clock.advance(15 * 60)
    await tab.getByRole('heading', { name: 'Time is up' }).waitFor(SOON)
    expect([await unpaid?.isVisible(), await back?.isVisible()]).toEqual([true, false])
    checkout.service.clock.advance(10 * 60)
    await tab.getByRole('heading', { name: '₹200 not paid' }).waitFor(SOON)
    expect(await tab.title()).toBe('Not paid · Chai Point')
    expect([await unpaid?.isVisible(), await back?.isVisible()]).toEqual([false, true])
    await back?.click()
    await tab.waitForURL(`${checkout.storeUrl}/thanks?failed`, SOON)
  })

  it('the countdown of the pay page follows the service’s clock, not the customer’s', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    // Blocks the events: the service's clock stands still, so a reconnection would report the order as open.
    await tab.route('**/events', () => undefined)
    await stopTime(tab)
    await open(tab, order.payment_url)
    expect(await tab.locator('.left').textContent()).toBe('15:00 left to pay')
    await tab.clock.fastForward('14:59')
    expect(await tab.locator('.left').textContent()).toBe('0:01 left to pay')
    await tab.clock.fastForward('00:01')
    expect(await tab.getByRole('heading', { name: 'Time is up' }).isVisible()).toBe(true)
    // The service decides about the expiry: it reports the order as open again, and the countdown follows it.
    await tab.unroute('**/events')
    await tab.evaluate("dispatchEvent(new Event('online'))")
    await tab.getByRole('heading', { name: 'Time is up' }).waitFor({ ...SOON, state: 'hidden' })
    expect(await tab.locator('.left').textContent()).toBe('15:00 left to pay')
  })

  it('the countdown of the pay page shows days from 48 hours on', async () => {
    const order = await checkout.newOrder()
    const expiry = `update payment_intents set expires_at = created_at + interval '3 days' where order_id = $1`
    await checkout.service.db.query(expiry, [order.orderId])
    const tab = await checkout.openTab()
    await tab.route('**/events', () => undefined)
    await stopTime(tab)
    await open(tab, order.payment_url)
    const left = () => tab.locator('.left').textContent()
    expect(await left()).toBe('3 days 0 h left to pay')
    await tab.clock.fastForward('24:00:00')
    expect(await left()).toBe('2 days 0 h left to pay')
    await tab.clock.fastForward('00:01')
    expect(await left()).toBe('47 h 59 min left to pay')
  })

  it('a customer pays without JavaScript by QR or wallet link, and the reloaded page links to redirect_url', async () => {
    const redirectUrl = `${checkout.storeUrl}/thanks?a=1&b=2%20;url=x`
    const order = await checkout.newOrder({ redirect_url: redirectUrl })
    const tab = await checkout.openTab({ javaScriptEnabled: false })
    await open(tab, order.payment_url)
    expect(decodePng(await tab.locator('img.qr').screenshot())).toContain(`tr=${order.orderId}`)
    expect(await tab.locator('.left').textContent()).toMatch(
      /^Pay before (\d{1,2} \w{3} \d{4}, )?\d{1,2}:\d\d\s[ap]m\sIST$/,
    )
    // The reloaded page has its own URL and works like the first one.
    await tab.waitForURL(`${order.payment_url}?reload`, SOON)
    expect(decodePng(await tab.locator('img.qr').screenshot())).toContain(`tr=${order.orderId}`)
    const phone = await checkout.openTab({ javaScriptEnabled: false, userAgent: USER_AGENTS.safariOnIphone })
    await phone.goto(order.payment_url)
    expect(await phone.getByRole('link', { name: 'Google Pay' }).getAttribute('href')).toMatch(
      /^gpay:\/\/upi\/pay\?ver=01/,
    )
    await phone.getByRole('link', { name: 'I have approved the payment in my app' }).click()
    await phone.getByRole('heading', { name: 'Approve in your UPI app' }).waitFor(SOON)
    await phone.getByRole('link', { name: 'I have not paid: choose another app' }).click()
    await phone.getByRole('heading', { name: 'Choose your UPI app' }).waitFor(SOON)
    await phone.close()
    await checkout.pay(order.orderId)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    expect([await tab.getByRole('button').count(), await tab.getByText(LEAVES).isVisible()]).toEqual([0, false])
    await tab.getByRole('link', { name: 'Return to Chai Point' }).click()
    await tab.waitForURL((url) => url.origin === checkout.storeUrl, SOON)
    expect(tab.url()).toBe(redirectUrl)
  })
})

describe.runIf(browserPath)('a customer whose browser prefers Hindi', () => {
  it.each([true, false])(
    'retries, pays and is redirected, all in Hindi (JavaScript: %s)',
    async (javaScriptEnabled) => {
      const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?hindi=${javaScriptEnabled}` })
      const tab = await checkout.openTab({ locale: 'hi-IN', javaScriptEnabled })
      if (javaScriptEnabled) await tab.clock.install()
      await open(tab, order.payment_url)
      expect(await tab.title()).toBe('भुगतान करें · Chai Point')
      const left = tab.locator('.left')
      if (javaScriptEnabled) await left.filter({ hasText: /^भुगतान के लिए 1[45]:\d\d बाकी$/ }).waitFor(SOON)
      else
        expect(await left.textContent()).toMatch(
          /^(.* )?(सुबह|दोपहर|शाम|रात)\s\d{1,2}:\d\d\sबजे\s\(IST\) से पहले भुगतान करें$/,
        )
      await checkout.pay(order.orderId, WRONG_PIN)
      await tab.getByText('UPI पिन ग़लत था। फिर से कोशिश करें।').waitFor(SOON)
      if (javaScriptEnabled) expect(await violations(tab)).toEqual([])
      await checkout.pay(order.orderId)
      await tab.getByRole('heading', { name: '₹200 का भुगतान हो गया' }).waitFor(SOON)
      expect(await tab.title()).toBe('भुगतान हो गया · Chai Point')
      if (javaScriptEnabled) await tab.clock.runFor(LEAVES_AFTER_MS)
      else await tab.getByRole('link', { name: 'Chai Point पर वापस जाएँ' }).click()
      await tab.waitForURL(`${checkout.storeUrl}/thanks?hindi=${javaScriptEnabled}`, SOON)
    },
  )
})

describe.runIf(browserPath)('a customer who pays with an app on the phone', () => {
  const NOTHING_OPENED = 'Nothing opened? Choose another app, or show the QR code.'
  const status = (tab: OpenPage) => tab.getByRole('status').innerText()
  const state = (tab: OpenPage) => tab.locator('.view').getAttribute('data-state')
  const shows = (tab: OpenPage, name: string) => expect.poll(() => state(tab), SOON).toBe(name)
  /** The bank's report is later than the customer's return, also by the test's clock, which stands still. */
  const fail = (orderId: string) => {
    checkout.service.clock.advance(120)
    return checkout.pay(orderId, WRONG_PIN)
  }

  /** Opens the page of an order on a phone, and records the URLs of its event streams in sequence. */
  async function openPhone(options: Parameters<typeof checkout.openTab>[0] = {}) {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      userAgent: USER_AGENTS.chromeOnAndroid,
      ...options,
    })
    const events: string[] = []
    tab.on('request', (request) => {
      const { pathname, search } = new URL(request.url())
      if (pathname.endsWith('/events')) events.push(`/events${search}`)
    })
    // A busy browser may move the focus while it looks for the app, so only focus changes of the test are passed on.
    await tab.addInitScript("addEventListener('blur', (event) => event.isTrusted && event.stopImmediatePropagation())")
    return { order, tab, events }
  }

  /** Taps “Other app”. No app is installed: the browser requests the link and stays on the page. */
  async function press(tab: OpenPage) {
    await tab.locator('.apps a').last().click()
    await expect.poll(() => tab.faults.length, SOON).toBe(1)
    expect(tab.faults.pop()).toMatch(/^request to upi:/)
  }

  /** Presses the link, leaves the page for the app and comes back. */
  async function pressAndReturn(tab: OpenPage) {
    await press(tab)
    await setHidden(tab, true)
    await setHidden(tab, false)
  }

  /** Follows a link soon after `press`, when Chromium looks for the app and sometimes drops a click of the mouse. */
  const follow = (tab: OpenPage, name: string) => tab.getByRole('link', { name }).dispatchEvent('click')

  it.each([
    ['en-IN', 'Approve in your UPI app'],
    ['hi-IN', 'अपने UPI ऐप में मंज़ूरी दें'],
  ])('sees after returning from an app that the page waits for the bank, in %s', async (locale, text) => {
    const { order, tab } = await openPhone({ locale })
    await tab.goto(order.payment_url)
    await press(tab)
    await setHidden(tab, true)
    expect(await state(tab)).toBe('open')
    await setHidden(tab, false)
    await tab.getByRole('heading', { name: text }).waitFor(SOON)
    // Nothing on the page offers to pay a second time.
    expect(await tab.locator('.apps, img.qr, .first').count()).toBe(0)
    expect(await violations(tab)).toEqual([])
    await checkout.pay(order.orderId)
    await tab.locator('section.paid').waitFor(SOON)
    expect(await status(tab)).toBe('')
  })

  it('still waits for the bank after a change of the language', async () => {
    const { order, tab } = await openPhone()
    await tab.goto(order.payment_url)
    await pressAndReturn(tab)
    await shows(tab, 'waiting')
    await follow(tab, 'हिन्दी')
    await tab.getByRole('heading', { name: 'अपने UPI ऐप में मंज़ूरी दें' }).waitFor(SOON)
    expect(await state(tab)).toBe('waiting')
  })

  it('sees the reason of a failed attempt when the bank reports it later', async () => {
    const { order, tab } = await openPhone()
    await tab.goto(order.payment_url)
    const attempt = { status: 'FAIL', UTR: '523504870999' }
    await checkout.pay(order.orderId, attempt)
    await tab.getByText('The last attempt failed.').waitFor(SOON)
    await checkout.pay(order.orderId, { ...attempt, reason: 'payee_not_allowed' })
    await tab.getByText('Chai Point cannot accept payments in this way at the moment.').waitFor(SOON)
  })

  it('returns to the app tiles after saying that no payment was made', async () => {
    const { order, tab } = await openPhone()
    await tab.goto(order.payment_url)
    await pressAndReturn(tab)
    await follow(tab, 'I have not paid: choose another app')
    await shows(tab, 'open')
    // The earlier app is forgotten, so that a later return to the page is not a return from an app.
    await setHidden(tab, true)
    await setHidden(tab, false)
    expect([await state(tab), await tab.evaluate('history.state')]).toEqual(['open', null])
  })

  it('the pay page reports each return from an app once, and nothing on other reconnections', async () => {
    const { order, tab, events } = await openPhone()
    await tab.goto(order.payment_url)
    await expect.poll(() => events, SOON).toEqual(['/events'])
    // The page was hidden before any app was tapped.
    await setHidden(tab, true)
    await setHidden(tab, false)
    await expect.poll(() => events, SOON).toEqual(['/events', '/events'])
    await press(tab)
    for (let returns = 1; returns <= 2; returns++) {
      events.length = 0
      await setHidden(tab, true)
      const opened = tab.waitForResponse('**/events?back')
      await setHidden(tab, false)
      await opened
      // The page has to receive a heartbeat that confirms the return.
      await expect.poll(() => tab.evaluate('returned'), SOON).toBe('')
      for (let reconnections = 1; reconnections <= 2; reconnections++) {
        await tab.evaluate("dispatchEvent(new Event('online'))")
        await expect.poll(() => events.length, SOON).toBe(1 + reconnections)
      }
      expect(events).toEqual(['/events?back', '/events', '/events'])
    }
  })

  it('the pay page reports a return again if the first connection was rejected', async () => {
    const { order, tab, events } = await openPhone()
    await tab.goto(order.payment_url)
    await press(tab)
    await tab.route('**/events?back', (route) => route.fulfill({ status: 503 }), { times: 1 })
    events.length = 0
    await setHidden(tab, true)
    await setHidden(tab, false)
    await expect.poll(() => events, SOON).toEqual(['/events?back', '/events?back'])
    forgiveConnections(tab)
  })

  it('the pay page reports a return when the phone reloads a page that it had discarded', async () => {
    const { order, tab, events } = await openPhone()
    await tab.goto(order.payment_url)
    await press(tab)
    events.length = 0
    await tab.reload()
    await shows(tab, 'waiting')
    await expect.poll(() => events, SOON).toEqual(['/events?back'])
    // An attempt has failed in the meantime, so the bank has responded.
    await fail(order.orderId)
    await tab.getByText(TRY_AGAIN).waitFor(SOON)
    await tab.reload()
    expect(await tab.getByText(TRY_AGAIN).isVisible()).toBe(true)
    await expect.poll(() => events.at(-1), SOON).toBe('/events?back')
    // A visit to another order is not a return.
    const { payment_url } = await checkout.newOrder()
    await tab.goto(payment_url)
    await expect.poll(() => events.at(-1), SOON).toBe('/events')
    expect(await state(tab)).toBe('open')
  })

  it('sees the failed attempt instead of the waiting message when the bank declines after the return', async () => {
    const { order, tab } = await openPhone()
    await tab.goto(order.payment_url)
    await pressAndReturn(tab)
    await shows(tab, 'waiting')
    await fail(order.orderId)
    await tab.getByText(TRY_AGAIN).waitFor(SOON)
    expect(await state(tab)).toBe('attemptFailed')
  })

  it.each([
    ['en-IN', NOTHING_OPENED],
    ['hi-IN', 'कुछ नहीं खुला? कोई दूसरा ऐप चुनें, या QR कोड दिखाएँ।'],
  ])(
    'sees a hint 2 seconds after tapping an app that did not open, until the next tap, in %s',
    async (locale, text) => {
      const { order, tab } = await openPhone({ locale })
      await stopTime(tab)
      await tab.goto(order.payment_url)
      // A browser that waits for the first app may ignore a second tap, so the test dispatches the click.
      const pressAgain = () => tab.locator('.apps a').last().dispatchEvent('click')
      for (const pressOnce of [() => press(tab), pressAgain]) {
        await pressOnce()
        await advance(tab, 1_900)
        expect(await status(tab)).toBe('')
        await advance(tab, 200)
        expect(await status(tab)).toBe(text)
      }
      expect(await tab.getByRole('status').locator('p:visible').count()).toBe(1)
      expect(tab.faults.filter((fault) => !/^(request to|console: Not allowed to launch) '?upi:/.test(fault))).toEqual(
        [],
      )
      tab.faults.length = 0
    },
  )

  it.each([
    ['an app is in front of the page', (tab: OpenPage) => setHidden(tab, true)],
    ['the system’s list of apps has the focus', (tab: OpenPage) => tab.evaluate("dispatchEvent(new Event('blur'))")],
    ['the page is left', (tab: OpenPage) => tab.evaluate("dispatchEvent(new Event('pagehide'))")],
  ])('sees no “nothing opened” hint when %s', async (_what, act) => {
    const { order, tab } = await openPhone()
    await stopTime(tab)
    await tab.goto(order.payment_url)
    await press(tab)
    await act(tab)
    await tab.clock.runFor(5_000)
    expect(await status(tab)).toBe('')
  })

  it('sees no “nothing opened” hint once the order is paid', async () => {
    const { order, tab } = await openPhone()
    await stopTime(tab)
    await tab.goto(order.payment_url)
    await press(tab)
    await checkout.pay(order.orderId)
    await tab.locator('section.paid').waitFor(SOON)
    await tab.clock.runFor(3_000)
    expect(await status(tab)).toBe('')
  })

  it('a page that was opened with ?reload works with JavaScript and does not repeat ?reload', async () => {
    const { order, tab } = await openPhone()
    const heads: string[] = []
    tab.on('request', (request) => request.method() === 'HEAD' && heads.push(request.url()))
    await tab.route('**/events', (route) => route.fulfill({ status: 503 }), { times: 1 })
    await tab.goto(`${order.payment_url}?reload`)
    await expect.poll(() => heads, SOON).toEqual([order.payment_url])
    await checkout.pay(order.orderId)
    await tab.locator('section.paid').waitFor(SOON)
    forgiveConnections(tab)
  })
})

describe.runIf(browserPath)('an open pay page', () => {
  it('reconnects after a lost connection and shows a payment made in the meantime', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    await mark(tab)
    checkout.cutConnections()
    await checkout.pay(order.orderId)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    expect(await isMarked(tab)).toBe(true)
    forgiveConnections(tab)
  })

  it('shows “No connection” after more than 4 seconds without a connection, until it is restored', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await stopTime(tab)
    await open(tab, order.payment_url)
    const hint = tab.getByText('No connection. A payment that you have already made is not affected')
    await tab.route('**/pay/**', (route) => route.abort())
    checkout.cutConnections()
    // A connection that is restored within 4 seconds is not reported.
    await tab.clock.runFor(4_000)
    expect(await hint.isVisible()).toBe(false)
    const passTime = async () => {
      await tab.clock.runFor(500)
      return hint.isVisible()
    }
    await expect.poll(passTime, SOON).toBe(true)
    expect(await tab.getByRole('status').innerText()).toBe(await hint.textContent())
    await tab.clock.runFor(60_000)
    expect(await hint.isVisible()).toBe(true)
    await tab.unroute('**/pay/**')
    await expect.poll(passTime, SOON).toBe(false)
    expect(await tab.getByText('Scan with any UPI app').isVisible()).toBe(true)
    forgiveConnections(tab)
  })

  it('reconnects after a minute of silence on a connection that still seems open', async () => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?silent` })
    const tab = await checkout.openTab()
    await stopTime(tab)
    const listening = tab.waitForResponse('**/events')
    await open(tab, order.payment_url)
    await listening
    checkout.loseResponses()
    await checkout.pay(order.orderId)
    await tab.clock.runFor(60_000)
    const isBackAtStore = async () => {
      if (!tab.url().startsWith(checkout.storeUrl)) await tab.clock.runFor(500)
      return tab.url()
    }
    await expect.poll(isBackAtStore, SOON).toBe(`${checkout.storeUrl}/thanks?silent`)
  })

  it('shows immediately that the device is offline, and reconnects immediately when it is online', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    const hint = tab.getByText('No connection.')
    await tab.context().setOffline(true)
    await hint.waitFor(SOON)
    await checkout.pay(order.orderId)
    await tab.context().setOffline(false)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    expect(await hint.isVisible()).toBe(false)
    forgiveConnections(tab)
  })

  it('stays unchanged while a proxy responds for the unavailable service, and reconnects', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await tab.route('**/events', (route) => route.fulfill({ status: 502 }), { times: 1 })
    await open(tab, order.payment_url)
    await mark(tab)
    await checkout.pay(order.orderId)
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    expect(await isMarked(tab)).toBe(true)
    forgiveConnections(tab)
  })

  it('polls its state within 5 seconds while its event stream is rejected, and redirects to redirect_url', async () => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?refused` })
    const tab = await checkout.openTab()
    await tab.route('**/events', (route) => route.fulfill({ status: 503 }))
    await tab.clock.install()
    await open(tab, order.payment_url)
    await mark(tab)
    await checkout.pay(order.orderId, WRONG_PIN)
    await tab.clock.runFor(5_000)
    await tab.getByText(TRY_AGAIN).waitFor(SOON)
    await checkout.pay(order.orderId)
    // The page's time passes only when the test advances it: 5 seconds, then more until the response arrives.
    await expect
      .poll(async () => {
        await tab.clock.runFor(500)
        return tab.getByRole('heading', { name: PAID }).isVisible()
      }, SOON)
      .toBe(true)
    expect(await isMarked(tab)).toBe(true)
    // A rejected event stream is not a lost connection.
    expect(await tab.locator('.lost').isVisible()).toBe(false)
    await tab.clock.runFor(8_000)
    await tab.waitForURL(`${checkout.storeUrl}/thanks?refused`, SOON)
    forgiveConnections(tab)
  })

  it('polls its state immediately when the customer returns from the wallet app', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    // Simulates a dead connection that the browser has not noticed.
    await tab.route('**/events', () => undefined, { times: 1 })
    await open(tab, order.payment_url)
    await checkout.pay(order.orderId)
    await tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
  })

  it('shows the ways to pay again when an instance with another clock reports the order as open', async () => {
    const order = await checkout.newOrder()
    checkout.service.clock.advance(15 * 60)
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    await tab.getByRole('heading', { name: 'Time is up' }).waitFor(SOON)
    // The next connection reaches an instance whose clock is 10 minutes behind.
    checkout.service.clock.advance(-10 * 60)
    checkout.cutConnections()
    await tab.locator('.left', { hasText: 'left to pay' }).waitFor(SOON)
    forgiveConnections(tab)
  })

  it('shows that the payment is no longer open when the merchant is disabled', async () => {
    const order = await checkout.newOrder({}, { name: 'Closing Shop' })
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    const { rows } = await checkout.service.db.query("select mid from merchants where name = 'Closing Shop'")
    await createMerchants(checkout.service.db).disable(rows[0].mid, checkout.service.clock.now())
    checkout.cutConnections()
    await tab.getByRole('heading', { name: 'This payment is no longer open' }).waitFor(SOON)
    forgiveConnections(tab)
  })
})

describe.runIf(browserPath)('the sandbox', () => {
  const checkout = useCheckout({ sandbox: true })

  it.each([true, false])('simulates a payment through to redirect_url (JavaScript: %s)', async (javaScriptEnabled) => {
    const order = await checkout.newOrder({ redirect_url: `${checkout.storeUrl}/thanks?sandbox=${javaScriptEnabled}` })
    const tab = await checkout.openTab({ javaScriptEnabled })
    if (javaScriptEnabled) await tab.clock.install()
    await open(tab, order.payment_url)
    await tab.getByText('Test mode: no money moves').click()
    await tab.getByRole('button', { name: 'Simulate payment' }).click()
    await tab.getByRole('heading', { name: PAID }).waitFor(SOON)
    if (javaScriptEnabled) await tab.clock.runFor(LEAVES_AFTER_MS)
    else await tab.getByRole('link', { name: 'Return to Chai Point' }).click()
    await tab.waitForURL(`${checkout.storeUrl}/thanks?sandbox=${javaScriptEnabled}`, SOON)
  })

  it('shows the error message of a rejected simulation', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await open(tab, order.payment_url)
    await tab.route('**/simulate', (route) =>
      route.fulfill({ status: 503, body: '{"msg":"The acquirer is unavailable"}' }),
    )
    await tab.getByText('Simulate', { exact: true }).click()
    await tab.getByRole('button', { name: 'Simulate payment' }).click()
    await expect.poll(() => tab.faults, SOON).toContain('dialog: {"msg":"The acquirer is unavailable"}')
    tab.faults.length = 0
  })

  it.each([
    { outcome: 'Succeeds', end: 'SUCCESS', javaScriptEnabled: true },
    { outcome: 'Fails', end: 'FAIL', javaScriptEnabled: false },
  ])('completes a refund on the page of its order: $outcome (JavaScript: $javaScriptEnabled)', async (on) => {
    const { outcome, end, javaScriptEnabled } = on
    const { order, mid, key } = await checkout.newPaidOrder(3)
    const tab = await checkout.openTab({ javaScriptEnabled })
    await open(tab, order.payment_url)
    await tab.getByText('Simulate', { exact: true }).click()
    const forms = tab.getByRole('form', { name: /^Refund R\d of ₹10$/ })
    expect(await forms.count()).toBe(3)
    await tab.getByRole('form', { name: 'Refund R2 of ₹10' }).getByRole('button', { name: outcome }).click()
    await expect.poll(() => tab.locator('form').count(), SOON).toBe(2)
    expect([tab.url(), await tab.getByRole('heading', { name: PAID }).isVisible()]).toEqual([order.payment_url, true])
    const { body } = await post(checkout.service.app, REFUND_STATUS, { mid, refund_id: 'R2' }, key)
    expect(body.data.txnStatus).toBe(end)
  })

  it('expires an order on demand, also on another open page of the order', async () => {
    const order = await checkout.newOrder()
    const [tab, other] = [await checkout.openTab(), await checkout.openTab()]
    for (const page of [tab, other]) await open(page, order.payment_url)
    await tab.getByText('Simulate', { exact: true }).click()
    await tab.getByRole('button', { name: 'Time is up' }).click()
    for (const page of [tab, other]) await page.getByRole('heading', { name: 'Time is up' }).waitFor(SOON)
  })
})
