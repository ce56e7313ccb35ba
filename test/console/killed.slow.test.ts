import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { asRole } from '../support/database-url.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { ROOT, startReading } from '../support/processes.ts'
import { newMerchant } from '../support/service.ts'
import { basic, type Key } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

/** Seconds after a confirmation at which the console is killed; `all` is each second until the change has ended. */
const KILLED_AFTER = process.env.KILLED_AFTER ?? '1'
const MOST_SECONDS = 40
const seconds =
  KILLED_AFTER === 'all' ? Array.from({ length: MOST_SECONDS }, (_, at) => at + 1) : KILLED_AFTER.split(' ').map(Number)

let url: string
let db: Database
let key: Key
let mid: string
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  key = await newOperatorKey(db)
  ;({ mid } = await newMerchant(db))
})

/** Starts a console as a process of its own, which `kill` ends without notice. */
async function startConsole() {
  const env = { ...process.env, CONSOLE_DATABASE_URL: asRole(url, 'upi_console'), CONSOLE_PORT: '0' }
  const program = ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'console']
  const { child, said } = startReading(process.execPath, program, { cwd: ROOT, env })
  await until('the console listens', () => /address +http/.test(said()))
  const { origin } = new URL(/address +(\S+)/.exec(said())?.[1] as string)
  const headers = { authorization: basic(key), origin }
  const read = async (response: Response) => {
    const body = await response.text()
    const form = body.split('<form class="change"').at(-1) ?? ''
    const hidden = form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)
    const unescaped = (value: string) => value.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    return {
      location: response.headers.get('location') ?? '',
      isProgress: response.headers.has('refresh'),
      text: body.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' '),
      fields: Object.fromEntries([...hidden].map(([, name = '', value = '']) => [name, unescaped(value)])),
    }
  }
  return {
    get: async (path: string) => read(await fetch(`${origin}/${path}`, { headers, redirect: 'manual' })),
    post: async (path: string, fields: Record<string, string | Blob>) => {
      const body = new FormData()
      for (const [name, value] of Object.entries(fields)) body.append(name, value)
      const sent = Object.values(fields).some((one) => typeof one === 'object')
        ? body
        : new URLSearchParams(fields as Record<string, string>)
      return read(await fetch(`${origin}/${path}`, { method: 'POST', headers, body: sent, redirect: 'manual' }))
    },
    async kill() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/**
 * Confirms a change and kills the console after some seconds. Returns whether the change had ended before, and the page of
 * the change on the next console.
 */
async function confirmAndKill(path: string, fields: Record<string, string | Blob>, after: number) {
  const console = await startConsole()
  let page = await console.post(path, fields)
  const preview = page.location
  while (page.isProgress || page.location === preview) page = await console.get(preview)
  expect(page.fields.change, page.text).toBeDefined()
  const { location } = await console.post(path, page.fields)
  await sleep(after * 1_000)
  const hasEnded = !(await console.get(location)).isProgress
  await console.kill()
  const next = await startConsole()
  const { text } = await next.get(location)
  await next.kill()
  return { hasEnded, text }
}

const count = async (sql: string) => Number((await db.query(sql)).rows[0].count)
const yesterday = () => addDays(toIstDay(new Date()), -1)

it('an import of settlements by a console that is killed is stored whole or not at all, and the next page says which', {
  timeout: 3_600_000,
}, async () => {
  const rows = 60_000
  let number = 0
  const states = new Set<boolean>()
  for (const after of seconds) {
    number += 1
    const lines = Array.from(
      { length: rows },
      (_, row) => `${mid},1.00,K${number}N${row},BRN,SUCCESS,${yesterday()} 10:00:00\n`,
    )
    const file = new File(['mid,amount,utr,bank_reference_number,status,initiation_date\n', ...lines], 'day.csv')
    const { hasEnded, text } = await confirmAndKill('settlements-import', { file, back: 'settlements-imports' }, after)
    const stored = await count(`select count(*) from settlements where utr like 'K${number}N%'`)
    expect([0, rows], `after ${after} s`).toContain(stored)
    expect(text).toContain(stored === rows ? 'is stored: ' : 'ended without a result: nothing was stored. Repeat it.')
    states.add(stored === rows)
    if (hasEnded) break
  }
  if (KILLED_AFTER === 'all') expect(states).toEqual(new Set([false, true]))
})

it('a close by a console that is killed is stored whole or not at all, and the next page says which', {
  timeout: 3_600_000,
}, async () => {
  await storePaidOrder(db, { mid, utr: 'CLOSED1', paidAt: new Date('2026-01-10T12:00:00+05:30') })
  let year = 2025
  const states = new Set<boolean>()
  for (const after of seconds) {
    const month = `${year}-${String(12 - states.size).padStart(2, '0')}`
    const { hasEnded, text } = await confirmAndKill('reconcile-close', { month, back: 'reconcile-closed' }, after)
    const stored = await count(`select count(*) from closed_months where month = '${month}'`)
    expect(text).toContain(stored === 1 ? 'is stored: ' : 'ended without a result: nothing was stored. Repeat it.')
    states.add(stored === 1)
    if (stored === 1) year -= 1
    if (hasEnded) break
  }
  if (KILLED_AFTER === 'all') expect(states).toEqual(new Set([false, true]))
})

it('a daily transaction report by a console that is killed is stored in part, each line once, and the same file completes it', {
  timeout: 3_600_000,
}, async () => {
  const rows = 8_000
  let number = 0
  for (const after of seconds) {
    number += 1
    const prefix = `5${String(number).padStart(3, '0')}`
    const { rows: orders } = await db.query<{ id: string }>(
      `insert into payment_intents
         (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
          payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       select $1, id, id, 20000, 'https://shop.example.in', 'Order', '', '', '',
              'chaipoint@examplebank', 'Chai Point', '5814', now() - interval '1 minute', now() + interval '1 hour'
         from generate_series(1, $2::integer) i, lateral (select lpad($3 || to_hex(i), 32, '0') as id) ids
       returning order_id as id`,
      [mid, rows, `${prefix}a`],
    )
    const lines = orders.map(
      ({ id }, at) => `${id},SUCCESS,${prefix}${String(at).padStart(8, '0')},200.00,${new Date().toISOString()}\n`,
    )
    const file = () => new File(['order_id,status,utr,amount,paid_at\n', ...lines], 'day.csv')
    const { hasEnded, text } = await confirmAndKill('payments-import', { file: file(), back: 'payments-list' }, after)
    const stored = `select count(*) from payments where utr like '${prefix}%'`
    const before = await count(stored)
    const paid = `select count(*) from payment_intents where status = 'SUCCESS' and utr like '${prefix}%'`
    expect(await count(paid)).toBe(before)
    expect(text).toContain(hasEnded ? 'is stored: ' : 'may be stored in part. Repeat it with the same file')
    const console = await startConsole()
    let page = await console.post('payments-import', { file: file(), back: 'payments-list' })
    const preview = page.location
    while (page.isProgress || page.location === preview) page = await console.get(preview)
    expect(page.text).toContain(`recorded ${rows - before} unchanged ${before} `)
    const { location } = await console.post('payments-import', page.fields)
    while ((await console.get(location)).isProgress) await sleep(100)
    await console.kill()
    expect([await count(stored), await count(paid)]).toEqual([rows, rows])
    if (hasEnded) break
  }
})
