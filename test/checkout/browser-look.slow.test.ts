import { describe, expect, it } from 'vitest'
import { qrPng } from '../../src/gateway/checkout/qr-image.ts'
import { checkLogo, saveLogo } from '../../src/gateway/tenants/logo.ts'
import { browserPath, SOON, useCheckout, violations, violationsInBothColours } from '../support/browser.ts'
import { decodePng } from '../support/decode-png.ts'
import { USER_AGENTS } from '../support/user-agents.ts'

const PHONE = { viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true }
const ANDROID = { ...PHONE, userAgent: USER_AGENTS.chromeOnAndroid }
const IPHONE = { ...PHONE, userAgent: USER_AGENTS.safariOnIphone }
const INSTAGRAM = { ...PHONE, userAgent: USER_AGENTS.instagramOnAndroid }
const APPS = ['Google Pay', 'PhonePe', 'Paytm', 'BHIM', 'CRED']
/** Minimum target size of WCAG 2.2 (2.5.5, enhanced), in CSS pixels. */
const TARGET_PX = 44
const TILE_PX = 72
const PAGE_LIMIT_BYTES = 30_000
/** Height that a browser's bars leave of a screen of 1280×800. */
const BARS_LEAVE_PX = 650

type Box = { y: number; width: number; height: number }
type Drawn = {
  createRange: () => {
    selectNodeContents: (node: unknown) => void
    getClientRects: () => Iterable<{ top: number; width: number }>
  }
}

const SAYS = {
  'en-IN': {
    attemptFailed: 'The UPI PIN was incorrect. Try again.',
    paid: '₹1,00,000 paid',
    showQr: 'Show QR code',
    qrCode: /^QR code/,
  },
  'hi-IN': {
    attemptFailed: 'UPI पिन ग़लत था। फिर से कोशिश करें।',
    paid: '₹1,00,000 का भुगतान हो गया',
    showQr: 'QR कोड दिखाएँ',
    qrCode: /QR कोड$/,
  },
}
const LOCALES = Object.keys(SAYS) as (keyof typeof SAYS)[]

