import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { type Demo, ensureDemo } from '../../src/dev/demo.ts'
import { demoCommands } from '../../src/dev/demo-commands.ts'
import { ensureDemoWebhook } from '../../src/dev/demo-webhook.ts'
import { newSigningSecret } from '../../src/gateway/webhooks/signature.ts'
import { has, run } from '../guides/interpreters.ts'
import { createTestConsole } from '../support/console.ts'
import { POSTS } from '../support/openapi.ts'
import { runOps } from '../support/ops.ts'
import { post, STATUS, startService, type TestService } from '../support/service.ts'

const FORM = 'application/x-www-form-urlencoded'

let service: TestService
let url: string
let folder: string
let demo: Demo
const webhook = { port: 65_002, secret: newSigningSecret() }
const ensure = () => ensureDemo({ databaseUrl: service.databaseUrl, directory: folder, now: new Date() })
beforeAll(async () => {
  service = await startService({ sandbox: true })
  url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  folder = mkdtempSync(join(tmpdir(), 'upi-payments-demo-'))
  demo = await ensure()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('the demo reuses its keys and data on a second start', async () => {
  expect(await ensure()).toEqual(demo)
  const { rows } = await service.db.query(
    'select (select count(*) from access_keys)::int as keys, (select count(*) from operator_keys)::int as operators',
  )
  expect(rows).toEqual([{ keys: 2, operators: 1 }])
})

it('the demo’s operator signs in to the console, and finds the demo’s order', async () => {
  const console = await createTestConsole(service)
  expect(await console.get('/search?q=DEMO-1')).toMatchObject({ status: 401 })
  expect(await console.get('/search?q=DEMO-1', demo.operatorKey)).toMatchObject({
    status: 303,
    headers: { location: 'payments-show?order-id=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3' },
  })
})

it('the demo’s merchant has a brand, and its pay pages the logo', async () => {
  const { stdout } = await runOps(service.databaseUrl, ['merchants', 'list', '--json'])
  const [merchant] = JSON.parse(stdout)
  expect(merchant).toMatchObject({
    ...{ colour: '#0b6b4f', website: 'https://shop.example/', support: 'care@shop.example' },
    logo: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  const logo = await service.app.inject('/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3/logo.png')
  expect([logo.statusCode, logo.headers.etag]).toEqual([200, `"${merchant.logo}"`])
  expect(PNG.sync.read(logo.rawPayload)).toMatchObject({ width: 120, height: 120 })
})

it('the demo stores its secrets in a file that only the file’s owner can read', () => {
  expect(statSync(join(folder, 'demo.json')).mode & 0o777).toBe(0o600)
})

it('the demo enables its webhook endpoint again with the same secret, until the encryption key changes', async () => {
  vi.stubEnv('DATABASE_URL', service.databaseUrl)
  vi.stubEnv('WEBHOOK_SEALING_KEY', randomBytes(32).toString('base64'))
  onTestFinished(() => void vi.unstubAllEnvs())
  const first = await ensureDemoWebhook(service.databaseUrl, new Date())
  await service.db.query(
    "update webhook_endpoints set failing_since = now(), disabled_at = now(), disabled_reason = 'failed for 5 days'",
  )
  expect(await ensureDemoWebhook(service.databaseUrl, new Date())).toEqual(first)
  const { rows } = await service.db.query('select endpoint_id, disabled_at, failing_since from webhook_endpoints')
  expect(rows).toEqual([{ endpoint_id: 'ep_demo', disabled_at: null, failing_since: null }])

  vi.stubEnv('WEBHOOK_SEALING_KEY', randomBytes(32).toString('base64'))
  expect((await ensureDemoWebhook(service.databaseUrl, new Date())).secret).not.toBe(first.secret)
})

it('the demo imports its settlements once, as an operator would, and ops today shows the import', async () => {
  await ensure()
  const imports = await runOps(service.databaseUrl, ['settlements', 'imports', '--json'])
  expect(JSON.parse(imports.stdout)).toMatchObject([
    { import: 1, file: 'demo-settlements.csv', person: 'demo', inserted: 5, unchanged: 0, updated: 0 },
  ])
  const today = await runOps(service.databaseUrl, ['today'])
  expect(today.stdout).toMatch(/^information +settlements +demo-settlements\.csv imported /m)
})

it('the documented example of checkPaymentStatus works in the demo exactly as printed', async () => {
  const { requestBody, responses } = POSTS[STATUS] ?? {}
  const requested = await post(service.app, STATUS, requestBody?.content[FORM]?.example, demo.merchantKey)
  expect(requested.body).toEqual(responses?.['200']?.content?.['application/json']?.example)
})

it('the demo’s key may refund, and the demo’s text states that other keys need the right to refund', async () => {
  const [, ...said] = demoCommands({ ...demo, webhook }, new Date()).split('Accept a first payment')
  expect(said.join()).toContain(
    'This key may also refund; other keys may not, unless the operator grants them the right.',
  )
  const fields = { mid: demo.mid, order_id: 'DEMO-1', refund_id: 'DEMO-1-R1', note: 'One cup was cold', amount: '1' }
  const refunded = await post(service.app, '/v1/payments/refundPayment', fields, demo.merchantKey)
  expect(refunded.body).toMatchObject({ msg: 'Refund accepted' })
})

it('the demo prints the console’s address and the operator’s user name and password', () => {
  vi.stubEnv('CONSOLE_PORT', '23002')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { publicKey, secretKey } = demo.operatorKey
  expect(demoCommands({ ...demo, webhook }, new Date())).toMatch(
    new RegExp(`^ +http://localhost:23002 .* console.*\n +user name +${publicKey}\n +password +${secretKey}$`, 'm'),
  )
})

it('the demo prints lines that fit a terminal', () => {
  const lines = demoCommands({ ...demo, webhook }, new Date()).split('\n')
  expect(lines.filter((line) => line.length > 110)).toEqual([])
})

it.runIf(has('curl', { mustHave: true }))(
  'the demo’s commands, pasted in sequence, create an intent, print its pay page, check its status and list settlements',
  async () => {
    const { PUBLIC_URL } = process.env
    process.env.PUBLIC_URL = url
    const text = demoCommands({ ...demo, webhook }, new Date())
    process.env.PUBLIC_URL = PUBLIC_URL ?? ''
    // Commands start at the margin and continue after a trailing backslash; the rest is prose.
    const commands = text.match(/^(?:export |curl |echo |RESPONSE=)(?:.*\\\n)*.*$/gm) ?? []
    const { code, stdout, stderr } = await run(['sh', '-c', commands.join('\n')], folder, {
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [intent = '', page = '', status = '', settlements = '', ...rest] = stdout.trimEnd().split('\n')
    expect(JSON.parse(intent)).toMatchObject({
      msg: 'Payment intent created successfully',
      data: { intent: expect.stringMatching(/^upi:/), gpay: expect.stringMatching(/^tez:/), amount: '200' },
    })
    expect(page).toBe(`${url}/pay/${JSON.parse(intent).data.orderId}`)
    expect(await (await fetch(page)).text()).toContain('Two cups of masala chai')
    expect(JSON.parse(status)).toMatchObject({ txnStatus: 'PENDING', msg: 'Payment pending' })
    expect(JSON.parse(settlements)).toMatchObject({ msg: 'Settlements found', data: { length: 5 } })
    expect(rest).toEqual([])
  },
)
