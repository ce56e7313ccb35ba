import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createShutdown } from '../../src/platform/shutdown.ts'
import { basic, form, LIST, newMerchant, newPartner, startService } from '../support/service.ts'

/** Starts a shutdown, and returns its exit codes and log messages; `close` represents the requests in progress. */
function begin(close: () => Promise<void>, closeMs = 30_000) {
  const lines: { msg: string }[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
  const codes: number[] = []
  const limits = { closeMs, repeatedSignalMs: 100 }
  const shutdown = createShutdown({ drainSeconds: 0, log, close, exit: (code) => codes.push(code) }, limits)
  return { shutdown, codes, messages: () => lines.map(({ msg }) => msg) }
}

it('the service exits with code 1 within the time limit for shutdown, however slowly a client reads a list', async () => {
  const service = await startService()
  const { mid } = await newMerchant(service.db)
  const { pid, key } = await newPartner(service.db, mid)
  // More rows than the socket buffers can contain, so that the service never finishes the response.
  await service.db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, rpad('U' || i, 35, 'x'), 1, repeat('B', 35), 'SUCCESS', '2026-01-15', '2026-01-15'
       from generate_series(1, 50000) i`,
    [mid],
  )
  await service.app.listen({ host: '127.0.0.1', port: 0 })
  const body = form({ pid, mid, s_date: '15-01-2026', e_date: '15-01-2026' })
  const { port } = service.app.server.address() as AddressInfo
  const reader = connect(port, '127.0.0.1').on('error', () => undefined)
  reader.write(
    `POST ${LIST} HTTP/1.1\r\nhost: x\r\nauthorization: ${basic(key)}\r\n` +
      `content-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await once(reader, 'readable')

  let closed = false
  const { shutdown, codes, messages } = begin(async () => {
    await service.app.close()
    closed = true
  }, 250)
  await shutdown.stop('SIGTERM')
  expect([codes, closed]).toEqual([[1], false])
  expect(messages()).toEqual(['Stopping', 'Stopped with requests in progress'])
  reader.destroy()
  await expect.poll(() => closed, { timeout: 10_000 }).toBe(true)
})

it('the service exits with code 0 on shutdown without requests in progress', async () => {
  const { shutdown, codes, messages } = begin(async () => undefined)
  expect(shutdown.isDraining()).toBe(false)
  const stopping = shutdown.stop('SIGTERM')
  expect(shutdown.isDraining()).toBe(true)
  await stopping
  expect([codes, messages()]).toEqual([[0], ['Stopping', 'Stopped']])
})

it('the service exits immediately on a second signal, unless one Ctrl-C was delivered twice', async () => {
  let finish: () => void = () => undefined
  const underWay = new Promise<void>((resolve) => {
    finish = resolve
  })
  const { shutdown, codes } = begin(() => underWay)
  const stopping = shutdown.stop('SIGINT')
  await shutdown.stop('SIGINT')
  expect(codes).toEqual([])
  await sleep(150)
  await shutdown.stop('SIGINT')
  expect(codes).toEqual([1])
  finish()
  await stopping
})
