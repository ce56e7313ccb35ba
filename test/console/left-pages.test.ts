import type { AddressInfo } from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { readSnapshot } from '../../src/books/reading/snapshot.ts'
import { read } from '../../src/operator/commands/command.ts'
import { record, table } from '../../src/operator/commands/result.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { basic, type Key } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

/** Runs until PostgreSQL cancels it. */
const ENDLESS = 'select count(*) from generate_series(1, 1e15) -- endless'

const slow = (name: string, isLong: boolean) =>
  read(name, 'Read for very long', {
    ...{ title: name, isLong },
    async run(_, { db }) {
      await db.query(ENDLESS)
      return record({})
    },
  })

const limits = (name: string, isLong: boolean) =>
  read(name, 'Print limits', {
    ...{ title: 'Limits', isLong },
    async run(_, { db, now }) {
      const query = `select current_setting('statement_timeout') as "limit"`
      const alone = await db.query(query)
      const inSnapshot = await readSnapshot(db, now, ({ client }) => client.query(query))
      return table('limit', [...alone.rows, ...inSnapshot.rows])
    },
  })

const cancelled = read('cancelled', 'Read for longer than the limit', {
  title: 'Cancelled',
  async run(_, { db }) {
    await inTransaction(db, (client) => client.query('set local statement_timeout = 50; select pg_sleep(60)'))
    return record({})
  },
})

/** Yields rows for as long as they are read. */
const endlessRows = read('rows', 'List very many rows', {
  title: 'Rows',
  ...{ csv: true, isLong: true },
  async run(_, { db }) {
    async function* rows() {
      for (;;) yield* (await db.query('select repeat($1, 1000) as text', ['x'])).rows
    }
    return table('text', rows())
  },
})

const reports = [slow('first', true), slow('second', true), endlessRows, limits('limits', true)]
const groups = { Reports: reports, Lookups: [slow('third', false), limits('short', false), cancelled] }

let db: Database
let site: TestConsole
let [asha, ravi]: Key[] = []
let origin = ''
beforeAll(async () => {
  const database = await createTestDatabase()
  ;({ db } = database)
  site = await createTestConsole({ databaseUrl: database.url }, undefined, {}, undefined, groups)
  ;[asha, ravi] = [await newOperatorKey(db), await newOperatorKey(db, ['read'], { operator: 'ravi' })]
  await site.app.listen({ host: '127.0.0.1', port: 0 })
  origin = `http://127.0.0.1:${(site.app.server.address() as AddressInfo).port}`
})

/** Opens a page in a browser. `leave` closes it. */
function open(path: string, key: Key | undefined) {
  const browser = new AbortController()
  const page = fetch(origin + path, { signal: browser.signal, headers: { authorization: basic(key as Key) } })
  page.catch(() => undefined)
  return { page, leave: () => browser.abort() }
}

const running = async () => {
  const { rows } = await db.query(
    `select query from pg_stat_activity
      where datname = current_database() and usename = 'upi_console' and state = 'active'`,
  )
  return rows.length
}

it('PostgreSQL cancels the query of a page that the operator has closed', async () => {
  const { leave } = open('/first', asha)
  await until('the page reads', async () => (await running()) === 1)
  leave()
  await until('no query of the page runs', async () => (await running()) === 0)
  expect((await open('/limits', asha).page).status).toBe(200)
})

it('two reports are read at a time, and one of each operator, and other pages beside them', async () => {
  const pages = [open('/first', asha), open('/second', asha), open('/first', asha)]
  await until('the first report reads', async () => (await running()) === 1)
  pages.push(open('/third', asha))
  await until('the other page reads', async () => (await running()) === 2)
  pages.push(open('/first', ravi))
  await until('the report of the other operator reads', async () => (await running()) === 3)
  const meera = await newOperatorKey(db, ['read'], { operator: 'meera' })
  pages.push(open('/second', meera))
  expect((await open('/short', meera).page).status).toBe(200)
  expect(await running()).toBe(3)
  for (const { leave } of pages) leave()
  await until('no query of the pages runs', async () => (await running()) === 0)
})

it('a download ends with the browser that reads it', async () => {
  const { page, leave } = open('/rows?csv=on', asha)
  const reader = (await page).body?.getReader()
  expect((await reader?.read())?.value?.length).toBeGreaterThan(0)
  leave()
  // The next report of the operator begins once the download has ended.
  expect((await open('/limits', asha).page).status).toBe(200)
})

it('PostgreSQL limits the statements of pages to 120 s, also in a snapshot', async () => {
  for (const page of ['/limits', '/short']) {
    expect((await (await open(page, ravi).page).text()).match(/<td[^>]*>2min</g)).toHaveLength(2)
  }
})

it('the page of a cancelled query says what to do, and does not repeat the query', async () => {
  const page = await open('/cancelled', ravi).page
  expect([page.status, page.headers.get('refresh')]).toEqual([503, null])
  expect(await page.text()).toContain('choose fewer days or one merchant, or run the command on the command line')
})
