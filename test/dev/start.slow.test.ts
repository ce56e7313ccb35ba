import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ROOT } from '../guides/guides.ts'
import { run } from '../guides/interpreters.ts'
import { createTestDatabase } from '../support/database.ts'
import { namingLine } from '../support/ops.ts'

const NODE = process.execPath
const WITH_INSTALL = join(ROOT, 'src/dev/with-install.mjs')
const SETTINGS = [
  'DATABASE_URL',
  'DATABASE_URL_FILE',
  'DATABASE_MIGRATE_URL',
  'CONSOLE_DATABASE_URL',
  'PUBLIC_URL',
  'NODE_ENV',
  'HOST',
  'OPS_HOST',
  'CONSOLE_HOST',
]

let folder: string
beforeEach(() => {
  // These variables may be set on the machine that runs the tests.
  for (const name of SETTINGS) vi.stubEnv(name, undefined)
  folder = mkdtempSync(join(tmpdir(), 'upi-payments-start-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Returns a port that another program listens on. */
async function busyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

describe('npm start on a busy port', () => {
  const start = (environment: Record<string, string>) =>
    run([NODE, WITH_INSTALL, 'src/dev/start.ts'], folder, { npm_lifecycle_event: 'start', ...environment })

  it('npm start prints one message with the busy port and three free ports to use instead', async () => {
    const port = await busyPort()
    const { code, stdout, stderr } = await start({ PORT: String(port), OPS_PORT: '0', CONSOLE_PORT: '0' })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    const [, ...free] =
      /^Port \d+ is in use by another program. Run PORT=(\d+) OPS_PORT=(\d+) CONSOLE_PORT=(\d+) npm start\n$/.exec(
        stderr,
      ) ?? []
    expect(stderr).toContain(`Port ${port} is`)
    expect(new Set(free).size).toBe(3)
    for (const suggested of free) {
      const server = createServer().listen(Number(suggested), '127.0.0.1')
      await once(server, 'listening')
      server.close()
    }
  })

  it('npm start names the operator’s port if another process uses the operator’s port, and names the npm script that was run', async () => {
    const [port, opsPort, consolePort] = [await busyPort(), await busyPort(), await busyPort()]
    const dev = await start({ PORT: '0', OPS_PORT: String(opsPort), CONSOLE_PORT: '0', npm_lifecycle_event: 'dev' })
    expect(dev.stderr).toMatch(`Port ${opsPort} is in use by another program. Run PORT=`)
    expect(dev.stderr).toMatch(/ npm run dev\n$/)
    const all = await start({ PORT: String(port), OPS_PORT: String(opsPort), CONSOLE_PORT: String(consolePort) })
    expect(all.stderr).toContain(
      `Ports ${port}, ${opsPort} and ${consolePort} are in use by another program. Run PORT=`,
    )
  })
})

describe('the file .env', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeAll(async () => {
    database = await createTestDatabase()
  })

  it('npm start reads .env like Docker Compose: the environment takes precedence, and an empty value means the default', async () => {
    const lines = [
      '# a comment',
      'PUBLIC_URL="https://pay.example.in/upi"',
      'DATABASE_POOL_SIZE=',
      'PORT=1',
      'OPS_PORT=1',
    ]
    writeFileSync(join(folder, '.env'), [...lines, `DATABASE_URL=${database.url}`].join('\n'))
    const service = spawn(NODE, [WITH_INSTALL, 'src/dev/start.ts'], {
      cwd: folder,
      env: { ...process.env, PORT: '0', OPS_PORT: '0', SHUTDOWN_DRAIN_SECONDS: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void service.kill('SIGKILL'))
    const ended = once(service, 'exit')
    const firstLine = once(createInterface({ input: service.stdout }), 'line')
    const [line = '{}'] = await Promise.race([firstLine, ended.then(() => [])])
    expect(JSON.parse(line)).toMatchObject({ msg: 'Listening', publicUrl: 'https://pay.example.in/upi' })
    service.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })

  it('npm run ops reads .env and uses the service’s database', async () => {
    writeFileSync(join(folder, '.env'), `DATABASE_URL=${database.url}\n`)
    const { code, stderr } = await run([NODE, WITH_INSTALL, 'src/dev/ops.ts', 'merchants', 'list'], folder, {
      NODE_ENV: 'production',
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: namingLine(database.url) })
  })
})
