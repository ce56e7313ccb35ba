import { beforeAll, describe, expect, it } from 'vitest'
import { browserPath, useCheckout, violations } from '../support/browser.ts'
import { createTestConsole, newOperatorKey } from '../support/console.ts'
import { type Key, newMerchant } from '../support/service.ts'
import { makeOrders } from '../support/today-orders.ts'

/** For a busy machine. On an idle one, each test takes a few seconds. */
const SLOW_MS = 240_000

const SCREENS = [
  { width: 320, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 1280, colorScheme: 'dark' },
  { width: 1920, colorScheme: 'light' },
] as const

describe.runIf(browserPath)('the console’s page of today in a browser', () => {
  const origins: string[] = []
  const checkout = useCheckout({ origins })
  let key: Key
  let url: string
  beforeAll(async () => {
    const { service } = checkout
    await makeOrders(service)
    await service.db.query(
      `insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at, failing_since)
       select mid, 'ep_0123456789abcdef', 'webhook', 'https://canaryhook.example/', '\\x00', now(), $1 from merchants`,
      [new Date(service.clock.now().getTime() - 16 * 60_000)],
    )
    // The longest kind and the longest mid.
    const { mid } = await newMerchant(service.db, { mid: 'M'.repeat(64) })
    await service.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       values ($1, $2, 'refunded above what was paid', 'U1', 49999999, 'SUCCESS', $3)`,
      [mid, '0'.repeat(32), service.clock.now()],
    )
    key = await newOperatorKey(service.db)
    url = await (await createTestConsole(service, service.clock.now)).app.listen({ host: '127.0.0.1', port: 0 })
    origins.push(url)
  })
  const signedIn = () => ({ httpCredentials: { username: key.publicKey, password: key.secretKey } })

  it.each(SCREENS)(
    'the page of today fits $width pixels without axe violations in $colorScheme mode',
    { timeout: SLOW_MS },
    async ({ width, colorScheme }) => {
      const tab = await checkout.openTab({ ...signedIn(), viewport: { width, height: 844 }, colorScheme })
      await tab.goto(`${url}/today?by-merchant=on&refresh=off`)
      await tab.evaluate('for (const folded of document.querySelectorAll("details")) folded.open = true')
      expect(await tab.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      expect(await violations(tab)).toEqual([])
      const plot = await tab.getByRole('img', { name: /^Today’s orders by hour/ }).boundingBox()
      expect([plot?.height, (plot?.width ?? 0) > Math.min(width, 1280) / 3]).toEqual([144, true])
      const topOf = async (name: string) => (await tab.getByRole('region', { name, exact: true }).boundingBox())?.y ?? 0
      expect(await topOf('Needs attention')).toBeLessThan(await topOf('Orders created today'))
    },
  )

  it('the page of today leads to the open exceptions without JavaScript', { timeout: SLOW_MS }, async () => {
    const tab = await checkout.openTab({ ...signedIn(), javaScriptEnabled: false })
    await tab.goto(url)
    await tab.getByText('Show as a table').click()
    expect(await tab.getByRole('row', { name: /^09:00 2 1 50\.0 % ₹250\.00$/ }).isVisible()).toBe(true)
    await tab.getByRole('region', { name: 'Needs attention' }).getByRole('link', { name: 'exceptions' }).click()
    await tab.getByRole('cell', { name: 'refunded above what was paid' }).waitFor()
  })
})
