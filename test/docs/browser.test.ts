import { describe, expect, it } from 'vitest'
import { browserPath, type OpenPage, SOON, useCheckout } from '../checkout/browser.ts'
import { DOCUMENT } from '../support/openapi.ts'
import { newMerchant } from '../support/service.ts'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

describe.runIf(browserPath)('the docs page, in a real browser, behind a proxy under a path', () => {
  const checkout = useCheckout()

  const block = (tab: OpenPage, operation: string) => tab.locator(`.opblock[id$="-${operation}"]`)

  async function open(tab: OpenPage, ...operations: string[]) {
    await tab.goto(`${checkout.publicUrl}/docs`)
    for (const operation of operations) {
      await block(tab, operation).locator('.opblock-summary-control').click()
      await block(tab, operation).locator('.responses-table').first().waitFor(SOON)
    }
  }

  async function authorize(tab: OpenPage, { publicKey, secretKey }: { publicKey: string; secretKey: string }) {
    await tab.getByRole('button', { name: 'Authorize' }).click()
    const basic = tab.locator('.auth-container', { hasText: 'basic' })
    await basic.getByLabel('username').fill(publicKey)
    await basic.getByLabel('password').fill(secretKey)
    await basic.getByRole('button', { name: 'Apply credentials' }).click()
    await tab.getByRole('button', { name: 'Close' }).first().click()
  }

  // That nothing foreign is asked for and no policy is broken is held by useCheckout, for every tab.
  it('creates a payment intent out of what it has filled in, given credentials', async () => {
    const { key } = await newMerchant(checkout.service.db, { mid: 'DEMO_MERCHANT' })
    const tab = await checkout.openTab(PHONE)
    await open(tab, 'createPaymentIntent')
    await authorize(tab, key)
    const operation = block(tab, 'createPaymentIntent')
    expect(await operation.getByPlaceholder('order_id').inputValue()).toBe('')
    for (const type of ['application/x-www-form-urlencoded', 'application/json']) {
      await operation.getByLabel('Request content type').selectOption(type)
      await operation.getByRole('button', { name: 'Execute' }).click()
      const answer = operation.locator('.live-responses-table .response')
      await answer.locator('.response-col_status', { hasText: '200' }).waitFor(SOON)
      expect(await answer.textContent()).toContain('"msg": "Payment intent created successfully"')
      await operation.getByRole('button', { name: 'Clear' }).click()
    }
  })

  it.each([390, 320, 1280])('is nowhere wider than a screen of %i pixels, with every operation open', async (width) => {
    const tab = await checkout.openTab({ viewport: { width, height: 844 } })
    const methods: Record<string, object>[] = Object.values(DOCUMENT.paths)
    const operations = methods.flatMap((byMethod) => Object.values(byMethod))
    const names = operations.flatMap((operation) => ('operationId' in operation ? [String(operation.operationId)] : []))
    expect(names.length).toBeGreaterThan(9)
    await open(tab, ...names)
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(await tab.getByText('No links').first().isVisible()).toBe(false)
  })
})
