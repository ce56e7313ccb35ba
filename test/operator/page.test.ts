import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { CANARIES, makeOrders, startPage, UNCACHED } from '../support/operator-page.ts'
import { startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const textOf = (page: string) =>
  page
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')

describe('the operator dashboard', () => {
  let service: TestService
  let created: Awaited<ReturnType<typeof makeOrders>>
  let operators: FastifyInstance
  beforeAll(async () => {
    service = await startService()
    created = await makeOrders(service)
    operators = await startPage(service)
    await until('all is counted', async () => !(await operators.inject('/')).body.includes('not counted yet'))
  })
  afterAll(() => operators.close())

  it('the operator dashboard shows today’s orders by hour, the last 30 days and open exceptions', async () => {
    const { statusCode, body } = await operators.inject('/')
    const text = textOf(body)
    expect(statusCode).toBe(200)
    expect(text).toContain('2026-03-31 10:30:00 IST.')
    expect(text).toContain(
      'Orders 4 ₹797 Paid 2 ₹750 Conversion 66.6 % of orders with a final status Waiting 1 Failed 1 Expired 0 Cancelled 0',
    )
    const rowOf = (name: string) => new RegExp(`<tr><th scope="row">${name}</th>(.*)</tr>`).exec(body)?.[1]
    const cells = (...values: string[]) => values.map((value) => `<td>${value}</td>`).join('')
    expect(rowOf('09:00')).toBe(cells('2', '1', '50.0 %', '₹250'))
    expect(rowOf('10:00')).toBe(cells('2', '1', '100.0 %', '₹500'))
    expect(rowOf('08:00')).toBe(cells('0', '0', '–', '₹0'))
    expect(rowOf('11:00')).toBeUndefined()
    expect(rowOf('2026-03-05')).toBe(cells('1', '0', '–', '₹0'))
    expect(rowOf('2026-03-30')).toBe(cells('1', '1', '100.0 %', '₹1,000'))
    expect(rowOf('2026-03-31')).toBe(cells('4', '2', '66.6 %', '₹750'))
    expect(rowOf('2026-03-02')).toBe(cells('0', '0', '–', '₹0'))
    expect(rowOf('2026-03-01')).toBeUndefined()
    // One bar for each of 30 days and of the 11 hours so far.
    expect(body.match(/<g><title>/g)).toHaveLength(30 + 11)
    expect(text).toContain('Reconciliation 2026-03-27 to 2026-03-30 balances')
    expect(text).toContain('Exceptions: 1 open, ₹500.00 1 for under 1 day.')
    expect(text).toContain(`double payment ${created.mid} ${created.paidTwice} ₹500.00 0 s`)
    expect(text).not.toMatch(/NaN|undefined|null|Counting orders/)
  })

  it('the operator dashboard shows how many of today’s orders the fallback acquirer created, if any', async () => {
    expect(textOf((await operators.inject('/')).body)).not.toContain('fallback acquirer')
    await service.db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks, by_fallback)
       values ($1, $2, 'cashfree', '', $2, $2, 'upi://pay?pa=x@y', 0, true)`,
      [created.mid, created.paidTwice],
    )
    await until('the page is made anew', async () =>
      textOf((await operators.inject('/')).body).includes('Created by fallback acquirer 1 of today’s orders'),
    )
  })

  it('the operator dashboard begins with warnings, an unbalanced reconciliation and open exceptions', async () => {
    const warning = 'Refunds at the acquirer setu are waiting: set <SETU_CLIENT_ID>'
    const warned = await startPage(service, UNCACHED, [warning])
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       values ($1, 'TOOMUCH', 120000, 'BRN', 'SUCCESS', '2026-03-30T06:00:00Z', '2026-03-30T06:00:00Z')`,
      [created.mid],
    )
    const text = async () => textOf((await warned.inject('/')).body)
    await until('the books are compared', async () => (await text()).includes('does not balance'))
    expect(await text()).toMatch(
      /Needs attention Refunds at the acquirer setu are waiting: set <SETU_CLIENT_ID> Reconciliation: 2026-03-27 to 2026-03-30 does not balance: 1 discrepancy .*Exceptions: 1 open.*Orders created today.*Last 30 days/,
    )
    await service.db.query(`delete from settlements where utr = 'TOOMUCH'`)
    await warned.close()
  })

  it('the operator dashboard shows the number of open refunds and the number of refunds older than T+5 days', async () => {
    await service.db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status)
       select mid, id, id, order_id, utr, 5000, 'Canarynote 78', 'direct', 'merchant', at::timestamptz, 'PENDING'
         from payments, (values ('R1', '2026-03-25T18:29:59Z'), ('R2', '2026-03-25T18:30:00Z')) as made (id, at)
        where order_id = $1 and kind = 'first'`,
      [created.paidTwice],
    )
    const { body } = await operators.inject('/')
    expect(textOf(body)).toContain('Refunds: 2 open, ₹100; 1 older than T+5 days')
    expect(body).toMatch(/<code>R1<\/code>[\s\S]*<code>R2<\/code>/)
  })

  it('the operator dashboard contains no customer data and no text from merchants', async () => {
    const { body } = await operators.inject('/')
    for (const canary of Object.values(CANARIES)) expect(body.toLowerCase()).not.toContain(canary.toLowerCase())
    expect(body.toLowerCase()).not.toContain('canary')
  })

  it('the operator dashboard has no inline script or style, loads nothing from other origins, and is not cached', async () => {
    const { headers, body } = await operators.inject('/')
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    expect(body).not.toMatch(/<script|<style| style=| on\w+=|<form|<iframe|http-equiv/)
  })

  it('the operator dashboard refreshes every 30 s unless ?refresh=off is set', async () => {
    expect((await operators.inject('/')).headers.refresh).toBe('30')
    const still = await operators.inject('/?refresh=off')
    expect([still.statusCode, still.headers.refresh]).toEqual([200, undefined])
    expect(still.body).toContain('<a href=".">Refresh automatically</a>')
  })

  it('the operator dashboard rejects other machines and other Hosts with 403 and instructions', async () => {
    const errors = [
      await operators.inject({ url: '/', remoteAddress: '172.18.0.9' }),
      await operators.inject({ url: '/', headers: { host: 'rebind.evil.example:3001' } }),
    ]
    for (const rejected of errors) {
      expect([rejected.statusCode, rejected.headers.refresh]).toEqual([403, undefined])
      expect(textOf(rejected.body)).toContain(
        'open an SSH tunnel such as ssh -L 3001:127.0.0.1:3001, or set OPS_PASSWORD or OPS_ALLOWED_HOSTS',
      )
      expect(rejected.body).not.toContain(created.mid)
    }
  })

  it('the operator dashboard shows gaps for days that are not counted yet, and refreshes sooner', async () => {
    const operatorPage = { ...LIMITS.operatorPage, waitMs: 0 }
    const hurried = await startPage(service, { ...UNCACHED, operatorPage })
    const first = await hurried.inject('/')
    expect([first.statusCode, first.headers.refresh]).toEqual([200, '3'])
    expect(first.body).toContain('Counting orders.')
    expect(first.body).toContain('<tr><th scope="row">2026-03-30</th><td>not counted yet</td>')
    const isWhole = async () => !(await hurried.inject('/')).body.includes('not counted yet')
    await until('all is counted', isWhole)
    expect((await hurried.inject('/')).headers.refresh).toBe('30')
    await hurried.close()
  })

  it('the operator dashboard reports missing counts and leaves no query running in a blocked database', async () => {
    const operatorDatabase = { ...LIMITS.operatorDatabase, statementTimeoutMs: 50 }
    const operatorPage = { ...LIMITS.operatorPage, waitMs: 30_000 }
    const blocked = await startPage(service, { ...UNCACHED, operatorDatabase, operatorPage })
    const locker = await service.db.connect()
    await locker.query('begin; lock table payments, payment_intents')
    const first = await blocked.inject('/')
    expect([first.statusCode, first.headers.refresh]).toEqual([200, '30'])
    expect(textOf(first.body)).toContain(
      'The database could not count the missing figures. The service retries in 30 seconds',
    )
    expect(textOf((await blocked.inject('/')).body)).toContain('Reconciliation not available yet: run ops reconcile')
    const { rows } = await locker.query(
      `select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like any (array['%h.next%', '%read_days%'])`,
    )
    await locker.query('rollback')
    locker.release()
    expect(rows).toEqual([])
    await blocked.close()
  })

  it('the service renders the operator dashboard once per second for all readers', async () => {
    const popular = await startPage(service, LIMITS)
    const read = async () => popular.inject('/')
    const all = await Promise.all(Array.from({ length: 100 }, read))
    expect(all.map(({ statusCode }) => statusCode)).toEqual(Array(100).fill(200))
    expect(new Set(all.map(({ body }) => body)).size).toBe(1)
    // The page without refresh is rendered separately.
    expect((await popular.inject('/?refresh=off')).headers.refresh).toBeUndefined()
    expect((await read()).headers.refresh).toBeDefined()
    await popular.close()
  })

  it('the operator dashboard reports an unavailable or unmigrated database without PostgreSQL’s error text', async () => {
    const waiting = await startPage({ ...service, databaseUrl: 'postgres://nobody@127.0.0.1:1/nowhere' })
    const away = await waiting.inject('/')
    await waiting.close()
    await service.db.query('alter table payment_resolutions rename to elsewhere')
    const behind = await operators.inject('/')
    await service.db.query('alter table elsewhere rename to payment_resolutions')
    for (const { statusCode, headers } of [away, behind]) expect([statusCode, headers.refresh]).toEqual([503, '30'])
    expect(textOf(away.body)).toContain('The database is unavailable')
    expect(textOf(behind.body)).toContain(
      'The database is not migrated A table or column that this version reads is missing. Run "ops migrate".',
    )
    expect(behind.body).not.toContain('payment_resolutions')
    expect((await operators.inject('/')).statusCode).toBe(200)
  })

  it('the operator dashboard escapes markup from the database', async () => {
    await service.db.query(
      `insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated)
       values (1, $1, 'x', '<script>alert(1)</script>.csv', '', 1, 0, 0)`,
      [service.clock.now()],
    )
    const { body } = await operators.inject('/')
    expect(body).not.toContain('<script')
    expect(textOf(body)).toContain('.csv imported 0 s ago')
  })
})
