import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { blocks, blocksOf, blockWith, ROOT } from './guides.ts'
import { run } from './interpreters.ts'

const TIMEOUT_MS = 180_000

/** A command as it is typed, and what it prints where the guide shows that. */
type Step = { command: string; prints?: string }

/** Every `ops` of the operator's guide, in its order: the later ones speak of what the earlier ones made. */
const steps: Step[] = blocks
  .filter(({ guide }) => guide === 'operator')
  .flatMap(({ language, text }): Step[] => {
    if (language === 'sh') return text.split('\n').flatMap((line) => (isOps(line) ? [{ command: line }] : []))
    if (language !== 'console') return []
    return text.split(/^\$ /m).flatMap((part) => {
      const [command = '', ...output] = part.split('\n')
      return isOps(command) ? [{ command, prints: output.join('\n') }] : []
    })
  })

function isOps(line: string): boolean {
  return line.startsWith('ops ')
}

/** The line by which the guide gives a checkout the word `ops`. */
const OPS = blockWith('operator', 'sh', 'ops() {')
  .split('\n')
  .find((line) => line.includes('npm run -s ops'))

describe("the commands of the operator's guide", () => {
  let folder: string
  let database: { url: string; drop: () => Promise<void> }
  let client: pg.Client

  beforeAll(async () => {
    database = await createTestDatabase()
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
    // The checkout, with the files that the commands name beside it and not in it.
    folder = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
    // Without the settings of whoever runs the tests: they may name a database in use.
    for (const entry of readdirSync(ROOT).filter((name) => name !== '.env'))
      symlinkSync(join(ROOT, entry), join(folder, entry))
    const [day = '', settlements = '', faulty = ''] = blocksOf('operator', 'csv')
    writeFileSync(join(folder, 'day.csv'), day)
    writeFileSync(join(folder, 'settlements.csv'), settlements)
    writeFileSync(join(folder, 'faulty.csv'), faulty)
  })
  afterAll(async () => {
    await client.end()
    await database.drop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('do in a new database, in this order, what they are said to do', { timeout: TIMEOUT_MS }, async () => {
    expect(steps.length).toBeGreaterThan(12)
    let oldKey = ''
    for (const { command, prints } of steps) {
      if (command.includes('payments show')) await makeIntent(/--order-id (\w+)/.exec(command)?.[1])
      const environment = { DATABASE_URL: database.url, OLD_PUBLIC_KEY: oldKey }
      const { code, stdout, stderr } = await run(['sh', '-c', `${OPS}\n${command}`], folder, environment)
      const isFault = prints?.startsWith('ops: ') ?? false
      expect(code, `${command}\n${stderr}`).toBe(isFault ? 1 : 0)
      // On a terminal every bad line has a line of its own.
      if (prints !== undefined) expect((isFault ? stderr : stdout).replaceAll('; line', '\n  line')).toContain(prints)
      if (oldKey === '') oldKey = /publicKey +(pk_\w+)/.exec(stdout)?.[1] ?? ''
    }
    const { rows } = await client.query('select public_key, revoked_at is not null as revoked from access_keys')
    expect(rows.filter(({ revoked }) => revoked)).toEqual([{ public_key: oldKey, revoked: true }])
    expect(rows).toHaveLength(3)
    expect((await client.query('select utr, status from payment_intents')).rows).toEqual([
      { utr: '523504870405', status: 'SUCCESS' },
    ])
  })

  async function makeIntent(orderId: string | undefined) {
    await client.query(
      `insert into payment_intents (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name,
         customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       values ('M1', $1, '1001', 200, 'https://shop.example/', 'Order 1001', 'Asha Rao',
         'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814', now(), now() + '15 min')`,
      [orderId],
    )
  }
})
