import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'
import { PNG } from 'pngjs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import { browserPath } from '../support/browser.ts'
import { newOperatorKey } from '../support/console.ts'
import { asRole } from '../support/database-url.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { end, ROOT, startReading } from '../support/processes.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { newWebhook } from '../support/webhooks.ts'

const SAME_NUMBER = 'ORDER-17'
/** axe omits the sizes of links and buttons by default. */
const WITH_SIZES = `axe.run({ rules: { 'target-size': { enabled: true } } })`
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

describe.skipIf(browserPath === undefined)('the console in a real browser', () => {
  let service: TestService
  let running: ReturnType<typeof startReading>
  let address: string
  let browser: Browser
  const { json } = opsOn(() => service.databaseUrl)
  const bank = bankOn(() => service.databaseUrl)

  beforeAll(async () => {
    service = await startService()
    await newOperatorKey(service.db)
    const env = { ...process.env, CONSOLE_DATABASE_URL: asRole(service.databaseUrl, 'upi_console'), CONSOLE_PORT: '0' }
    running = startReading(process.execPath, ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'console'], {
      cwd: ROOT,
      env,
    })
    await until('the console listens', () => /address +http/.test(running.said()))
    address = /address +(\S+)/.exec(running.said())?.[1] as string
    browser = await chromium.launch({ executablePath: browserPath as string, args: ['--no-sandbox'] })
  })
  afterAll(() => browser?.close())

  async function signIn(colorScheme: 'light' | 'dark', width: number): Promise<Page> {
    const { publicKey: username, secretKey: password } = await newOperatorKey(service.db)
    const context = await browser.newContext({
      httpCredentials: { username, password },
      colorScheme,
      viewport: { width, height: 800 },
    })
    return context.newPage()
  }

  async function paidOrder() {
    const merchant = await newMerchant(service.db)
    await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/hook' }, new Date())
    const fields = intentFields(merchant.mid, { amount: '1500', order_id: SAME_NUMBER })
    const { orderId } = (await post(service.app, CREATE, fields, merchant.key)).body.data
    const utr = newUtr()
    await notify(service, notification(orderId, { amount: 1500, UTR: utr }))
    await notify(service, notification(orderId, { amount: 1500, UTR: newUtr() }))
    return { mid: merchant.mid, orderId, utr }
  }

  /** Clicks a link or button, and waits for the next page with its style sheet. */
  const follow = (page: Page, selector: string) => Promise.all([page.waitForEvent('load'), page.click(selector)])

  async function expectAccessible(page: Page) {
    await page.evaluate(axe)
    const { violations } = (await page.evaluate(WITH_SIZES)) as { violations: { id: string }[] }
    expect([page.url(), violations.map(({ id }) => id)]).toEqual([page.url(), []])
    const hidden = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect([page.url(), hidden]).toEqual([page.url(), 0])
  }

  it.each([
    ['light', 1280],
    ['light', 390],
    ['light', 360],
    ['dark', 1280],
    ['dark', 390],
  ] as const)(
    'an operator refunds an order found by a UTR with spaces in four clicks, and every page is accessible and fits the screen, in %s, %i px wide',
    async (scheme, width) => {
      await paidOrder()
      const { orderId, utr } = await paidOrder()
      const page = await signIn(scheme, width)
      await page.goto(address)
      await expectAccessible(page)
      await page.fill('[name=q]', utr.replace(/(\d{4})(?=\d)/g, '$1 '))
      await follow(page, 'text=Search')
      expect(page.url()).toContain('payments-show?')
      await expectAccessible(page)
      await follow(page, 'text=Refund…')
      await page.fill('[name=note]', 'Sold out')
      await expectAccessible(page)
      await follow(page, 'text=Continue…')
      await expectAccessible(page)
      await follow(page, 'text=Refund ₹1,500.00')
      expect((await json('payments', 'show', '--order-id', orderId)).refunds).toMatchObject([{ amount: 1500 }])
      const lists = [
        'payments-exceptions',
        'refunds-list',
        'refunds-list?mid=none',
        'disputes-list',
        'reconcile',
        'reconcile-payouts',
      ]
      const errors = ['payments-find', 'nothing', 'reconcile?from=2026-08-02&to=2026-08-01']
      for (const path of [...lists, ...errors, 'search?q=no+such+order', `search?q=${SAME_NUMBER}`]) {
        await page.goto(new URL(path, address).href)
        await expectAccessible(page)
      }
      expect(await page.locator('tbody tr').count()).toBeGreaterThan(1)
    },
  )

  it.each([360, 390, 1280])(
    'an operator finds a payment by its amount in two actions, and every page of results is accessible, %i px wide',
    async (width) => {
      const { mid } = await newMerchant(service.db, { name: 'Chai Point' })
      const utr = newUtr()
      const orderId = await storePaidOrder(service.db, { mid, utr, rupees: 499, paidAt: new Date() })
      await storePaidOrder(service.db, { mid, utr: newUtr(), rupees: 499, paidAt: new Date(Date.now() - 1_000) })
      await notify(service, notification(orderId, { amount: 1, UTR: utr }))
      const page = await signIn('light', width)
      await page.goto(address)
      await page.fill('header [name=q]', '₹499 today')
      await Promise.all([page.waitForEvent('load'), page.press('header [name=q]', 'Enter')])
      await expectAccessible(page)
      await follow(page, 'tbody a[href^="payments-show"] >> nth=0')
      expect(page.url()).toContain(`order-id=${orderId}`)
      for (const text of ['no such order', 'chai']) {
        await page.goto(new URL(`search?q=${encodeURIComponent(text)}`, address).href)
        await expectAccessible(page)
      }
    },
  )

  it.each([360, 390, 1280])(
    'an operator follows a payment to its payout in one click, and learns in three actions why it is in none, %i px wide',
    async (width) => {
      const { mid } = await newMerchant(service.db)
      const [settled, unsettled] = [newUtr(), newUtr()]
      const paidAt = new Date(Date.now() - 9 * 24 * 60 * 60_000)
      await storePaidOrder(service.db, { mid, utr: settled, paidAt })
      const missing = await storePaidOrder(service.db, { mid, utr: unsettled, paidAt })
      await service.db.query(
        `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, account, initiated_at, created_at)
         values ($1, $2, 20000, 'AXNPN20261145678', 'SUCCESS', 'direct', $3, now())`,
        [mid, settled, new Date(paidAt.getTime() + 24 * 60 * 60_000)],
      )
      const page = await signIn('light', width)
      const searchFor = async (text: string) => {
        await page.goto(address)
        await page.fill('header [name=q]', text)
        await Promise.all([page.waitForEvent('load'), page.press('header [name=q]', 'Enter')])
        await expectAccessible(page)
      }
      await searchFor(settled)
      await follow(page, 'dd a[href^="reconcile?payout"]')
      expect(await page.locator('tbody').first().innerText()).toContain('200.00')
      await expectAccessible(page)
      await searchFor(unsettled)
      expect(await page.locator('main').innerText()).toContain('overdue since')
      await follow(page, 'p.error a')
      expect(page.url()).toContain('reconcile?from=')
      const report = await page.locator('main').innerText()
      expect([report, report]).toEqual([
        expect.stringContaining('missing settlement'),
        expect.stringContaining(missing),
      ])
      await expectAccessible(page)
    },
  )

  it.each(['light', 'dark'] as const)(
    'an operator uploads a settlement file, checks, imports and undoes it, and no page has an axe violation in %s',
    async (scheme) => {
      const { mid } = await newMerchant(service.db)
      const csv = `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},10,${newUtr()},B1,SUCCESS,2026-10-05 10:00:00\n`
      const page = await signIn(scheme, 1280)
      await page.goto(new URL('settlements-imports', address).href)
      await follow(page, 'text=Import settlements…')
      await expectAccessible(page)
      await page.setInputFiles('[name=file]', { name: 'day.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
      await follow(page, '.change button')
      await expectAccessible(page)
      expect(await page.locator('main').innerText()).toMatch(
        /inserted\s+1\s+unchanged\s+0\s+updated\s+0\s+matched\s+0\s+inserted amount\s+₹10\.00\s+unknown\s+1/i,
      )
      await follow(page, '.change button')
      await expectAccessible(page)
      await follow(page, 'tbody tr:last-child >> text=Undo…')
      await follow(page, '.change button')
      await expectAccessible(page)
      await follow(page, '.change button')
      const [last] = (await json('settlements', 'imports')).slice(-1)
      expect(last).toMatchObject({ file: 'day.csv', inserted: 1, undoneBy: 'asha' })
    },
  )

  it('an operator resolves an exception and redelivers a webhook from their rows, and the audit has both', async () => {
    const { mid, orderId } = await paidOrder()
    const page = await signIn('light', 1280)
    await page.goto(new URL(`payments-exceptions?mid=${mid}`, address).href)
    await follow(page, 'a[href^="payments-resolve"]')
    await page.fill('.change [name=reason]', 'refunded in cash')
    await follow(page, '.change button')
    await follow(page, '.change button')
    await page.goto(new URL(`webhooks-deliveries?mid=${mid}&since=2020-01-01T00:00:00Z`, address).href)
    await follow(page, 'a[href^="webhooks-resend"]')
    await follow(page, '.change button')
    await follow(page, '.change button')
    expect((await json('payments', 'show', '--order-id', orderId)).exceptions).toMatchObject([
      { resolution: 'refunded in cash', resolvedBy: 'asha' },
    ])
    expect((await json('audit')).slice(-2)).toMatchObject([
      { person: 'asha', command: 'payments resolve', outcome: 'done' },
      { person: 'asha', command: 'webhooks resend', outcome: 'done' },
    ])
  })

  /** Stores an open discrepancy and exception, a received payout and one of another amount, of more than ₹10 lakh. */
  async function booksOfMerchant() {
    const { mid, orderId } = await paidOrder()
    await json(
      'payments',
      'resolve',
      '--exception',
      (await json('payments', 'exceptions', '--mid', mid))[0].id,
      '--reason',
      'refunded in cash',
    )
    await notify(service, notification(orderId, { amount: 1500, UTR: newUtr() }))
    await bank.layout('bank', 'day=Date', 'reference=Text', 'debit=Debit', 'credit=Credit', 'balance=Balance')
    const [received, differs] = [newReference(), newReference()]
    await bank.addPayout(mid, { day: '2026-08-05', reference: received, rupees: 1004 })
    await bank.addPayout(mid, { day: '2026-08-05', reference: differs, rupees: 1234567 })
    const lines = [`05/08/2026,NEFT ${received},,1004,1004`, `05/08/2026,NEFT ${differs},,1234557,1235561`]
    const file = ['Date,Text,Debit,Credit,Balance', '03/08/2026,TEA,1,,0', ...lines, '30/08/2026,TEA,1,,1235560', '']
    await bank.must(importArgs(mid, 'bank'), file.join('\n'))
    return mid
  }

  /** Returns the brightness, 0 to 255, at the right edge of the last row of the first table. */
  async function brightnessAtEdge(page: Page): Promise<number> {
    const box = await page.locator('.table').first().boundingBox()
    if (box === null) throw new Error('the page has no table')
    const clip = { x: box.x + box.width - 3, y: box.y + box.height - 24, width: 1, height: 1 }
    const [red = 0, green = 0, blue = 0] = PNG.sync.read(await page.screenshot({ clip })).data
    return (red + green + blue) / 3
  }

  it('the columns that matter are visible at 1280 px, and a table with more columns has a shaded edge', async () => {
    const mid = await booksOfMerchant()
    const page = await signIn('light', 1280)
    for (const [path, ...heads] of [
      ['payments-exceptions?', 'Amount', 'Next step'],
      ['reconcile-payouts?month=2026-08&', 'Net', 'Credited', 'Difference'],
      ['reconcile?month=2026-08&', 'Owed', 'Cause'],
      ['reconcile-differences?', 'Owed', 'Cause'],
    ]) {
      await page.goto(new URL(`${path}mid=${mid}`, address).href)
      const edgeOf = (selector: string) =>
        page
          .locator(selector)
          .first()
          .evaluate((node) => node.getBoundingClientRect().right)
      for (const head of heads) {
        expect(await edgeOf(`th:text-is("${head}")`)).toBeLessThan(await edgeOf('.table'))
      }
    }
    await page.goto(new URL(`reconcile-payouts?month=2026-08&mid=${mid}`, address).href)
    const before = await brightnessAtEdge(page)
    await page.locator('.table').evaluate((node) => node.scrollTo({ left: node.scrollWidth }))
    const atTheEnd = await brightnessAtEdge(page)
    expect(atTheEnd).toBe(255)
    expect(before).toBeLessThan(230)
  })

  it('ops console exits with 0 on SIGTERM', async () => {
    expect(await end(running.child)).toBe(0)
  })
})
