import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { ROOT } from '../guides/guides.ts'
import { run } from '../guides/interpreters.ts'

const START = [process.execPath, join(ROOT, 'src/dev/with-install.mjs'), 'src/dev/start.ts'] as const
/** No setting of whoever runs the tests, and no database: a start that gets so far would bring one of its own. */
const NOTHING_SET = {
  DATABASE_URL: '',
  DATABASE_URL_FILE: '',
  PUBLIC_URL: '',
  NODE_ENV: '',
  HOST: '',
  npm_lifecycle_event: '',
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'upi-payments-start-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A port that another program listens on. */
async function busyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

describe('npm start on a busy port', () => {
  const start = (environment: Record<string, string>) => run([...START], folder, { ...NOTHING_SET, ...environment })

  it('says in one sentence which port it is, with two free ports to start on instead', async () => {
    const port = await busyPort()
    const { code, stdout, stderr } = await start({ PORT: String(port), OPS_PORT: '0' })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    const [, free, freeForOps] =
      /^Port (?:\d+) is in use by another program: run PORT=(\d+) OPS_PORT=(\d+) npm start\n$/.exec(stderr) ?? []
    expect(stderr).toContain(`Port ${port} is`)
    expect(free).not.toBe(freeForOps)
    for (const suggested of [free, freeForOps]) {
      const server = createServer().listen(Number(suggested), '127.0.0.1')
      await once(server, 'listening')
      server.close()
    }
  })

  it('names the port for operators too, and the command that was typed', async () => {
    const [port, opsPort] = [await busyPort(), await busyPort()]
    const dev = await start({ PORT: '0', OPS_PORT: String(opsPort), npm_lifecycle_event: 'dev' })
    expect(dev.stderr).toMatch(`Port ${opsPort} is in use by another program: run PORT=`)
    expect(dev.stderr).toMatch(/ npm run dev\n$/)
    const both = await start({ PORT: String(port), OPS_PORT: String(opsPort) })
    expect(both.stderr).toContain(`Ports ${port} and ${opsPort} are in use by another program: run PORT=`)
  })
})
