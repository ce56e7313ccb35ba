import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROOT } from '../guides/guides.ts'
import { run } from '../guides/interpreters.ts'
import { end, freePort, hasEnded } from '../support/processes.ts'
import { CREATE, form, intentFields, STATUS } from '../support/requests.ts'
import { basic } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

const TIMEOUT_MS = 180_000
const WITH_INSTALL = 'src/dev/with-install.mjs'

/** A checkout of its own, because `npm start` keeps its data beside its files. */
let folder: string
const children: ChildProcess[] = []
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'upi-payments-setu-')))
  for (const copied of ['src', 'migrations']) cpSync(join(ROOT, copied), join(folder, copied), { recursive: true })
  for (const linked of ['package.json', 'package-lock.json', 'tsconfig.json', 'node_modules']) {
    symlinkSync(join(ROOT, linked), join(folder, linked))
  }
})
afterAll(async () => {
  await Promise.all(children.map((child) => end(child)))
  // Where the data of root's checkouts are.
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  rmSync(join('/var/lib/upi-payments', name), { recursive: true, force: true })
  rmSync(folder, { recursive: true, force: true })
})

const withoutSettings = () => {
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

/** `npm start`, until it has printed what to paste. */
async function start(environment: Record<string, string>) {
  const port = await freePort()
  const child = spawn(process.execPath, [WITH_INSTALL, 'src/dev/start.ts'], {
    cwd: folder,
    env: { ...withoutSettings(), PORT: String(port), OPS_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let said = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  await until('the demo is ready', () => said.includes('Read on in a browser') || hasEnded(child), {
    timeoutMs: 90_000,
  })
  const value = (name: string) => new RegExp(`export ${name}=(\\S+)`).exec(said)?.[1] ?? ''
  const key = { publicKey: value('PUBLIC_KEY'), secretKey: value('SECRET_KEY') }
  const url = `http://127.0.0.1:${port}`
  const post = (path: string, fields: Record<string, string>) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
      body: form(fields),
      redirect: 'manual',
    })
  const mid = value('MID')
  return {
    child,
    said: () => said,
    async create() {
      const answer = await post(CREATE, intentFields(mid))
      if (answer.status !== 200) throw new Error(`${await answer.text()}\n${said}`)
      return ((await answer.json()) as { data: { orderId: string; intent: string } }).data
    },
    /** Presses the control of the pay page. */
    simulate: async (orderId: string) => (await post(`/pay/${orderId}/simulate`, { status: 'SUCCESS' })).status,
    async isPaid(orderId: string) {
      const answer = await post(STATUS, { mid, order_id: orderId })
      return ((await answer.json()) as { txnStatus: string }).txnStatus === 'SUCCESS'
    },
  }
}

const show = async (orderId: string) => {
  const ops = ['src/dev/ops.ts', 'payments', 'show', '--order-id', orderId]
  const { stdout, stderr, code } = await run([process.execPath, WITH_INSTALL, ...ops], folder, {})
  expect(code, stderr).toBe(0)
  return stdout
}

it('a newcomer sees a payment through Setu, told of by a notification; plain npm start then works as before', {
  timeout: TIMEOUT_MS,
}, async () => {
  const setu = await start({ ACQUIRER: 'setu-sandbox' })
  expect(setu.said()).toContain('a demo merchant of Setu')
  const paid = await setu.create()
  expect(paid.intent).toMatch(/^upi:\/\/pay\?pa=demo@thisisnobank&.*&tr=SU\d+&/)
  expect(await setu.simulate(paid.orderId)).toBe(303)
  await until('the notification has come', () => setu.isPaid(paid.orderId))
  expect(await show(paid.orderId)).toContain('notification')
  const open = await setu.create()
  expect(await end(setu.child)).toBe(0)

  const plain = await start({})
  const { orderId, intent } = await plain.create()
  expect(intent).toContain('pa=demo@not-a-bank.invalid&')
  expect(intent).toContain(`tr=${orderId}`)
  for (const order of [orderId, open.orderId]) {
    expect(await plain.simulate(order)).toBe(303)
    expect(await show(order)).toContain('sandbox')
  }
  expect(await end(plain.child)).toBe(0)
})

it('any other acquirer than that of the demo is refused in one sentence', async () => {
  const { said, child } = await start({ ACQUIRER: 'setu' })
  expect([child.exitCode, said()]).toEqual([1, 'ACQUIRER must be setu-sandbox, or not be set\n'])
})
