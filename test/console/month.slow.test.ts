import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { newUtr } from '../support/acquirer.ts'
import { bankOn, newReference } from '../support/bank-statements.ts'
import { browserPath } from '../support/browser.ts'
import { createTestConsole, newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'

const NOW = new Date('2026-08-05T09:00:00+05:30')
const MOST_CLICKS = 25

describe.skipIf(browserPath === undefined)('the month of an operator without a shell', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath as string, args: ['--no-sandbox'] })
  })
  afterAll(() => browser?.close())

  it(`two files, a missing payout, a wrong credit, the close and the journal take at most ${MOST_CLICKS} clicks`, async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW })
    onTestFinished(() => void vi.useRealTimers())
    const { url, db } = await createTestDatabase()
    const { json } = opsOn(() => url)
    const { mid } = await newMerchant(db)
    await bankOn(() => url).layout('hdfc', 'day=Date', 'reference=Text', 'amount=Credit', 'balance=Balance')
    const [arrived, missing, misnamed] = [newReference(), newReference(), newReference()]
    const utrs = await Promise.all(
      [13, 14, 15].map(async (day) => {
        const utr = newUtr()
        await storePaidOrder(db, { mid, utr, rupees: day * 100, paidAt: new Date(`2026-07-${day - 1}T12:00:00+05:30`) })
        return utr
      }),
    )
    const lines = [arrived, missing, misnamed].map(
      (reference, index) =>
        `${mid},${index + 12}96.46,3.00,0.54,${utrs[index]},${reference},SUCCESS,2026-07-${index + 13} 09:00:00\n`,
    )
    const settlements = `mid,amount,fee,tax,utr,bank_reference_number,status,initiation_date\n${lines.join('')}`
    const statement = [
      'Date,Text,Credit,Balance',
      '01/07/2026,INTEREST,1.00,1.00',
      `13/07/2026,NEFT ${arrived},1296.46,1297.46`,
      '15/07/2026,NEFT,1496.46,2793.92',
      '31/07/2026,INTEREST,1.00,2794.92',
      '',
    ].join('\n')
    const site = await createTestConsole({ databaseUrl: url })
    await site.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = site.app.server.address() as AddressInfo
    const { publicKey: username, secretKey: password } = await newOperatorKey(db)
    const context = await browser.newContext({ httpCredentials: { username, password }, acceptDownloads: true })
    const page = await context.newPage()
    const began = performance.now()
    await page.goto(`http://localhost:${port}/`)
    const user = operatorAt(page)

    await importSettlements(user, settlements)
    await importStatement(user, statement)
    await settlePayouts(user, { missing, misnamed })

    await user.click('nav a:text-is("Closed months")')
    await user.click('a:text-is("Close month…")')
    await user.click('button:text-is("Continue…")')
    await user.click('form.change button')
    await user.sees('2026-07 closed by asha')

    await user.click('nav a:text-is("Journal")')
    const [download] = await Promise.all([page.waitForEvent('download'), user.click('a:text-is("CSV of all rows")')])
    expect(await download.failure()).toBeNull()
    const { clicks, typed } = user.done()
    console.log(`${clicks} clicks, ${((performance.now() - began) / 1_000).toFixed(1)} s, typed: ${typed.join(' | ')}`)
    expect(clicks).toBeLessThanOrEqual(MOST_CLICKS)
    expect(typed).toEqual(['the bank pays it in August', 'the bank printed no reference'])
    expect(await json('reconcile', 'closed')).toMatchObject([{ month: '2026-07', closedBy: 'asha', changed: [] }])
    const { payouts } = await json('reconcile', 'payouts', '--month', '2026-07', '--mid', mid)
    expect(payouts.map(({ arrival, resolution }: Record<string, string>) => [arrival, resolution])).toEqual([
      ['arrived', null],
      ['not arrived', 'the bank pays it in August'],
      ['arrived', null],
    ])
  })
})

/** Counts what an operator does on pages. */
function operatorAt(page: Page) {
  let clicks = 0
  const typed: string[] = []
  return {
    async click(selector: string) {
      clicks += 1
      await page.click(selector)
      await page.waitForLoadState()
    },
    /** Chooses a file of the operator's machine. */
    async choose(name: string, text: string) {
      clicks += 1
      await page.setInputFiles('input[type=file]', { name, mimeType: 'text/csv', buffer: Buffer.from(text) })
    },
    /** Selects a value that the page offers: one click opens the list, one selects. */
    async select(name: string, value: string) {
      clicks += 2
      const offered = await page
        .locator(`datalist#${name}-choices option`)
        .evaluateAll((all) => all.map((one) => one.getAttribute('value')))
      expect(offered).toContain(value)
      await page.fill(`[name=${name}]`, value)
    },
    /** Types into the input that has the focus. */
    async types(text: string) {
      await page.locator('form.change input:focus').waitFor()
      typed.push(text)
      await page.keyboard.type(text)
    },
    async sees(text: string) {
      await page.locator('main', { hasText: text }).waitFor({ timeout: 5_000 })
    },
    done: () => ({ clicks, typed }),
  }
}

type Operator = ReturnType<typeof operatorAt>

async function importSettlements(user: Operator, settlements: string) {
  await user.click('nav a:text-is("Settlements")')
  await user.click('a:text-is("Import settlements…")')
  await user.choose('day.csv', settlements)
  await user.click('button:text-is("Continue…")')
  await user.click('form.change button')
  await user.sees('3 inserted')
}

async function importStatement(user: Operator, statement: string) {
  await user.click('nav a:text-is("Bank statements")')
  await user.click('a:text-is("Import bank statement…")')
  await user.choose('bank.csv', statement)
  await user.select('month', '2026-07')
  await user.click('button:text-is("Continue…")')
  await user.click('form.change button')
  await user.sees('covers 2026-07-02 to 2026-07-30')
}

/** Resolves the payout that did not arrive, and matches the one whose statement line names no reference. */
async function settlePayouts(user: Operator, { missing, misnamed }: { missing: string; misnamed: string }) {
  await user.click('nav a:text-is("Payouts")')
  await user.click(`tr:has-text("${missing}") a:text-is("Resolve…")`)
  await user.types('the bank pays it in August')
  await user.click('button:text-is("Continue…")')
  await user.click('form.change button')

  await user.click(`tr:has-text("${misnamed}") a:has-text("Match statement")`)
  await user.types('the bank printed no reference')
  await user.click('button:text-is("Continue…")')
  await user.click('form.change button')
}
