import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { end, freePorts, hasEnded, ROOT, runToEnd, startReading } from './processes.ts'
import { CREATE, form, intentFields, STATUS } from './requests.ts'
import { basic, type Key } from './tenants.ts'
import { until } from './wait.ts'

const WITH_INSTALL = 'src/dev/with-install.mjs'

export type DemoCheckout = ReturnType<typeof createDemoCheckout>
export type Demo = Awaited<ReturnType<DemoCheckout['start']>>

/** Creates a copy of the checkout, because `npm start` stores its data there. */
export function createDemoCheckout() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'upi-payments-demo-')))
  for (const copied of ['src', 'migrations']) cpSync(join(ROOT, copied), join(folder, copied), { recursive: true })
  for (const linked of ['package.json', 'package-lock.json', 'tsconfig.json', 'node_modules']) {
    symlinkSync(join(ROOT, linked), join(folder, linked))
  }
  const children: ChildProcess[] = []

  return {
    folder,

    /** Runs `npm start` until it has printed its commands. */
    async start(environment: Record<string, string> = {}) {
      const [port, consolePort] = await freePorts(2)
      const { child, said } = startReading(process.execPath, [WITH_INSTALL, 'src/dev/start.ts'], {
        cwd: folder,
        env: {
          ...withoutSettings(),
          PORT: String(port),
          OPS_PORT: '0',
          CONSOLE_PORT: String(consolePort),
          ...environment,
        },
      })
      children.push(child)
      await until('the demo is ready', () => said().includes('Continue in a browser') || hasEnded(child), {
        timeoutMs: 90_000,
      })
      const value = (name: string) => new RegExp(`export ${name}=(\\S+)`).exec(said())?.[1] ?? ''
      const key: Key = { publicKey: value('PUBLIC_KEY'), secretKey: value('SECRET_KEY') }
      const mid = value('MID')
      const consoleKey: Key = {
        publicKey: /user name +(\S+)/.exec(said())?.[1] ?? '',
        secretKey: /password +(\S+)/.exec(said())?.[1] ?? '',
      }
      const url = `http://127.0.0.1:${port}`
      const post = (path: string, fields: Record<string, string>) =>
        fetch(url + path, {
          method: 'POST',
          headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
          body: form(fields),
          redirect: 'manual',
        })
      return {
        child,
        url,
        mid,
        key,
        console: { url: `http://localhost:${consolePort}`, key: consoleKey },
        said,
        async create(fields: Record<string, string> = {}) {
          const response = await post(CREATE, { ...intentFields(mid), ...fields })
          if (response.status !== 200) throw new Error(`${await response.text()}\n${said()}`)
          return ((await response.json()) as { data: { orderId: string; intent: string } }).data
        },
        /** Submits the simulation form of the pay page. */
        simulate: async (orderId: string, status = 'SUCCESS') =>
          (await post(`/pay/${orderId}/simulate`, { status })).status,
        async isPaid(orderId: string) {
          const response = await post(STATUS, { mid, order_id: orderId })
          return ((await response.json()) as { txnStatus: string }).txnStatus === 'SUCCESS'
        },
      }
    },

    /** Runs `npm run ops -- …`. */
    ops: (...args: string[]) =>
      runToEnd(process.execPath, [WITH_INSTALL, 'src/dev/ops.ts', ...args], { cwd: folder, env: withoutSettings() }),

    async remove() {
      await Promise.all(children.map((child) => end(child)))
      // For root, the database of a checkout is stored in this folder.
      const name = createHash('sha256').update(join(folder, '.database')).digest('hex').slice(0, 12)
      rmSync(join('/var/lib/upi-payments', name), { recursive: true, force: true })
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** These variables may be set on the machine that runs the tests. */
function withoutSettings(): NodeJS.ProcessEnv {
  const {
    DATABASE_URL: _,
    DATABASE_URL_FILE: __,
    PUBLIC_URL: ___,
    HOST: ____,
    NODE_ENV: _____,
    ...environment
  } = process.env
  return environment
}