describe.runIf(browserPath)('the layout and accessibility of the pay page', () => {
  const checkout = useCheckout({ sandbox: true })

  it.each([
    {
      phone: 'an Android phone',
      options: ANDROID,
      names: [...APPS, 'Other app'],
      schemes: [...APPS.map(() => 'intent'), 'upi'],
    },
    {
      phone: 'an iPhone',
      options: IPHONE,
      names: [...APPS, 'Other app'],
      schemes: ['gpay', 'phonepe', 'paytmmp', 'bhim', 'credpay', 'upi'],
    },
    {
      phone: 'an Android phone in Hindi',
      options: ANDROID,
      names: [...APPS, 'कोई और ऐप'],
      schemes: [...APPS.map(() => 'intent'), 'upi'],
      locale: 'hi-IN' as const,
    },
  ])(
    'the pay page on $phone shows touch-sized wallet links that all pay the same order, and the QR on demand',
    async ({ options, names, schemes, locale = 'en-IN' as const }) => {
      const tab = await checkout.openTab({ ...options, locale })
      const requested: string[] = []
      tab.on('request', (request) => requested.push(new URL(request.url()).pathname))
      const order = await checkout.newOrder({ note: 'चाय & biscuits #2' })
      await tab.goto(order.payment_url)
      const links = tab.locator('.apps a')
      expect(await links.allTextContents()).toEqual(names)
      for (const [index, name] of names.entries()) {
        const box = await links.nth(index).boundingBox()
        expect(box?.height, name).toBeGreaterThanOrEqual(TARGET_PX)
        expect(box?.width, name).toBeGreaterThan(TILE_PX)
        expect((box?.y ?? Infinity) + (box?.height ?? 0), `${name} is visible without scrolling`).toBeLessThan(640)
      }
      // Parses the links as the browser itself does.
      const read = (await links.evaluateAll((all) =>
        all.map((link) => {
          const { protocol, searchParams, hash } = new URL((link as unknown as { href: string }).href)
          return { scheme: protocol.slice(0, -1), parameters: [...searchParams], hash }
        }),
      )) as { scheme: string; parameters: [string, string][]; hash: string }[]
      expect(read.map(({ scheme }) => scheme)).toEqual(schemes)
      for (const { scheme, parameters, hash } of read) {
        expect(hash).toMatch(scheme === 'intent' ? /^#Intent;scheme=upi;package=[\w.]+;end$/ : /^$/)
        expect(Object.fromEntries(parameters)).toMatchObject({
          pa: 'chaipoint@examplebank',
          tr: order.orderId,
          am: '200.00',
          tn: 'चाय biscuits 2',
        })
        expect(parameters).toEqual(read[0]?.parameters)
      }
      expect(await tab.locator('img.qr:visible').count()).toBe(0)
      expect(requested.filter((path) => /\.(svg|png)$/.test(path))).toEqual([])
      await tab.getByText(SAYS[locale].showQr).tap()
      expect(await tab.getByRole('img', { name: SAYS[locale].qrCode }).isVisible()).toBe(true)
    },
  )

  const MENU = {
    'en-IN': (browser: string) =>
      `This app cannot open UPI apps. Tap the three dots in a corner of the screen and open this page in ${browser} or in an external browser, or copy its address:`,
    'hi-IN': (browser: string) =>
      `यह ऐप किसी UPI ऐप को नहीं खोल सकता। स्क्रीन के कोने में तीन बिंदुओं पर टैप करके यह पेज ${browser} या किसी बाहरी ब्राउज़र में खोलें। या इसका पता कॉपी करें:`,
  }
  const OPEN = { 'en-IN': 'Open in your browser', 'hi-IN': 'अपने ब्राउज़र में खोलें' }

  // Combines each browser, language and JavaScript setting in pairs, not all three together.
  it.each(
    (['instagramOnAndroid', 'facebookOnAndroid', 'facebookOnIphone', 'instagramOnIphone'] as const).flatMap(
      (browser, at) => LOCALES.map((locale, of) => ({ browser, locale, javaScriptEnabled: of === at % 2 })),
    ),
  )(
    'the pay page in $browser offers a way to the browser and the QR, but no UPI app, in $locale (JavaScript: $javaScriptEnabled)',
    async ({ browser, locale, javaScriptEnabled }) => {
      const permissions = ['clipboard-read', 'clipboard-write']
      const tab = await checkout.openTab({
        ...PHONE,
        userAgent: USER_AGENTS[browser],
        locale,
        javaScriptEnabled,
        permissions,
      })
      const { orderId, payment_url } = await checkout.newOrder()
      await tab.goto(payment_url)
      const section = tab.locator('section.open')
      const isAndroid = browser.endsWith('Android')
      const links = await section.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')))
      const { host, pathname } = new URL(payment_url)
      const intent = `intent://${host}${pathname}#Intent;scheme=http;action=android.intent.action.VIEW;S.browser_fallback_url=${encodeURIComponent(payment_url)};end`
      expect(links).toEqual(isAndroid ? [intent] : [])
      expect(await section.getByText(OPEN[locale]).isVisible()).toBe(true)
      expect(await section.getByText(MENU[locale](isAndroid ? 'Chrome' : 'Safari')).isVisible()).toBe(true)
      const address = section.getByText(payment_url)
      expect(await address.isVisible()).toBe(true)
      // One touch selects the whole URL if the browser has no clipboard or the page runs without JavaScript.
      expect(await tab.evaluate("getComputedStyle(document.querySelector('.address')).userSelect")).toBe('all')
      expect(await section.locator('img.qr:visible').count()).toBe(1)
      expect(decodePng(await section.locator('img.qr').screenshot())).toContain(`tr=${orderId}`)
      expect(await section.locator('.apps, summary').count()).toBe(0)
      expect(await section.getByRole('button').count()).toBe(javaScriptEnabled ? 1 : 0)
      if (!javaScriptEnabled) return
      await section.getByRole('button').tap()
      await section.getByText(locale === 'en-IN' ? 'Copied' : 'कॉपी हो गया').waitFor(SOON)
      expect(await tab.evaluate('navigator.clipboard.readText()')).toBe(payment_url)
      expect(await violations(tab)).toEqual([])
    },
    60_000,
  )

  it('the content security policy of the pay page allows Instagram users on Android to follow the link to the browser', async () => {
    const tab = await checkout.openTab(INSTAGRAM)
    const { payment_url } = await checkout.newOrder()
    await tab.goto(payment_url)
    const intent = payment_url.replace('http:', 'intent:')
    const followed = tab.waitForEvent('request', { predicate: (request) => request.url() === intent, ...SOON })
    await tab.getByRole('link', { name: 'Open in your browser' }).tap()
    await followed
    expect(tab.faults).toEqual([`request to ${intent}`])
    tab.faults.length = 0
  })

  it('the pay page has its usual layout on an iPad that identifies itself as a Mac, and on a desktop', async () => {
    const mac =
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Instagram 424.1'
    const tab = await checkout.openTab({ userAgent: mac })
    await tab.goto((await checkout.newOrder()).payment_url)
    expect(await tab.getByText('Scan with any UPI app').isVisible()).toBe(true)
  })

  it.each([
    { phone: 'Android', options: ANDROID, letters: ['G', 'पे', 'P', 'B', 'C', '•••'], rows: [3, 3] },
    { phone: 'iPhone', options: IPHONE, letters: ['G', 'पे', 'P', 'B', 'C', '•••'], rows: [3, 3] },
    { phone: 'unknown', options: PHONE, letters: ['G', 'पे', 'P', '•••'], rows: [3, 1] },
  ])(
    'the pay page on $phone shows the apps as equal tiles in three columns, and no second button beside them',
    async ({ options, letters, rows }) => {
      const tab = await checkout.openTab(options)
      await tab.goto((await checkout.newOrder()).payment_url)
      for (const width of [320, 360, 390]) {
        await tab.setViewportSize({ width, height: 800 })
        // Reads all positions in one call, because the page may move between two calls to the browser.
        const links = "[...document.querySelectorAll('.apps a')]"
        const boxes: Box[] = await tab.evaluate(`${links}.map((link) => link.getBoundingClientRect().toJSON())`)
        const perRow = new Map<number, number>()
        for (const { y } of boxes) perRow.set(y, (perRow.get(y) ?? 0) + 1)
        expect([...perRow.values()], `${width} pixels`).toEqual(rows)
        expect(new Set(boxes.map(({ width }) => Math.round(width))).size).toBe(1)
        expect(await tab.locator('.view .first').count()).toBe(0)
        const marks = "[...document.querySelectorAll('.apps [aria-hidden=true]')]"
        const drawn = await tab.evaluate(`${marks}.map((mark) => getComputedStyle(mark, '::before').content)`)
        expect(drawn).toEqual(letters.map((letter) => `"${letter}"`))
      }
    },
  )

  it.each([
    { browser: 'Chrome on Android', options: ANDROID, locale: 'en-IN' },
    { browser: 'Chrome on Android', options: ANDROID, locale: 'hi-IN' },
    { browser: 'Safari on an iPhone', options: IPHONE, locale: 'hi-IN' },
    { browser: 'Instagram', options: INSTAGRAM, locale: 'hi-IN' },
  ])(
    'the pay page does not scroll sideways at a font size of 200 %: $browser, $locale',
    async ({ options, locale }) => {
      const tab = await checkout.openTab({ ...options, locale })
      await tab.goto((await checkout.newOrder()).payment_url)
      await tab.evaluate("document.documentElement.style.fontSize = '200%'")
      for (const width of [320, 390]) {
        await tab.setViewportSize({ width, height: 800 })
        expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
        const links = "[...document.querySelectorAll('.apps a')]"
        expect(await tab.evaluate(`${links}.every((link) => link.scrollWidth <= link.clientWidth)`)).toBe(true)
      }
    },
  )

  it.each([
    { phone: 'Android phone', options: ANDROID },
    { phone: 'iPhone', options: IPHONE },
  ])(
    'the content security policy of the pay page allows customers on an $phone to follow every link',
    async ({ options }) => {
      const { payment_url } = await checkout.newOrder()
      // Opens each link in its own tab: a browser that waits for an app confirms no further tap.
      for (let nth = 0; nth <= APPS.length; nth++) {
        const tab = await checkout.openTab(options)
        await tab.goto(payment_url)
        const link = tab.locator('.apps a').nth(nth)
        const [href, box] = [await link.getAttribute('href'), await link.boundingBox()]
        if (!href || !box) throw new Error('a link has no address or is not visible')
        // No app is installed to open the link: the browser reports the request and stays on the page.
        const url = href.replace(/#.*/, '')
        const followed = tab.waitForEvent('request', { predicate: (request) => request.url() === url, ...SOON })
        await tab.touchscreen.tap(box.x + box.width / 2, box.y + box.height / 2)
        await followed
        expect(tab.faults.filter((fault) => !/^request to [a-z]+:\/\/(upi\/)?pay\?/.test(fault))).toEqual([])
        tab.faults.length = 0
      }
    },
  )

  it.each([
    { device: 'desktop', options: {}, qr: true, wallets: false },
    { device: 'narrow window', options: { viewport: { width: 400, height: 800 } }, qr: true, wallets: false },
    // At 400 % a window of 1280×800 has 320×200 CSS pixels.
    { device: 'desktop at 400 %', options: { viewport: { width: 320, height: 200 } }, qr: true, wallets: false },
    {
      device: 'phone in landscape',
      options: { ...ANDROID, viewport: { width: 844, height: 390 } },
      qr: false,
      wallets: true,
    },
    {
      device: 'tablet that requests the desktop page',
      options: { ...PHONE, viewport: { width: 820, height: 1180 } },
      qr: true,
      wallets: true,
    },
  ])(
    'the pay page shows the QR or the wallet links, whichever is usable on a $device',
    async ({ options, qr, wallets }) => {
      const tab = await checkout.openTab(options)
      await tab.goto((await checkout.newOrder()).payment_url)
      expect(await tab.locator('img.qr').isVisible()).toBe(qr)
      expect(await tab.getByRole('link', { name: 'PhonePe' }).isVisible()).toBe(wallets)
    },
  )

  it.each([ANDROID, IPHONE, INSTAGRAM])(
    'the pay page without a connection has no axe violation in either colour scheme: $userAgent',
    async (phone) => {
      const tab = await checkout.openTab(phone)
      await tab.route('**/events', () => undefined)
      await tab.goto((await checkout.newOrder()).payment_url)
      await tab.evaluate("dispatchEvent(new Event('offline'))")
      await tab.getByText('Simulate', { exact: true }).tap()
      expect(await tab.getByText('No connection.').isVisible()).toBe(true)
      expect(await violationsInBothColours(tab)).toEqual([])
    },
  )

  it.each([
    { phone: ANDROID, locale: 'en-IN' },
    { phone: ANDROID, locale: 'hi-IN' },
    { phone: IPHONE, locale: 'hi-IN' },
    { phone: INSTAGRAM, locale: 'en-IN' },
  ])(
    'the pay page does not scroll sideways at 280 to 390 pixels with the longest texts and amount: $locale',
    async ({ phone, locale }) => {
      const order = await checkout.newOrder(
        { amount: '99999.99', note: 'n'.repeat(255), order_id: '1'.repeat(64) },
        { name: 'M'.repeat(99), input: 'shop' },
      )
      const tab = await checkout.openTab({ ...phone, locale })
      await tab.goto(order.payment_url)
      for (const width of [280, 320, 390]) {
        await tab.setViewportSize({ width, height: 600 })
        expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
        expect(await tab.locator('.amount', { hasText: '₹99,999.99' }).isVisible()).toBe(true)
      }
    },
  )

  it.each(LOCALES)(
    'the pay page shows the orderId on one line or in equal halves on a phone, in %s',
    async (locale) => {
      const tab = await checkout.openTab({ ...ANDROID, locale })
      const { orderId, payment_url } = await checkout.newOrder()
      await tab.goto(payment_url)
      await tab.locator('.more summary').tap()
      for (const width of [390, 320]) {
        await tab.setViewportSize({ width, height: 800 })
        const widths = await tab.locator('dd', { hasText: orderId }).evaluate((number) => {
          const { document } = globalThis as unknown as { document: Drawn }
          const range = document.createRange()
          range.selectNodeContents(number)
          // Each line has one rectangle per text in it and one around them.
          const lines = new Map<number, number>()
          for (const { top, width } of range.getClientRects()) lines.set(top, Math.max(width, lines.get(top) ?? 0))
          return [...lines.values()]
        })
        expect(widths.length).toBeLessThanOrEqual(2)
        expect(Math.min(...widths) / Math.max(...widths)).toBeGreaterThan(0.85)
      }
    },
  )

  it('the pay page with open refunds has no axe violation in either colour scheme, and touch-sized controls', async () => {
    const { order } = await checkout.newPaidOrder(2)
    const tab = await checkout.openTab(PHONE)
    await tab.goto(order.payment_url)
    await tab.getByText('Simulate', { exact: true }).tap()
    const buttons = tab.getByRole('button')
    expect(await buttons.allTextContents()).toEqual([
      ...Array(2).fill(['Succeeds', 'Fails']).flat(),
      'Copy',
      'Save receipt',
    ])
    for (const button of await buttons.all()) {
      expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(TARGET_PX)
    }
    expect(await violationsInBothColours(tab)).toEqual([])
  })

  it('the keyboard focus moves through the pay page in visual order and is always visible', async () => {
    const tab = await checkout.openTab({ viewport: { width: 400, height: 900 }, userAgent: ANDROID.userAgent })
    await tab.goto((await checkout.newOrder()).payment_url)
    const stops = []
    const places = []
    for (let i = 0; i < 11; i++) {
      await tab.keyboard.press('Tab')
      stops.push(
        await tab.evaluate(`(() => {
          const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement)
          return document.activeElement.textContent + ' ' + outlineStyle + ' ' + outlineWidth
        })()`),
      )
      const place =
        '(({ left, top }) => ({ left, top: top + scrollY }))(document.activeElement.getBoundingClientRect())'
      places.push((await tab.evaluate(place)) as { left: number; top: number })
    }
    // Row by row, each from left to right.
    expect(places).toEqual(places.toSorted((a, b) => a.top - b.top || a.left - b.left))
    const names = [
      'Test mode: no money moves · Simulate',
      'हिन्दी',
      ...[...APPS, 'Other app', 'Show QR code', 'Return to Chai Point without paying', 'Details'],
    ]
    expect(stops).toEqual(names.map((name) => `${name} solid 3px`))
    await tab.keyboard.press('Shift+Tab')
    await tab.keyboard.press('Enter')
    await tab.waitForURL(`${checkout.storeUrl}/`, SOON)
  })

  it('the pay page gives screen readers names and roles, and moves the focus to the payment', async () => {
    const order = await checkout.newOrder()
    const tab = await checkout.openTab()
    await tab.goto(order.payment_url)
    expect(await tab.title()).toBe('Pay · Chai Point')
    expect((await tab.locator('body').ariaSnapshot()).replace(/\d+:\d\d/, 'm:ss').split('\n')).toEqual([
      '- complementary:',
      '  - group:',
      '    - strong: Test mode',
      '    - text: ": no money moves · Simulate"',
      '- main:',
      '  - heading "Chai Point" [level=1]',
      '  - link "हिन्दी":',
      `    - /url: ${order.orderId}?lang=hi`,
      '  - paragraph: ₹200',
      '  - paragraph: Order 1001',
      '  - term: Order',
      `  - definition: ${order.orderId}`,
      '  - term: Your app will show',
      '  - definition: Chai Point',
      '  - term: UPI address',
      '  - definition: chaipoint@examplebank',
      '  - status',
      '  - heading "Scan with any UPI app" [level=2]',
      '  - img "QR code to pay ₹200 with a UPI app"',
      '  - timer: m:ss left to pay',
      '  - paragraph: Keep this page open. It updates by itself.',
      '  - paragraph:',
      '    - link "Return to Chai Point without paying":',
      `      - /url: ${checkout.storeUrl}`,
      '  - text: UPI · paid directly to the merchant',
    ])
    await checkout.pay(order.orderId, { UTR: '523504870405' })
    await tab.getByRole('heading', { name: '₹200 paid' }).waitFor(SOON)
    expect(await tab.evaluate('document.activeElement.textContent')).toBe('₹200 paid')
    expect(await tab.title()).toBe('Paid · Chai Point')
    const receipt = (await tab.locator('.view').ariaSnapshot()).split('\n')
    expect(receipt.filter((line) => !line.includes('time:'))).toEqual([
      '- heading "₹200 paid" [level=2]',
      '- paragraph:',
      '  - text: to Chai Point ·',
      '- term: UTR',
      '- definition:',
      '  - strong: 5235 0487 0405',
      '  - button "Copy"',
      '- term: Order',
      `- definition: ${order.orderId}`,
      '- paragraph: Returning to Chai Point in a few seconds. Tap the page or press any key to stay.',
      '- link "Return to Chai Point":',
      `  - /url: ${checkout.storeUrl}`,
      '- button "Stay here"',
      '- button "Save receipt"',
    ])
  })
})

describe.runIf(browserPath)('the pay page with hostile, long or injected content', () => {
  const checkout = useCheckout()

  /** Stores a PNG of about 2 KB as the logo of the order's merchant. */
  async function addLogo(orderId: string) {
    const { db } = checkout.service
    const { rows } = await db.query('select mid from payment_intents where order_id = $1', [orderId])
    const [{ mid }] = rows
    const logo = checkLogo(qrPng('https://chaipoint.example'))
    await saveLogo(db, mid, logo)
    await db.query('update merchants set brand_logo = $2 where mid = $1', [mid, logo.sha256])
  }

  it.each(LOCALES)('the pay page fits 1280×650 without scrolling, in the tallest states, in %s', async (locale) => {
    const says = SAYS[locale]
    const tab = await checkout.openTab({ viewport: { width: 1280, height: BARS_LEAVE_PX }, locale })
    const order = await checkout.newOrder({ amount: '100000', order_id: locale.padEnd(64, '8') })
    const heightOf = () => tab.evaluate('document.documentElement.scrollHeight')
    await checkout.pay(order.orderId, { status: 'FAIL', UTR: undefined, amount: 100_000, reason: 'wrong_pin' })
    await tab.goto(order.payment_url)
    expect(await tab.getByText(says.attemptFailed).isVisible()).toBe(true)
    expect(await tab.locator('img.qr').isVisible()).toBe(true)
    expect(await heightOf()).toBe(BARS_LEAVE_PX)
    await checkout.pay(order.orderId, { amount: 100_000 })
    await tab.getByRole('heading', { name: says.paid }).waitFor(SOON)
    expect(await heightOf()).toBe(BARS_LEAVE_PX)
  })

  it('the pay page runs no injected script and requests no image from another host', async () => {
    const tab = await checkout.openTab()
    await tab.goto((await checkout.newOrder()).payment_url)
    await tab.evaluate(`(() => {
      const script = document.createElement('script')
      script.text = 'document.hacked = 1'
      const image = document.createElement('img')
      image.src = 'http://127.0.0.2/pixel.png'
      document.body.append(script, image)
    })()`)
    const blocked = () => tab.faults.filter((fault) => /Content Security Policy.*has been blocked/.test(fault))
    await expect.poll(() => blocked().length, SOON).toBe(2)
    expect(await tab.evaluate('document.hacked')).toBe(undefined)
    tab.faults.length = 0
  })

  it.each(LOCALES)('the pay page with a logo loads only one small page and the logo, in %s', async (locale) => {
    const tab = await checkout.openTab({ locale, userAgent: ANDROID.userAgent })
    const responses: { path: string; bytes: number }[] = []
    tab.on('requestfinished', async (request) => {
      if (request.url().startsWith('data:')) return
      const { responseBodySize } = await request.sizes()
      // The favicon is the logo again, from the cache, for which Chromium reports no body.
      if (responseBodySize <= 0) return
      responses.push({ path: new URL(request.url()).pathname.replace(/.*\/pay\/[^/]*/, ''), bytes: responseBodySize })
    })
    const { orderId, payment_url } = await checkout.newOrder({}, { name: 'Chai Point' })
    await addLogo(orderId)
    await tab.goto(payment_url)
    await expect.poll(() => responses.map(({ path }) => path).sort(), SOON).toEqual(['', '/logo.png'])
    expect(responses.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(PAGE_LIMIT_BYTES)
    expect(
      await tab.locator('img.logo').evaluate((image) => 'naturalWidth' in image && Number(image.naturalWidth) > 0),
    ).toBe(true)
  })
})
