import { get as httpGet, type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, form, intentFields, type Key, LIST, newMerchant, newPartner } from '../support/service.ts'

const ROWS = 300_000
/** Settlements at one per second from 05:30 IST on the first of two days. */
const ROWS_OF_TWO_DAYS = 152_999

let db: Database
let server: ServerProcess
type Partner = { pid: string; key: Key }

let partners: Partner[]
let merchant: { mid: string; key: Key }
beforeAll(async () => {
  const database = await createTestDatabase()
  db = database.db
  server = await startServerProcess(database.url)
  merchant = await newMerchant(db)
  const { mid } = merchant
  partners = await Promise.all(Array.from({ length: 4 }, () => newPartner(db, mid)))
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, to_char(i, 'FM000000000000'), i, 'BRN' || i, 'SUCCESS',
            timestamptz '2025-01-01 00:00:00Z' + i * interval '1 second', timestamptz '2026-01-01 00:00:00Z'
       from generate_series(1, ${ROWS}) as i`,
    [mid],
  )
  await db.query('vacuum analyze settlements')
}, 120_000)
afterAll(async () => {
  await server.stop()
})

const listFields = ({ pid }: Partner, days = { s_date: '01-01-2020', e_date: '31-12-2029' }) =>
  form({ pid, mid: merchant.mid, ...days })

/** Requests the list, by default all of it, and returns the response before its body is read. */
function requestList(
  days?: { s_date: string; e_date: string },
  partner = partners[0] as Partner,
): Promise<IncomingMessage> {
  return send(LIST, partner.key, listFields(partner, days))
}

function send(path: string, key: Key, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request(`${server.url}${path}`, {
      method: 'POST',
      headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
    })
    call.on('error', reject).on('response', resolve).end(body)
  })
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return text
}

async function connectionsThatCopy(): Promise<number> {
  const { rows } = await db.query(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and query ~* '^\\s*copy'
      and state <> 'idle' and pid <> pg_backend_pid()`,
  )
  return rows[0].n
}

describe('a long settlement list', () => {
  // `npm run bench -- list` measures its memory.
  it('streams a long settlement list as complete and valid JSON', { timeout: 120_000 }, async () => {
    const { status, msg, data } = JSON.parse(await readAll(await requestList()))
    expect([status, msg, data.length]).toEqual([true, 'Settlements found', ROWS])
    expect([data[0].UTR, data.at(-1).UTR]).toEqual(['000000000001', '000000300000'])
  })

  it('streams four long settlement lists completely and concurrently while payments continue', async () => {
    let reading = true
    const twoDays = { s_date: '01-01-2025', e_date: '02-01-2025' }
    const lists = Promise.all(partners.map(async (partner) => readAll(await requestList(twoDays, partner)))).finally(
      () => {
        reading = false
      },
    )
    const payments = new Set<number | undefined>()
    while (reading) {
      const payment = await send(CREATE, merchant.key, form(intentFields(merchant.mid)))
      payments.add(payment.statusCode)
      payment.resume()
    }
    for (const text of await lists) expect(JSON.parse(text).data).toHaveLength(ROWS_OF_TWO_DAYS)
    expect(payments).toEqual(new Set([200]))
  }, 120_000)

  it('frees the connection of a long settlement list when the client disconnects before the first byte', async () => {
    const partner = partners[0] as Partner
    for (let i = 0; i < 10; i++) {
      const call = request(`${server.url}${LIST}`, {
        method: 'POST',
        headers: { authorization: basic(partner.key), 'content-type': 'application/x-www-form-urlencoded' },
      })
      call.on('error', () => {}).end(listFields(partner))
      await sleep(i)
      call.destroy()
    }
    await expect.poll(connectionsThatCopy, { timeout: 5_000, interval: 50 }).toBe(0)
    const alive = await new Promise<IncomingMessage>((resolve) => httpGet(`${server.url}/readyz`, resolve))
    expect(alive.statusCode).toBe(200)
    alive.resume()
  })
})
