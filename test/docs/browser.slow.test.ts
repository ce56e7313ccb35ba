import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import { browserPath, type OpenPage, SOON, useCheckout, violations } from '../support/browser.ts'
import { DOCUMENT } from '../support/openapi.ts'
import { newMerchant } from '../support/service.ts'

const widthOf = (tab: OpenPage) => tab.evaluate('document.documentElement.scrollWidth')

const HEIGHT = 844
const DESKTOP = { viewport: { width: 1280, height: HEIGHT } }
/** For a machine on which much else runs; alone, a test takes some seconds. */
const SLOW_MS = 240_000

type Operation = { operationId?: string; summary?: string }
const operationsOf = (methods: Record<string, unknown>) =>
  Object.values(methods as Record<string, Operation>).filter(({ operationId }) => operationId !== undefined)

/** Contrast of a button's text to its own ground, from 1 to 21, as WCAG 2.2 reckons it. */
function contrast(button: unknown): number {
  const { color, backgroundColor } = (globalThis as unknown as Styled).getComputedStyle(button)
  const [lighter = 0, darker = 0] = [color, backgroundColor]
    .map((text) => {
      const [red = 0, green = 0, blue = 0] = (text.match(/[\d.]+/g) ?? []).map((value) => {
        const part = Number(value) / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    })
    .sort((one, other) => other - one)
  return (lighter + 0.05) / (darker + 0.05)
}
type Styled = { getComputedStyle: (element: unknown) => { color: string; backgroundColor: string } }

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

describe.runIf(browserPath)('API reference in a real browser, behind a proxy under a path', () => {
  const checkout = useCheckout()
  const routes = Object.entries(DOCUMENT.paths).map(([path, methods]) => {
    return `${'post' in methods ? 'post' : 'get'}-${path.replaceAll(/[{}]/g, '-')}`
  })

  // useCheckout checks of every tab that it sends no request elsewhere and breaks no policy.
  it.each(['light', 'dark'] as const)(
    'the reference page fits 320 and 1280 pixels and has no axe violation in the %s, with each second operation open',
    { timeout: SLOW_MS },
    async (colorScheme) => {
      const tab = await checkout.openTab({ colorScheme })
      const ofColour = routes.filter((_, index) => index % 2 === (colorScheme === 'light' ? 0 : 1))
      for (const [index, route] of ofColour.entries()) {
        await tab.goto('about:blank')
        await tab.goto(`${checkout.publicUrl}/docs/reference#?route=${route}`)
        await tab.locator('api-request').first().waitFor(SOON)
        for (const width of index % 2 ? [320, 1280] : [1280, 320]) {
          await tab.setViewportSize({ width, height: HEIGHT })
          expect(await widthOf(tab), route).toBeLessThanOrEqual(width)
        }
        // At the width that came last: all operations are drawn from the same parts.
        expect(await violations(tab), route).toEqual([])
      }
    },
  )

  it('the reference page creates a payment intent with the entered fields and a key', {
    timeout: SLOW_MS,
  }, async () => {
    const { key } = await newMerchant(checkout.service.db, { mid: 'DEMO_MERCHANT' })
    const tab = await checkout.openTab(DESKTOP)
    await tab.goto(`${checkout.publicUrl}/docs/reference#?route=auth`)
    await tab.locator('.api-key-user').fill(key.publicKey)
    await tab.locator('.api-key-password').fill(key.secretKey)
    await tab.locator('.api-key-password').press('Enter')
    // As the guides link to it.
    await tab.evaluate("location.hash = '#?route=post-/v1/payments/createPaymentIntent'")
    const request = tab.locator('api-request')
    for (const type of ['application/x-www-form-urlencoded', 'application/json']) {
      await request.getByLabel('mime type').selectOption(type)
      await request.getByRole('button', { name: 'Execute' }).click()
      await request.getByText('Payment intent created successfully').waitFor(SOON)
      await request.getByRole('button', { name: 'Clear response' }).click()
    }
  })

  it('the reference page finds an operation by name, and shows name and summary', { timeout: SLOW_MS }, async () => {
    const tab = await checkout.openTab(DESKTOP)
    await tab.goto(`${checkout.publicUrl}/docs/reference`)
    const list = tab.getByRole('navigation', { name: 'Menu' })
    const filter = list.getByPlaceholder('Filter')
    await filter.waitFor(SOON)
    for (const { operationId = '', summary = '' } of Object.values(DOCUMENT.paths).flatMap(operationsOf)) {
      await filter.fill(operationId)
      await list.getByRole('link', { name: `${summary} · ${operationId}`, exact: true }).waitFor(SOON)
    }
    await list.getByRole('button', { name: 'Search' }).click()
    // No part of its path.
    await tab.locator('#advanced-search-dialog-input').pressSequentially('fetchtransactionlistofpartner')
    await tab.locator('.advanced-search-results').getByText('· fetchTransactionListOfPartner').waitFor(SOON)
  })

  it.each(['light', 'dark'] as const)(
    'the reference page shows the tooltip of a button that the pointer or the focus is on, in the %s',
    { timeout: SLOW_MS },
    async (colorScheme) => {
      const { key } = await newMerchant(checkout.service.db)
      const tab = await checkout.openTab({ ...DESKTOP, colorScheme })
      await tab.goto(`${checkout.publicUrl}/docs/reference#?route=auth`)
      await tab.locator('.api-key-user').fill(key.publicKey)
      await tab.locator('.api-key-password').fill(key.secretKey)
      await tab.locator('.api-key-password').press('Enter')
      await tab.evaluate("location.hash = '#?route=post-/v1/payments/checkPaymentStatus'")
      const request = tab.locator('api-request')
      const contrastOf = (button: ReturnType<typeof request.getByRole>) => button.evaluate(contrast)
      const execute = request.getByRole('button', { name: 'Execute' })
      await execute.hover()
      await expect.poll(() => contrastOf(execute), SOON).toBeGreaterThanOrEqual(4.5)
      await execute.focus()
      await tab.mouse.move(0, 0)
      await tab.keyboard.press('Shift+Tab')
      await tab.keyboard.press('Tab')
      expect(await execute.evaluate((button) => button.matches(':focus-visible'))).toBe(true)
      await expect.poll(() => contrastOf(execute), SOON).toBeGreaterThanOrEqual(4.5)
      const status = tab.getByRole('button', { name: '200', exact: true })
      await status.hover()
      await expect.poll(() => contrastOf(status), SOON).toBeGreaterThanOrEqual(4.5)
    },
  )

  it('the reference page links to openapi.json without JavaScript', async () => {
    const tab = await checkout.openTab({ ...PHONE, javaScriptEnabled: false })
    await tab.goto(`${checkout.publicUrl}/docs/reference`)
    const file = tab.getByRole('link', { name: 'openapi.json' })
    expect(await file.evaluate((link: { href: string }) => link.href)).toBe(`${checkout.publicUrl}/openapi.json`)
  })
})

describe.runIf(browserPath)('guides in a real browser, behind a proxy under a path', () => {
  const origins: string[] = []
  const checkout = useCheckout({ sandbox: true, origins })
  const operators = fastify()
  let operatorsUrl: string
  beforeAll(async () => {
    operatorGuideRoutes(operators, { publicUrl: checkout.publicUrl })
    operatorsUrl = await operators.listen({ host: '127.0.0.1', port: 0 })
    origins.push(operatorsUrl)
  })
  afterAll(() => operators.close())

  const PAGES = [
    'docs',
    'docs/merchant',
    'docs/shops',
    'docs/partner',
    'docs/acquirer',
    'docs/thanks?order_id=1001',
    'the operator’s',
  ]
  const addressOf = (page: string) =>
    page.startsWith('docs') ? `${checkout.publicUrl}/${page}` : `${operatorsUrl}/docs`

  it('the guides fit 320 and 1280 pixels and have no axe violation, in light and dark mode', {
    timeout: SLOW_MS,
  }, async () => {
    const tab = await checkout.openTab()
    for (const page of PAGES) {
      await tab.goto(addressOf(page))
      // Folded samples too.
      await tab.evaluate('for (const folded of document.querySelectorAll("details")) folded.open = true')
      for (const [width, colorScheme, ground] of [
        [320, 'light', 'rgb(255, 255, 255)'],
        [1280, 'dark', 'rgb(13, 15, 26)'],
      ] as const) {
        await tab.setViewportSize({ width, height: HEIGHT })
        await tab.emulateMedia({ colorScheme })
        expect(await widthOf(tab), page).toBeLessThanOrEqual(width)
        expect(await violations(tab), page).toEqual([])
        expect(await tab.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground)
      }
    }
  })

  it.each([390, 1280])('the guides list no heading without its parent in the contents at %d pixels', async (width) => {
    const tab = await checkout.openTab({ viewport: { width, height: 844 } })
    for (const page of PAGES) {
      await tab.goto(addressOf(page))
      const entries = (await tab.evaluate(
        `[...document.querySelectorAll('.contents li')].filter((it) => it.checkVisibility())
          .map((it) => [it.textContent, Number(it.className.slice('depth-'.length)), it.firstChild.offsetLeft])`,
      )) as [text: string, depth: number, left: number][]
      let above = { depth: 1, left: -1 }
      for (const [text, depth, left] of entries) {
        expect(depth, `${page}: ${text}`).toBeLessThanOrEqual(above.depth + 1)
        // A deeper one is further in.
        expect(Math.sign(left - above.left), `${page}: ${text}`).toBe(Math.sign(depth - above.depth))
        above = { depth, left }
      }
    }
  })

  it('the guides and the pages to which they link contain no broken link', { timeout: SLOW_MS }, async () => {
    const tab = await checkout.openTab()
    const seen = new Set<string>()
    const ours = [new URL(checkout.publicUrl).origin, operatorsUrl]
    const open = PAGES.map(addressOf)
    for (let address = open.pop(); address !== undefined; address = open.pop()) {
      if (seen.has(address)) continue
      seen.add(address)
      // A file, which names no icon: opened as a page, Chromium would ask for one at the root, which is not the service's.
      if (address.endsWith('.json')) {
        expect((await tab.request.get(address)).status(), address).toBe(200)
        continue
      }
      const answer = await tab.goto(address)
      expect(answer?.status(), address).toBe(200)
      // Ours: what the library draws is not walked.
      const links = await tab.evaluate(
        '[...document.querySelectorAll("header a, .contents a, .guide a, .file a")].map(({ href }) => href)',
      )
      for (const link of links as string[]) {
        const { origin, pathname, hash } = new URL(link)
        if (origin + pathname === new URL(address).origin + new URL(address).pathname) {
          const target = hash === '' ? 'body' : `[id="${hash.slice(1)}"]`
          expect(await tab.locator(target).count(), link).toBe(1)
        } else if (ours.includes(origin)) open.push(origin + pathname)
      }
    }
    expect(seen.size).toBeGreaterThan(7)
  })

  it('the guides copy a sample when a button is pressed, and only the commands of a terminal sample', async () => {
    const tab = await checkout.openTab({ permissions: ['clipboard-read', 'clipboard-write'] })
    const copied = async (text: string) => {
      const block = tab.locator('.code', { hasText: text }).first()
      await block.getByRole('button', { name: 'Copy' }).click()
      await block.getByRole('button', { name: 'Copied' }).waitFor(SOON)
      return tab.evaluate('navigator.clipboard.readText()')
    }
    await tab.goto(addressOf('docs/merchant'))
    expect(await copied('export BASE_URL')).toMatch(
      new RegExp(`^export BASE_URL=${checkout.publicUrl} MID=DEMO_MERCHANT\nexport PUBLIC_KEY=.*\n$`),
    )
    await tab.goto(addressOf('the operator’s'))
    const again = 'ops settlements import - < settlements.csv\n'
    expect(await copied('2 inserted')).toBe(`${again.replace('- <', '--rows 2 --total 2,449.50 - <')}${again}`)
  })

  it('the guides can be read and navigated without JavaScript, and then show no buttons', async () => {
    const tab = await checkout.openTab({ ...PHONE, javaScriptEnabled: false })
    await tab.goto(addressOf('docs/merchant'))
    expect(await tab.getByRole('button').count()).toBe(0)
    await tab.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'Refusals' }).click()
    const heading = tab.getByRole('heading', { name: 'Refusals' })
    const top = async () => (await heading.boundingBox())?.y ?? Number.NaN
    // Near the top, but not hidden by the header, which stays in place.
    await expect.poll(top, SOON).toBeLessThan(200)
    expect(await top()).toBeGreaterThan(40)
    await tab.getByText('java Receive.java').click()
    const sample = tab.locator('details', { hasText: 'java Receive.java' })
    expect(await sample.getByText('MessageDigest.isEqual').isVisible()).toBe(true)
  })
})
