import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { type Key, startService, type TestService } from '../support/service.ts'
import { CANARIES, makeOrders } from '../support/today-orders.ts'

const textOf = (page: string) =>
  page
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')

describe('the console’s page of today', () => {
  let service: TestService
  let created: Awaited<ReturnType<typeof makeOrders>>
  let site: TestConsole
  let key: Key
  beforeAll(async () => {
    service = await startService()
    created = await makeOrders(service)
    const today = { ...LIMITS.today, page: { cachedMs: 1, cachedKeys: 1 } }
    site = await createTestConsole(service, service.clock.now, {}, { ...LIMITS, today })
    key = await newOperatorKey(service.db, ['read'])
  })
  const page = async (path = '/') => (await site.get(path, key)).body

  it('the start page shows today’s orders in total and by hour, and what needs attention', async () => {
    const { status, body } = await site.get('/', key)
    const text = textOf(body)
    expect(status).toBe(200)
    expect(text).toContain('2026-03-31 10:30:00.')
    expect(text).toContain(
      'Orders 4 ₹797.00 Paid 2 ₹750.00 Conversion 66.6 % of orders with a final status Waiting 1 Failed 1 Expired 0 Cancelled 0',
    )
    expect(text).toContain('09:00 2 1 50.0 % ₹250.00 10:00 2 1 100.0 % ₹500.00')
    // One bar for each hour.
    expect(body.match(/<g><title>/g)).toHaveLength(24)
    expect(text).toContain('reconciliation 2026-03-27 to 2026-03-30 balances')
    expect(text).toContain(
      'Needs attention Today exceptions 1 open, ₹500.00: 1 for under 1 day; oldest: double payment',
    )
    expect(text).not.toMatch(/NaN|undefined|null/)
    expect(textOf(await page('/today'))).toBe(text)
    expect(body).toContain('>Exceptions <span class="count">1</span></a>')
    expect(body).not.toMatch(/>Refunds <span/)
  })

  it('the page of today links each subject to the page of its command, if the console offers the command', async () => {
    const offered = COMMANDS.filter(({ title, changes }) => title !== '' && !changes).map(({ name }) => name)
    expect(offered).toContain('payments exceptions')
    const body = await page()
    expect(body).toContain('<a href="payments-exceptions?open=on">exceptions</a>')
    for (const [, name = ''] of body.matchAll(/<dt><a href="([^"?]+)\?/g))
      expect(offered.map(pageOfCommand)).toContain(name)
  })

  it('the page of today lists the orders of each merchant on request', async () => {
    expect(await page()).not.toContain(created.mid)
    expect(textOf(await page('/today?by-merchant=on'))).toContain(`${created.mid} 4 2 1 1 0 0 66.6 % ₹797.00 ₹750.00`)
  })

  it('the page of today shows how many of today’s orders the fallback acquirer created, if any', async () => {
    expect(textOf(await page())).not.toContain('failover')
    await service.db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks, by_fallback)
       values ($1, $2, 'cashfree', '', $2, $2, 'upi://pay?pa=x@y', 0, true)`,
      [created.mid, created.paidTwice],
    )
    expect(textOf(await page())).toContain('failover 1 of today’s orders')
  })

  it('the page of today begins with what waits for a person, such as warnings and an unbalanced reconciliation', async () => {
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       values ($1, 'TOOMUCH', 120000, 'BRN', 'SUCCESS', '2026-03-30T06:00:00Z', '2026-03-30T06:00:00Z')`,
      [created.mid],
    )
    await openRefund('R0', '2026-03-31T04:00:00Z', 'setu')
    expect(textOf(await page())).toMatch(
      /Needs attention Now configuration Refunds at the acquirer setu are waiting: set SETU_CLIENT_ID.*reconciliation 2026-03-27 to 2026-03-30 does not balance: 1 discrepancy .* Today exceptions 1 open.*Orders created today.*Information/,
    )
    await service.db.query(`delete from settlements where utr = 'TOOMUCH'`)
    await service.db.query(`delete from refunds`)
  })

  it('the page of today shows the number of open refunds and the number of refunds older than T+5 days', async () => {
    await openRefund('R1', '2026-03-25T18:29:59Z')
    await openRefund('R2', '2026-03-25T18:30:00Z')
    const body = await page()
    expect(textOf(body)).toContain('Now refunds 2 open, ₹100.00; 1 older than T+5 days')
    expect(body).toContain('<a href="refunds-list?open=on">refunds</a>')
  })

  it('the page of today contains no customer data and no text from merchants', async () => {
    const body = await page('/today?by-merchant=on')
    for (const canary of Object.values(CANARIES)) expect(body.toLowerCase()).not.toContain(canary.toLowerCase())
    expect(body.toLowerCase()).not.toContain('canary')
  })

  it('the page of today has no inline script or style, and loads nothing from other origins', async () => {
    const { headers, body } = await site.get('/', key)
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self'; img-src data:;/)
    expect(headers['cache-control']).toBe('no-store')
    expect(body).not.toMatch(/<script|<style| style=| on\w+=|<iframe|http-equiv/)
  })

  it('the page of today refreshes every 30 s unless refresh is off, and no other page refreshes', async () => {
    expect((await site.get('/', key)).headers.refresh).toBe('30')
    const still = await site.get('/today?by-merchant=on&refresh=off', key)
    expect([still.status, still.headers.refresh]).toEqual([200, undefined])
    expect(still.body).toContain('<a href="today?by-merchant=on">Refresh automatically</a>')
    expect((await site.get('/refunds-list', key)).headers.refresh).toBeUndefined()
  })

  it('the console reads the page of today once in 10 s for all operators', async () => {
    let now = service.clock.now()
    const popular = await createTestConsole(service, () => now)
    const timeOf = async (one: Key) => /[\d:]{8}(?=\. This)/.exec((await popular.get('/', one)).body)?.[0]
    expect(await timeOf(key)).toBe('10:30:00')
    now = new Date(now.getTime() + 9_000)
    expect(await timeOf(await newOperatorKey(service.db))).toBe('10:30:00')
  })

  it('the console never watches, because a page ends', async () => {
    const { status, body } = await site.get('/today?watch=on', key)
    expect([status, textOf(body)]).toEqual([200, expect.stringContaining('Orders 4 ')])
  })

  it('without the database, a page is 503 and is loaded again, and a form is not sent again', async () => {
    const databaseUrl = 'postgres://nobody@127.0.0.1:1/nowhere'
    const away = await createTestConsole({ databaseUrl }, service.clock.now)
    const shown = await away.get('/', key)
    expect([shown.status, shown.headers.refresh]).toEqual([503, '30'])
    expect(textOf(shown.body)).toContain('The console is unavailable. Try again in 30 seconds.')
    const sent = await away.post('/refunds-create', {}, key)
    expect([sent.status, sent.headers.refresh]).toEqual([503, undefined])
  })

  it('the page of today names the command that migrates an unmigrated database', async () => {
    await service.db.query('alter table payment_resolutions rename to elsewhere')
    const behind = await site.get('/', key)
    await service.db.query('alter table elsewhere rename to payment_resolutions')
    expect(textOf(behind.body)).toContain('the database is not migrated: run ops migrate')
    expect(behind.body).not.toContain('payment_resolutions')
    expect((await site.get('/', key)).status).toBe(200)
  })

  it('the page of today escapes markup from the database', async () => {
    await service.db.query(
      `insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated)
       values (1, $1, 'x', '<script>alert(1)</script>.csv', '', 1, 0, 0)`,
      [service.clock.now()],
    )
    const body = await page()
    expect(body).not.toContain('<script')
    expect(textOf(body)).toContain('.csv imported 0 s ago')
  })

  const openRefund = (id: string, at: string, acquirer = 'direct') =>
    service.db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status)
       select mid, $2, $2, order_id, utr, 5000, 'Canarynote 78', $4, 'merchant', $3, 'PENDING'
         from payments where order_id = $1 and kind = 'first'`,
      [created.paidTwice, id, at, acquirer],
    )
})

const pageOfCommand = (name: string) => name.replaceAll(' ', '-')
