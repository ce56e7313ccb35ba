import { expect, it, onTestFinished } from 'vitest'
import { createTestConsole, newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'

it('an operator signs in while the pages of others use all connections of the commands', async () => {
  const { url, db } = await createTestDatabase()
  const site = await createTestConsole({ databaseUrl: url })
  const { max } = site.db.options
  const clients = await Promise.all(Array.from({ length: max }, () => site.db.connect()))
  onTestFinished(() => {
    for (const client of clients) client.release()
  })
  const page = await site.get('/console.css', await newOperatorKey(db))
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/css; charset=utf-8'])
})
