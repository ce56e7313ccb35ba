import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { logoOf } from '../support/png.ts'
import { blocks, blocksOf, blockWith, type Guide, ROOT } from './guides.ts'
import { run } from './interpreters.ts'

/** On a loaded machine each of the seventy commands takes seconds. */
const TIMEOUT_MS = 600_000

/** A command of the guide, and its output if the guide shows it. */
type Step = { command: string; prints?: string }

/** The order id in the samples of the guide. */
const ORDER_ID = '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3'

/** Every `ops` command of a guide, in its order: later commands need the results of earlier ones. */
const stepsOf = (name: Guide): Step[] =>
  blocks
    .filter(({ guide }) => guide === name)
    .flatMap(({ language, text }): Step[] => {
      const lines = text.replaceAll(/ \\\n */g, ' ').split('\n')
      if (language === 'sh') return lines.flatMap((line) => (isOps(line) ? [{ command: line }] : []))
      if (language !== 'console') return []
      return text.split(/^\$ /m).flatMap((part) => {
        const [command = '', ...output] = part.split('\n')
        return isOps(command) ? [{ command, prints: output.join('\n') }] : []
      })
    })

const steps = stepsOf('operator')

function isOps(line: string): boolean {
  return line.startsWith('ops ')
}

/** The shell function `ops` of an installation and of a checkout. */
const [OF_INSTALLATION = '', OF_CHECKOUT = ''] = ['dist/cli/ops.js "$@"', 'npm run -s ops -- "$@"'].map((command) =>
  blockWith('operator', 'sh', command),
)

