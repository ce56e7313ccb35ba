import { once } from 'node:events'
import { connect } from 'node:net'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { startServerProcess } from '../support/server-process.ts'
import { basic, form, LIST, newMerchant, newPartner } from '../support/service.ts'

/** What the service allows itself, and as much again for a busy machine. */
const CLOSE_LIMIT_MS = 20_000
const ENDED_LIMIT_MS = 2 * CLOSE_LIMIT_MS

it('ends in its time, with 1, however slowly somebody reads a list', { timeout: 3 * CLOSE_LIMIT_MS }, async () => {
  const { url, drop } = await createTestDatabase()
  const db = createPool({ url, size: 1, log: pino({ level: 'silent' }) })
  const { mid } = await newMerchant(db)
  const { pid, key } = await newPartner(db, mid)
  // More than the sockets in between hold, so that the service is never done with it.
  await db.query({
    text: `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
           select $1, 'UTR' || i, 1, 'BRN', 'SUCCESS', '2026-01-15', '2026-01-15' from generate_series(1, 100000) i`,
    values: [mid],
    query_timeout: CLOSE_LIMIT_MS,
  } as never)
  await db.end()

  const server = await startServerProcess(url)
  const body = form({ pid, mid, s_date: '15-01-2026', e_date: '15-01-2026' })
  const socket = connect(server.port, '127.0.0.1').on('error', () => undefined)
  socket.write(
    `POST ${LIST} HTTP/1.1\r\nhost: x\r\nauthorization: ${basic(key)}\r\n` +
      `content-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await once(socket, 'readable')
  // A little every second: no reader that has stalled, which is cut off by itself.
  const sipping = setInterval(() => socket.read(1_000), 1_000)

  const startedAt = performance.now()
  const ended = once(server.child, 'exit')
  server.child.kill('SIGTERM')
  expect(await ended).toEqual([1, null])
  expect(performance.now() - startedAt).toBeGreaterThan(CLOSE_LIMIT_MS / 2)
  expect(performance.now() - startedAt).toBeLessThan(ENDED_LIMIT_MS)
  clearInterval(sipping)
  socket.destroy()
  await drop()
})
