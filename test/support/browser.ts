import { existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { RIGHTS } from '../../src/platform/rights.ts'
import { notification, notify } from './acquirer.ts'
import { stopAtEnd } from './at-end.ts'
import {
  intentFields,
  type Key,
  newKey,
  newMerchant,
  ORDER,
  post,
  REFUND,
  startService,
  type TestService,
} from './service.ts'

const USUAL_PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Generous time limits for slow machines. */
export const SOON = { timeout: 15_000 }

/**
 * The Chromium of this machine. Without one the browser tests are skipped with a message, but CI must not pass without
 * them.
 */
export const browserPath = findBrowser()

function findBrowser(): string | undefined {
  const { CHROMIUM_PATH, CI } = process.env
  const path = (CHROMIUM_PATH ? [CHROMIUM_PATH] : USUAL_PATHS).find((candidate) => existsSync(candidate))
  if (path !== undefined) return path
  const missing = 'No Chromium: install the package chromium, or name one in CHROMIUM_PATH'
  if (CI === 'true') throw new Error(missing)
  console.warn(`${missing}. Skipped: the pay page in a real browser`)
  return undefined
}

export type OpenPage = Page & { faults: string[] }

export type Checkout = {
  service: TestService
  /** The URL at which customers reach the service: behind a proxy, under a path. */
  publicUrl: string
  storeUrl: string
  /** Every URL at which the merchant's store was visited. */
  visits: string[]
  newOrder: (fields?: Record<string, string>, merchant?: Parameters<typeof newMerchant>[1]) => Promise<Order>
  /** Closes all connections between customers and the service, like a restarting proxy. */
  cutConnections: () => void
  /** Leaves all connections open but delivers nothing more on them, like a mobile network. */
  loseResponses: () => void
  /** Creates a paid order of a new merchant with the given number of open ₹10 refunds: R1, R2 and so on. */
  newPaidOrder: (refunds: number) => Promise<{ order: Order; mid: string; key: Key }>
  pay: (orderId: string, changes?: Parameters<typeof notification>[1]) => Promise<void>
  /**
   * Opens a tab in its own context, whose `faults` lists script errors, console errors, policy violations and requests
   * to other origins.
   */
  openTab: (options?: BrowserContextOptions) => Promise<OpenPage>
}

export type Order = { orderId: string; payment_url: string }

let browser: Browser | undefined

/** Launches the browser shared by a test file, which takes a second. */
async function openBrowser(): Promise<Browser> {
  if (browser !== undefined) return browser
  const launched = await chromium.launch({ executablePath: browserPath as string, args: ARGUMENTS })
  stopAtEnd(() => {
    browser = undefined
    return launched.close()
  })
  browser = launched
  return launched
}

/**
 * Starts a service and a store for the tests of a describe block, in the browser of the test file. Closes each test's
 * tabs and fails if they had faults. `origins` lists other origins that tabs may request; a test file may fill it
 * later.
 */
export function useCheckout(options: { sandbox?: boolean; origins?: string[] } = {}): Checkout {
  const checkout = { visits: [] as string[] } as Checkout
  // Without a browser these tests are skipped.
  if (browserPath === undefined) return checkout
  let merchant: { mid: string; key: Key }
  let tabs: OpenPage[] = []
  const servers: Server[] = []

  beforeAll(async () => {
    const { visits } = checkout
    checkout.storeUrl = (
      await listen(servers, (storeRequest, response) => {
        visits.push(storeRequest.url ?? '')
        response.setHeader('content-type', 'text/html')
        response.end('<!doctype html><title>Shop</title><link rel="icon" href="data:,"><h1>Thank you</h1>')
      })
    ).url
    let target = ''
    const responses = new Set<IncomingMessage>()
    const front = await listen(servers, (incoming, response) => {
      const { method, headers, url = '' } = incoming
      const onward = request(target + url.replace(/^\/upi/, ''), { method: method as string, headers, agent: false })
      onward.on('response', (result) => {
        response.writeHead(result.statusCode ?? 502, result.headers)
        result.pipe(response)
        responses.add(result)
        result.once('close', () => responses.delete(result))
      })
      onward.on('error', () => response.destroy())
      response.on('close', () => onward.destroy())
      incoming.pipe(onward)
    })
    checkout.publicUrl = `${front.url}/upi`
    checkout.loseResponses = () => {
      for (const result of responses) result.unpipe().resume()
    }
    checkout.cutConnections = () => front.server.closeAllConnections()
    checkout.service = await startService({ ...options, publicUrl: checkout.publicUrl })
    target = await checkout.service.app.listen({ host: '127.0.0.1', port: 0 })
    merchant = await newMerchant(checkout.service.db)
  })
  afterAll(() => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })

  afterEach(async () => {
    const faults = tabs.flatMap((tab) => tab.faults)
    await Promise.all(tabs.map((tab) => tab.context().close()))
    tabs = []
    expect(faults).toEqual([])
  })

  checkout.newOrder = async (fields = {}, changes) => {
    const { db, app } = checkout.service
    const { mid, key } = changes ? await newMerchant(db, changes) : merchant
    const result = await post(app, ORDER, intentFields(mid, { redirect_url: checkout.storeUrl, ...fields }), key)
    expect(result.status).toBe(200)
    return result.body.data
  }
  checkout.pay = async (orderId, changes) => {
    expect((await notify(checkout.service, notification(orderId, changes))).status).toBe(200)
  }
  checkout.newPaidOrder = async (refunds) => {
    const { db, app, clock } = checkout.service
    const { mid } = await newMerchant(db)
    const key = await newKey(db, { mid }, RIGHTS)
    const order = (await post(app, ORDER, intentFields(mid, { redirect_url: checkout.storeUrl }), key)).body.data
    await checkout.pay(order.orderId)
    for (let number = 1; number <= refunds; number++) {
      clock.advance(0.001)
      const refund = { mid, order_id: order.orderId, refund_id: `R${number}`, amount: '10', note: 'Cold tea' }
      expect((await post(app, REFUND, refund, key)).status).toBe(200)
    }
    return { order, mid, key }
  }
  checkout.openTab = async (tabOptions = {}) => {
    const context = await (await openBrowser()).newContext({ viewport: { width: 1280, height: 900 }, ...tabOptions })
    const tab = Object.assign(await context.newPage(), { faults: [] as string[] })
    const own = [new URL(checkout.publicUrl).origin, new URL(checkout.storeUrl).origin, ...(options.origins ?? [])]
    tab.on('pageerror', (error) => tab.faults.push(`script: ${error.message}`))
    tab.on('dialog', (dialog) => {
      tab.faults.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    // Violations of the Content-Security-Policy are console errors too.
    tab.on('console', (message) => {
      if (message.type() === 'error') tab.faults.push(`console: ${message.text()} ${message.location().url}`)
    })
    context.on('request', (sent) => {
      const { protocol, origin } = new URL(sent.url())
      if (protocol !== 'data:' && !own.includes(origin)) tab.faults.push(`request to ${sent.url()}`)
    })
    tabs.push(tab)
    return tab
  }
  return checkout
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Returns the accessibility violations that axe finds; with `rules`, only of these rules. */
export async function violations(tab: OpenPage, rules?: string[]): Promise<string[]> {
  if (!(await tab.evaluate('"axe" in window'))) await tab.evaluate(`${AXE}; 0`)
  const options = JSON.stringify({ resultTypes: ['violations'], runOnly: rules })
  const found = await tab.evaluate(
    `axe.run('html', ${options}).then(({ violations }) =>
       violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`,
  )
  return found as string[]
}

/** Returns the violations in both colour schemes, which affect only the contrast. */
export async function violationsInBothColours(tab: OpenPage): Promise<string[]> {
  await tab.emulateMedia({ colorScheme: 'light' })
  const inLight = await violations(tab)
  await tab.emulateMedia({ colorScheme: 'dark' })
  return [...inLight, ...(await violations(tab, ['color-contrast']))]
}

async function listen(servers: Server[], result: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(result)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push(server)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