/** A merchant's server that accepts every webhook. */
async function startReceiver() {
  const types: string[] = []
  const server = createServer(async (request, response) => {
    types.push(((await json(request)) as { type: string }).type)
    response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { types, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

describe('the operator manual', () => {
  let folder: string
  let database: TestDatabase
  let client: pg.Client

  beforeAll(async () => {
    database = await createTestDatabase()
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
    // Links to the checkout, so that the files of the commands are not written into it.
    folder = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
    // Leaves out the developer's .env, which may name a database in use.
    for (const entry of readdirSync(ROOT).filter((name) => name !== '.env' && name !== 'dist'))
      symlinkSync(join(ROOT, entry), join(folder, entry))
    expect(await run([process.execPath, 'src/dev/build.mjs', join(folder, 'dist')], ROOT, {})).toMatchObject({
      code: 0,
    })
    mkdirSync(join(folder, 'settings'))
    const settings = {
      'settings.env': 'NODE_ENV=production\nWEBHOOK_ALLOWED_NETWORKS=127.0.0.1/32\n',
      'owner-database-url': `${database.url}\n`,
    }
    for (const [name, text] of Object.entries(settings)) writeFileSync(join(folder, 'settings', name), text)
    writeFileSync(join(folder, 'logo.png'), logoOf())
    const files = blocksOf('operator', 'csv')
    const samples = ['phonepe', 'hdfc-upi', 'cashfree', 'razorpay']
    for (const [index, name] of [
      'day',
      'settlements',
      'report',
      ...samples,
      'payout',
      'late-payout',
      'statement',
      'late',
    ].entries()) {
      writeFileSync(join(folder, `${name}.csv`), files[index] ?? '')
    }
  })
  afterAll(async () => {
    await client.end()
    rmSync(folder, { recursive: true, force: true })
  })

  it('the operator manual prints each command with its actual output, in an order in which all commands succeed', {
    timeout: TIMEOUT_MS,
  }, async () => {
    expect(steps.length).toBeGreaterThan(12)
    let oldKey = ''
    let endpoint = ''
    let refund = ''
    const receiver = await startReceiver()
    const ops = OF_INSTALLATION.replaceAll('/etc/upi-payments', join(folder, 'settings')).replace(
      '/opt/upi-payments',
      folder,
    )
    const firstOfPayments = steps.find(({ command }) => command.startsWith('ops payments'))
    for (const step of steps) {
      const { command, prints } = step
      if (step === firstOfPayments) await insertIntents()
      if (command.includes('webhooks ping')) await client.query('update webhook_endpoints set url = $1', [receiver.url])
      if (command.includes('--delivery')) await insertDelivery(endpoint)
      // Without a terminal, the command does not close a month without payments.
      if (command.startsWith('ops reconcile close')) await insertPayment()
      const exception = command.includes('--exception') ? await insertException() : ''
      const environment = {
        OLD_PUBLIC_KEY: oldKey,
        WEBHOOK_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
        ENDPOINT: endpoint,
        EXCEPTION: exception,
        REFUND: refund,
        DELIVERY: `${endpoint}.${ORDER_ID}.1`,
      }
      const { code, stdout, stderr } = await run(['sh', '-c', `${ops}\n${command}`], folder, environment)
      expect(code, `${command}\n${stderr}`).toBe(0)
      if (prints !== undefined) expect(stdout).toContain(prints)
      refund ||= /^Refund (\w+) of /m.exec(stdout)?.[1] ?? ''
      endpoint ||= /\bid +(ep_\w+)/.exec(stdout)?.[1] ?? ''
      if (oldKey === '') oldKey = /publicKey +(pk_\w+)/.exec(stdout)?.[1] ?? ''
    }
    const { rows } = await client.query('select public_key, revoked_at is not null as revoked from access_keys')
    expect(rows.filter(({ revoked }) => revoked)).toEqual([{ public_key: oldKey, revoked: true }])
    expect(rows).toHaveLength(3)
    expect(receiver.types).toEqual(['ping'])
    const deliveries = await client.query('select due_at is not null as "isRedelivered" from webhook_deliveries')
    expect(deliveries.rows).toEqual([{ isRedelivered: true }])
    expect((await client.query('select utr, status from payment_intents order by utr')).rows).toEqual([
      { utr: '523504870405', status: 'SUCCESS' },
      { utr: '523504870406', status: 'SUCCESS' },
    ])
  })

  it('the commands of the store plugin guide succeed for a new merchant', { timeout: TIMEOUT_MS }, async () => {
    const ofPlugins = stepsOf('plugins').map(({ command }) => command.replace('--mid M1', '--mid SHOP'))
    expect(ofPlugins.length).toBeGreaterThan(6)
    for (const command of ofPlugins) {
      const exception = command.includes('--exception') ? await insertException() : ''
      const environment = { DATABASE_URL: database.url, EXCEPTION: exception }
      const { code, stderr } = await run(['sh', '-c', `${OF_CHECKOUT}\n${command}`], folder, environment)
      expect(code, `${command}\n${stderr}`).toBe(0)
    }
    const { rows } = await client.query(
      `select input, kind from merchants join webhook_endpoints using (mid) where mid = 'SHOP'`,
    )
    expect(rows).toEqual([{ input: 'shop', kind: 'return call' }])
  })

  async function insertDelivery(endpoint: string) {
    await client.query(
      `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, delivered_at)
       values ('M1', $1, $2, 1, 'payment.succeeded', 'SUCCESS', '523504870405', now(), now())`,
      [endpoint, ORDER_ID],
    )
  }

  const insertPayment = () =>
    client.query(
      `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
       values ('M1', '523504870499', 'of-october', 20000, '2026-10-05 12:00:00+05:30', 'first', 'direct', 'notification')`,
    )

  let exceptions = 0

  async function insertException(): Promise<string> {
    const { rows } = await client.query<{ id: string }>(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       values ('M1', $1, 'double payment', $2, 20000, 'SUCCESS', now())
       returning exception_id as id`,
      [ORDER_ID, `52350487049${exceptions++}`],
    )
    await client.query(
      `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
       select mid, utr, order_id, 20000, received_at, 'second', 'direct', 'notification' from payment_exceptions where exception_id = $1`,
      [rows[0]?.id],
    )
    return rows[0]?.id as string
  }

  /** The orders of the daily transaction report, created on its day. */
  async function insertIntents() {
    await client.query(
      `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
         customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       select 'M1', order_id, merchant_order_id, amount * 100, 'https://shop.example/', 'Order ' || merchant_order_id, 'Asha Rao',
              'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814', at, at + interval '15 min'
         from (values ($1, '1001', 200), ('019aa0b1c2d3e4f5a6b7c8d9e0f1a2b4', '1002', 350)) as orders (order_id, merchant_order_id, amount),
              (select timestamptz '2026-11-17 15:30:00+05:30') as created_at (at)`,
      [ORDER_ID],
    )
  }
})
