import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it } from 'vitest'
import { newOperatorKey } from '../support/console.ts'
import { asRole } from '../support/database-url.ts'
import { end, ROOT, startReading } from '../support/processes.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const service = await startService()

async function startConsole() {
  await newOperatorKey(service.db)
  const env = { ...process.env, CONSOLE_DATABASE_URL: asRole(service.databaseUrl, 'upi_console'), CONSOLE_PORT: '0' }
  const program = ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'console']
  const { child, said } = startReading(process.execPath, program, { cwd: ROOT, env })
  await until('the console listens', () => /address +http/.test(said()))
  const { port } = new URL(/address +(\S+)/.exec(said())?.[1] as string)
  return { child, said, port: Number(port) }
}

/** Sends the start of a request without a key, and never the rest. */
async function sendHalf(port: number, start: string) {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  await once(socket, 'connect')
  await new Promise((resolve) => socket.write(start, resolve))
}

it('a console stops with exit code 0 on SIGTERM', async () => {
  const { child, said } = await startConsole()
  expect(await end(child)).toBe(0)
  expect(said()).toMatch(/ops: Stopping\nops: Stopped\n$/)
})

it('a request without a key, half of which was sent, does not keep a console from stopping', async () => {
  const { child, said, port } = await startConsole()
  await sendHalf(port, 'GET / HTTP/1.1\r\nhost: localhost\r\n')
  const type = 'application/x-www-form-urlencoded'
  await sendHalf(port, `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: 100\r\n\r\na=`)
  expect([await end(child), said()]).toEqual([1, expect.stringContaining('ops: Stopped with requests in progress')])
})
