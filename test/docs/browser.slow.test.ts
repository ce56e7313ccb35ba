import fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import { chapterText, GUIDES } from '../guides/guides.ts'
import {
  browserPath,
  type OpenPage,
  SOON,
  useCheckout,
  violations,
  violationsInBothColours,
} from '../support/browser.ts'
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
  const routes = Object.entries({ ...DOCUMENT.paths, ...DOCUMENT.webhooks }).map(([path, methods]) => {
    return `${'post' in methods ? 'post' : 'get'}-${path.replaceAll(/[{}]/g, '-')}`
  })

  // useCheckout checks of every tab that it sends no request elsewhere and breaks no policy.
  it.each(['light', 'dark'] as const)(
    'the API reference fits 320 and 1280 pixels and has no axe violation in %s mode, with every second operation open',
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

  it('the API reference creates a payment intent with the entered fields and a key', { timeout: SLOW_MS }, async () => {
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

  it('the API reference finds an operation by name, and shows name and summary', { timeout: SLOW_MS }, async () => {
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
    'the API reference shows the tooltip of a button that has the pointer or the focus, in %s mode',
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

  it('the API reference links to openapi.json without JavaScript', async () => {
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
    // The console, to which the header links.
    operators.get('/', async (_request, reply) => reply.type('text/html').send(CONSOLE))
    operatorsUrl = await operators.listen({ host: '127.0.0.1', port: 0 })
    origins.push(operatorsUrl)
  })
  afterAll(() => operators.close())
  const CONSOLE = '<!doctype html><html lang="en"><title>Console</title><link rel="icon" href="data:,"><h1>Console</h1>'

  const isPublic = (chapter: string) => /^(?:merchant|partner|plugins|acquirer)\//.test(chapter)
  const CHAPTERS = GUIDES.flatMap(chaptersOf)
  const PUBLIC_INDEX = 'the public index'
  const OPERATOR_INDEX = 'the operator’s index'
  const addressOf = (page: string) => {
    if (page === PUBLIC_INDEX) return `${checkout.publicUrl}/docs`
    if (page === OPERATOR_INDEX) return `${operatorsUrl}/docs`
    return `${isPublic(page) || page.startsWith('thanks') ? checkout.publicUrl : operatorsUrl}/docs/${page}`
  }
  const PAGES: [name: string, pages: string[]][] = [
    ['the pages without a guide', [PUBLIC_INDEX, OPERATOR_INDEX, 'thanks?order_id=1001']],
    ...GUIDES.map((guide): [string, string[]] => [`the guide ${guide}`, chaptersOf(guide)]),
  ]
  /** The chapter of a guide with the text, which there must be. */
  const chapterWith = (text: string | RegExp) => {
    const found = CHAPTERS.find((chapter) => chapterText(chapter).match(text))
    if (found === undefined) throw new Error(`No chapter contains ${text}`)
    return found
  }
  /** A chapter with samples in several languages. */
  const TABS = chapterWith(/^```js\n[\s\S]*?^```\n+```python\n/m)

  it.each(PAGES)(
    '%s: every page fits 320 and 1280 pixels and has no axe violation, in light and dark mode',
    {
      timeout: SLOW_MS,
    },
    async (_name, pages) => {
      const tab = await checkout.openTab()
      for (const [index, page] of pages.entries()) {
        await tab.goto(addressOf(page))
        // Folded samples and the chapters on a phone too.
        await tab.evaluate('for (const folded of document.querySelectorAll("details")) folded.open = true')
        const schemes = [
          ['light', 'rgb(255, 255, 255)'],
          ['dark', 'rgb(13, 15, 26)'],
        ] as const
        for (const [order, width] of [320, 1280].entries()) {
          const [colorScheme, ground] = schemes[(index + order) % 2] as (typeof schemes)[number]
          await tab.setViewportSize({ width, height: HEIGHT })
          await tab.emulateMedia({ colorScheme })
          expect(await widthOf(tab), page).toBeLessThanOrEqual(width)
          expect(await violations(tab), page).toEqual([])
          expect(await tab.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground)
        }
        // Three columns.
        await tab.setViewportSize({ width: 1440, height: HEIGHT })
        expect(await widthOf(tab), page).toBeLessThanOrEqual(1440)
      }
    },
  )

  it('samples and their tabs in the guides have enough contrast in light and dark mode, whichever tab is chosen', {
    timeout: SLOW_MS,
  }, async () => {
    const tab = await checkout.openTab({ viewport: { width: 1440, height: HEIGHT } })
    await tab.goto(addressOf(TABS))
    const labels = await tab.locator('.tabs').first().locator('label').allTextContents()
    expect(labels.length).toBeGreaterThan(2)
    for (const label of labels) {
      await tab.locator('.tabs label', { hasText: label }).first().click()
      expect(await violationsInBothColours(tab), label).toEqual([])
    }
  })

  it.each([390, 1280, 1440])(
    'the table of contents, at a width of %d pixels, lists each heading of a chapter below its parent heading',
    async (width) => {
      const tab = await checkout.openTab({ viewport: { width, height: 844 } })
      let count = 0
      for (const page of CHAPTERS) {
        await tab.goto(addressOf(page))
        const entries = (await tab.evaluate(
          `[...document.querySelectorAll('.contents li')].filter((it) => it.checkVisibility())
          .map((it) => [it.textContent, Number(it.className.slice('depth-'.length)), parseFloat(getComputedStyle(it).paddingLeft)])`,
        )) as [text: string, depth: number, left: number][]
        let above = { depth: 1, left: -1 }
        for (const [text, depth, left] of entries) {
          expect(depth, `${page}: ${text}`).toBeLessThanOrEqual(above.depth + 1)
          // A deeper one is further in.
          expect(Math.sign(left - above.left), `${page}: ${text}`).toBe(Math.sign(depth - above.depth))
          above = { depth, left }
          count++
        }
      }
      expect(count).toBeGreaterThan(20)
    },
  )

  it('no line of text in a chapter has more than about 66 characters on a wide screen', async () => {
    const tab = await checkout.openTab({ viewport: { width: 1440, height: HEIGHT } })
    await tab.goto(addressOf(TABS))
    const widest = (await tab.evaluate(`(() => {
      const widths = [...document.querySelectorAll('.prose > p')].map((it) => it.getBoundingClientRect().width)
      const probe = document.querySelector('.prose').appendChild(document.createElement('span'))
      probe.textContent = 'Your server checks the payment status before it fulfils the order.'
      probe.style.cssText = 'white-space: nowrap; display: inline-block'
      return Math.max(...widths) / (probe.getBoundingClientRect().width / probe.textContent.length)
    })()`)) as number
    expect(widest).toBeGreaterThan(50)
    expect(widest).toBeLessThan(70)
  })

  it('the table of error codes in the chapter Errors fits its page on a wide screen, so that its last column is in sight', async () => {
    const tab = await checkout.openTab({ viewport: { width: 1440, height: HEIGHT } })
    for (const chapter of CHAPTERS.filter((name) => name.endsWith('/errors'))) {
      await tab.goto(addressOf(chapter))
      const hidden = await tab.evaluate(
        '[...document.querySelectorAll(".table")].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)',
      )
      expect(Math.max(...(hidden as number[])), chapter).toBeLessThanOrEqual(0)
    }
  })

  it('every link works in the guides and in the pages that the guides link to', { timeout: SLOW_MS }, async () => {
    const tab = await checkout.openTab()
    const seen = new Set<string>()
    const ours = [new URL(checkout.publicUrl).origin, operatorsUrl]
    const open = [PUBLIC_INDEX, OPERATOR_INDEX, 'thanks?order_id=1001'].map(addressOf)
    for (let address = open.pop(); address !== undefined; address = open.pop()) {
      if (seen.has(address)) continue
      seen.add(address)
      // A file, which names no icon: opened as a page, Chromium would ask for one at the root, which is not the service's.
      if (/\.(?:json|md|txt)$/.test(address)) {
        expect((await tab.request.get(address)).status(), address).toBe(200)
        continue
      }
      const response = await tab.goto(address)
      expect(response?.status(), address).toBe(200)
      // Ours: what the library draws is not walked.
      const links = await tab.evaluate(
        '[...document.querySelectorAll("header a, .chapters a, .guide a, .file a")].map(({ href }) => href)',
      )
      for (const link of links as string[]) {
        const { origin, pathname, hash } = new URL(link)
        if (origin + pathname === new URL(address).origin + new URL(address).pathname) {
          const target = hash === '' ? 'body' : `[id="${hash.slice(1)}"]`
          expect(await tab.locator(target).count(), link).toBe(1)
        } else if (ours.includes(origin)) open.push(origin + pathname)
      }
    }
    const chapters = CHAPTERS.filter((chapter) => !seen.has(addressOf(chapter)))
    expect(chapters, 'chapters that no page links to').toEqual([])
  })

  it('a guide’s copy button copies the sample, or only the commands of a terminal sample', async () => {
    const tab = await checkout.openTab({ permissions: ['clipboard-read', 'clipboard-write'] })
    const copied = async (text: string) => {
      const block = tab.locator('.code', { hasText: text }).first()
      await block.getByRole('button', { name: 'Copy' }).click()
      await block.getByRole('button', { name: 'Copied' }).waitFor(SOON)
      return tab.evaluate('navigator.clipboard.readText()')
    }
    await tab.goto(addressOf(chapterWith('export BASE_URL={PUBLIC_URL} MID=')))
    expect(await copied('export BASE_URL')).toMatch(
      new RegExp(`^export BASE_URL=${checkout.publicUrl} MID=DEMO_MERCHANT\nexport PUBLIC_KEY=.*\n$`),
    )
    // A session with several commands and their output.
    const session = /^```console\n((?=(?:[^$\n].*\n|\$ .*\n)*?[^$\n].*\n)(?:\$ .*\n(?:[^$`].*\n|\n)*){2,})```$/m
    const chapter = chapterWith(session)
    const [, text = ''] = session.exec(chapterText(chapter)) ?? []
    const commands = text.split('\n').filter((line) => line.startsWith('$ '))
    expect(commands.length).toBeGreaterThan(1)
    expect(text.split('\n').length).toBeGreaterThan(commands.length + 1)
    await tab.goto(addressOf(chapter))
    expect(await copied(commands[0] as string)).toBe(commands.map((command) => `${command.slice(2)}\n`).join(''))
  })

  it('the guides store the chosen language and select the language in each group of tabs with a tab for the language', async () => {
    const tab = await checkout.openTab()
    await tab.goto(addressOf(TABS))
    const shown = () => tab.locator('.tabs > input:checked + label').allTextContents()
    await tab.locator('.tabs label', { hasText: 'PHP' }).first().click()
    const groups = await tab.locator('.tabs').evaluateAll((all) => all.map((one) => one.textContent?.includes('PHP')))
    const chosen = async () => {
      const labels = await shown()
      return groups.every((hasPhp, index) => !hasPhp || labels[index] === 'PHP')
    }
    expect(await chosen()).toBe(true)
    await tab.reload()
    await expect.poll(chosen, SOON).toBe(true)
    expect(await tab.locator('.tabs > .code:visible').first().textContent()).toContain('<?php')
  })

  it('the guides can be read and navigated without JavaScript, and show neither buttons nor search', async () => {
    const tab = await checkout.openTab({ ...PHONE, javaScriptEnabled: false })
    await tab.goto(addressOf(PUBLIC_INDEX))
    expect(await tab.getByRole('searchbox').count()).toBe(0)
    await tab.locator(`a[href="docs/${TABS}"]`).click()
    expect(await tab.getByRole('button').count()).toBe(0)
    // Each tab shows its sample, and hides the others.
    const group = tab.locator('.tabs').first()
    for (const [index, label] of (await group.locator('label').allTextContents()).entries()) {
      await group.locator('label', { hasText: label }).click()
      const visible = await group.locator('.code').evaluateAll((all) => all.map((one) => one.checkVisibility()))
      expect(visible, label).toEqual(visible.map((_, at) => at === index))
    }
    // Another chapter, by the list that is folded on a phone.
    const [other = ''] = chaptersOf('merchant').filter((chapter) => chapter !== TABS)
    const link = tab.locator(`.chapters a[href="../${other}"]`)
    expect(await link.isVisible()).toBe(false)
    await tab.locator('.menu summary').click()
    await link.click()
    await tab.waitForURL(`**/docs/${other}`, SOON)
    expect(await tab.locator('.chapters [aria-current="page"]').count()).toBe(1)
  })

  it('the page header does not hide a heading that a link leads to', async () => {
    const tab = await checkout.openTab(DESKTOP)
    const long = CHAPTERS.find((chapter) => (chapterText(chapter).match(/^## /gm)?.length ?? 0) > 3) as string
    await tab.goto(addressOf(long))
    const link = tab.getByRole('navigation', { name: 'On this page' }).getByRole('link').nth(2)
    await link.click()
    const heading = tab.locator('h2, h3', { hasText: (await link.textContent()) ?? '' }).first()
    const top = async () => (await heading.boundingBox())?.y ?? Number.NaN
    await expect.poll(top, SOON).toBeLessThan(200)
    expect(await top()).toBeGreaterThan(60)
  })

  it('a printed chapter shows every tab with its label, and neither header nor navigation', async () => {
    const tab = await checkout.openTab(DESKTOP)
    await tab.goto(addressOf(TABS))
    await tab.emulateMedia({ media: 'print' })
    const group = tab.locator('.tabs').first()
    const labels = await group.locator('label').allTextContents()
    const printed = await group
      .locator('.code')
      .evaluateAll((all) =>
        all.map((one) =>
          one.checkVisibility()
            ? one.querySelector('.bar span')?.checkVisibility() && one.querySelector('.bar span')?.textContent
            : 'hidden',
        ),
      )
    expect(printed).toEqual(labels)
    for (const hidden of ['.site', '.chapters', '.menu', '.pager', '.copy', '.tabs > label'])
      expect(await tab.locator(hidden).first().isVisible(), hidden).toBe(false)
    await tab.setViewportSize({ width: 700, height: HEIGHT })
    // Nothing is cut off: no box scrolls.
    expect(
      await tab.evaluate(
        '[...document.querySelectorAll("pre, .table")].filter((it) => it.scrollWidth > it.clientWidth + 1).length',
      ),
    ).toBe(0)
  })

  describe('the search', () => {
    const openSearch = async (index: string) => {
      const tab = await checkout.openTab(DESKTOP)
      await tab.goto(addressOf(index))
      await tab.keyboard.press('/')
      return tab
    }
    const results = (tab: OpenPage) => tab.locator('.results:not([hidden]) a')

    it.each([
      ['verify signature', PUBLIC_INDEX, /verif/i],
      ['refund', PUBLIC_INDEX, /refund/i],
      ['error 409', PUBLIC_INDEX, /error|refusal/i],
      ['failure reason', PUBLIC_INDEX, /fail/i],
      ['list open orders', PUBLIC_INDEX, /list|order/i],
      ['UTR', PUBLIC_INDEX, /payment status/i],
      ['payout', PUBLIC_INDEX, /payouts/i],
      ['import a settlement file', OPERATOR_INDEX, /settlement/i],
      ['restore', OPERATOR_INDEX, /restore/i],
      ['rotate a key', OPERATOR_INDEX, /key/i],
      ['BankUnavailable', OPERATOR_INDEX, /BankUnavailable/],
      ['upgrade', OPERATOR_INDEX, /upgrade/i],
    ])(
      'the search for %s lists the matching chapter first, and the index links to the same chapter',
      async (query, index, title) => {
        const tab = await openSearch(index)
        await tab.keyboard.type(query)
        await results(tab).first().waitFor(SOON)
        // Until the last key is searched for.
        await expect.poll(() => tab.locator('.search .status').textContent(), SOON).toMatch(/result/)
        await tab.keyboard.press('Enter')
        await tab.waitForURL(/\/docs\/\w+\/[\w-]+/, SOON)
        expect(await tab.locator('h1').first().textContent()).toMatch(title)
        const { pathname } = new URL(tab.url())
        await tab.goto(addressOf(index))
        const links = (await tab.evaluate(
          '[...document.querySelectorAll("main a")].map(({ pathname }) => pathname)',
        )) as string[]
        expect(links).toContain(pathname)
      },
    )

    it('the search loads its library and its entries only on first focus, and finds words by prefix and despite typing errors', async () => {
      const tab = await checkout.openTab(DESKTOP)
      const loaded: string[] = []
      tab.on('request', (request) => void loaded.push(new URL(request.url()).pathname.replace(/.*\//, '')))
      await tab.goto(addressOf(chaptersOf('merchant')[0] as string))
      await tab.waitForLoadState('networkidle')
      expect(loaded).not.toContain('minisearch.js')
      await tab.keyboard.press('/')
      for (const query of ['refun', 'refumd', 'REFUNDS']) {
        await tab.locator('.search input').fill(query)
        await expect.poll(() => results(tab).first().textContent(), SOON).toMatch(/refund/i)
      }
      expect(loaded.filter((name) => ['minisearch.js', 'search.json'].includes(name)).sort()).toEqual([
        'minisearch.js',
        'search.json',
      ])
      await tab.locator('.search input').fill('xyzzyq')
      await tab.getByText('No results').first().waitFor(SOON)
    })

    it('the search says that it is not available while the index cannot be loaded, and tries again', async () => {
      const tab = await checkout.openTab(DESKTOP)
      let failures = 0
      await tab.route('**/search.json', (route) => (failures++ < 2 ? route.fulfill({ status: 503 }) : route.continue()))
      await tab.goto(addressOf(chaptersOf('merchant')[0] as string))
      await tab.locator('.search input').fill('refund')
      await tab.getByText('Search is not available.').waitFor(SOON)
      await expect.poll(() => results(tab).first().textContent(), SOON).toMatch(/refund/i)
      expect(await tab.getByText('Search is not available.').count()).toBe(0)
      tab.faults.length = 0
    })

    it('the search is usable by keyboard: arrow keys move through results, and Escape closes the results', async () => {
      const tab = await openSearch(PUBLIC_INDEX)
      await tab.keyboard.type('refund')
      await results(tab).nth(1).waitFor(SOON)
      expect(await violationsInBothColours(tab)).toEqual([])
      const focused = () => tab.evaluate('document.activeElement.textContent') as Promise<string>
      await tab.keyboard.press('ArrowDown')
      expect(await focused()).toBe(await results(tab).nth(0).textContent())
      await tab.keyboard.press('ArrowDown')
      expect(await focused()).toBe(await results(tab).nth(1).textContent())
      await tab.keyboard.press('Escape')
      expect(await results(tab).count()).toBe(0)
      expect(await tab.evaluate('document.activeElement.type')).toBe('search')
      await tab.setViewportSize({ width: 320, height: HEIGHT })
      await tab.keyboard.type('s')
      await results(tab).first().waitFor(SOON)
      expect(await widthOf(tab)).toBeLessThanOrEqual(320)
    })
  })
})
