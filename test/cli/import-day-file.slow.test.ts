import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { createOrder } from '../support/orders.ts'
import { openPool } from '../support/postgres-server.ts'
import { runToEnd, TYPESCRIPT } from '../support/processes.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'

const HEADER = 'order_id,status,utr,amount,paid_at\n'
const PAID_AT = '2026-03-31 23:55:00'

let service: TestService
let folder: string
beforeAll(async () => {
  service = await startService()
  // The command line has the clock of the machine.
  service.clock.set(new Date().toISOString())
  folder = mkdtempSync(join(tmpdir(), 'upi-payments-day-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const newOrder = async () => createOrder(service, await newMerchant(service.db))

const importFrom = (csv: string, ...args: string[]) =>
  runOps(service.databaseUrl, ['payments', 'import', '-', ...args], csv)

describe('payments import', () => {
  it('counts what it recorded and what contradicts, and exits 0: contradictions are kept for the operator', async () => {
    const [notified, lost] = await Promise.all([newOrder(), newOrder()])
    await notify(service, notification(notified, { UTR: 'DAY1' }))
    const csv = `${HEADER}${notified},SUCCESS,DAY1,200,${PAID_AT}
${lost},SUCCESS,DAY2,200.00,${PAID_AT}
${lost},SUCCESS,DAY3,200.00,${PAID_AT}
nobody,SUCCESS,DAY4,200.00,${PAID_AT}
`
    const text = 'exceptions: 1 unknown order, 1 double payment\n'
    expect(await importFrom(csv)).toEqual({ code: 0, stdout: `1 recorded, 1 unchanged, ${text}`, stderr: '' })
    expect(await importFrom(csv)).toEqual({ code: 0, stdout: `0 recorded, 2 unchanged, ${text}`, stderr: '' })

    const shown = await runOps(service.databaseUrl, ['payments', 'show', '--order-id', lost, '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({
      utr: 'DAY2',
      changes: [{ status: 'SUCCESS', reason: 'day file', paidAt: '2026-03-31T18:25:00.000Z' }],
      exceptions: [{ kind: 'double payment', utr: 'DAY3' }],
    })
    const { stdout } = await runOps(service.databaseUrl, ['payments', 'exceptions'])
    expect(stdout).toMatch(/unknown order +- +nobody +SUCCESS +DAY4/)
  })

  it('tells a script the same as JSON, from a file', async () => {
    const path = join(folder, 'day.csv')
    writeFileSync(path, `${HEADER}${await newOrder()},FAIL,,200,\n`)
    const { code, stdout } = await runOps(service.databaseUrl, ['payments', 'import', path, '--json'])
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      {
        recorded: 1,
        unchanged: 0,
        exceptions: {
          'unknown order': 0,
          'amount differs': 0,
          'UTR of another order': 0,
          'double payment': 0,
          'failure after success': 0,
          'late payment': 0,
        },
      },
    ])
  })

  it('names bad lines in one line on stderr, exits 1, and stores nothing', async () => {
    const orderId = await newOrder()
    const csv = `${HEADER}${orderId},SUCCESS,DAY5,200,${PAID_AT}\n${orderId},SUCCESS,,200,${PAID_AT}\n,PAID,,x,\n`
    expect(await importFrom(csv)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'ops: 2 bad lines, nothing was imported; line 3: utr is required with SUCCESS; ' +
        'line 4: status must be SUCCESS, FAIL or REJECT, amount must be rupees with at most two decimals\n',
    })
    const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
    expect(rows).toEqual([{ status: 'PENDING' }])
  })

  it('says what is wrong with a file that cannot be read', async () => {
    const { code, stderr } = await runOps(service.databaseUrl, ['payments', 'import', join(folder, 'none.csv')])
    expect([code, stderr]).toEqual([1, `ops: ${join(folder, 'none.csv')} cannot be read: ENOENT\n`])
  })
})

describe('a large day file', () => {
  /** The command itself takes about 50 MB. */
  const HEAP_MB = 96
  /** As objects they would take more than 100 MB. */
  const LINES = 200_000

  beforeAll(async () => {
    const { mid } = await newMerchant(service.db)
    // Without the service's limit on a query.
    const db = openPool(service.databaseUrl)
    await db.query(
      `insert into payment_intents
         (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
          payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
       select $1, id, id, 200, 'https://shop.example.in', 'Order', '', '', '',
              'chaipoint@examplebank', 'Chai Point', '5814', now(), now(), 'SUCCESS', 'LARGE' || i
         from generate_series(1, $2::integer) i, lateral (select lpad(to_hex(i), 32, '0') as id) ids`,
      [mid, LINES],
    )
    await db.end()
  })

  it('is imported in a heap that could not hold it', { timeout: 240_000 }, async () => {
    const path = join(folder, 'large.csv')
    let csv = HEADER
    for (let i = 1; i <= LINES; i++) csv += `${i.toString(16).padStart(32, '0')},SUCCESS,LARGE${i},200.00,${PAID_AT}\n`
    writeFileSync(path, csv)
    const args = [`--max-old-space-size=${HEAP_MB}`, ...TYPESCRIPT, 'src/cli/ops.ts', 'payments', 'import', path]
    const env = { ...process.env, DATABASE_URL: service.databaseUrl }
    const { code, stdout } = await runToEnd(process.execPath, args, { env })
    expect({ code, stdout }).toEqual({ code: 0, stdout: `0 recorded, ${LINES} unchanged, exceptions: none\n` })
  })
})
