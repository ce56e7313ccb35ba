import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import pg from 'pg'
import { importSettlements } from '../books/settlements/import.ts'
import { createAccessKeys, type NewAccessKey } from '../gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../gateway/tenants/credentials.ts'
import { checkLogo, saveLogo } from '../gateway/tenants/logo.ts'
import { createMerchants } from '../gateway/tenants/merchants.ts'
import { createPartners } from '../gateway/tenants/partners.ts'
import { CONSOLE_RIGHTS, createOperatorKeys } from '../operator/console/operator-keys.ts'
import { RIGHTS } from '../platform/rights.ts'

type KeyPair = { publicKey: string; secretKey: string }

export type Demo = { mid: string; pid: string; merchantKey: KeyPair; partnerKey: KeyPair; operatorKey: KeyPair }

export const MID = 'DEMO_MERCHANT'
const PID = 'DEMO_PARTNER'
/** A UPI address that cannot receive money, because bank handles contain no dot and `.invalid` is a reserved domain. */
const VPA = 'demo@not-a-bank.invalid'

/** The month that the examples in the partner guide use. */
export const SETTLED_MONTH = { first: '01-10-2026', last: '31-10-2026' }
/** A settlement file from the bank, which the demo imports in the same way as an operator. Times are in IST. */
const SETTLEMENTS = `mid,amount,utr,bank_reference_number,status,initiation_date,created_at
${MID},1999.00,DEMON26278000001,DEMOBANK-0001,SUCCESS,2026-10-05 10:00:00,2026-10-06 10:00:00
${MID},450.50,DEMON26280000002,DEMOBANK-0002,SUCCESS,2026-10-07 10:00:00,2026-10-08 10:00:00
${MID},87500.00,DEMON26281000003,DEMOBANK-0003,FAILED,2026-10-08 10:00:00,2026-10-09 10:00:00
${MID},87500.00,DEMON26282000004,DEMOBANK-0004,SUCCESS,2026-10-09 10:00:00,2026-10-10 10:00:00
${MID},320.00,DEMON26303000005,DEMOBANK-0005,PENDING,2026-10-30 23:59:00,2026-10-31 23:59:00
`

/**
 * Creates the demo's merchant, partner, keys, settlements and order if they are missing. The file demo.json in
 * `directory`, readable only by its owner, stores the secrets of the keys. If the file is missing, new keys are
 * created.
 */
export async function ensureDemo(options: { databaseUrl: string; directory: string; now: Date }): Promise<Demo> {
  const { databaseUrl, directory, now } = options
  const file = join(directory, 'demo.json')
  return makeForDemo(databaseUrl, async (client) => {
    await makeTenants(client, now)
    await makeSettlements(client, now)
    await makeOrder(client, now)
    const stored = readStored(file)
    if (stored && (await hasKeys(client, stored))) return stored
    const [accessKeys, operatorKeys] = [createAccessKeys(client), createOperatorKeys(client)]
    const merchantKey = await makeKey((key) => accessKeys.add({ ...key, owner: { mid: MID }, rights: RIGHTS, now }))
    const partnerKey = await makeKey((key) => accessKeys.add({ ...key, owner: { pid: PID }, rights: ['list'], now }))
    const demoOperator = { operator: 'demo', rights: CONSOLE_RIGHTS, now }
    const operatorKey = await makeKey((key) => operatorKeys.add({ ...key, ...demoOperator }))
    const demo = { mid: MID, pid: PID, merchantKey, partnerKey, operatorKey }
    writeFileSync(file, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 })
    return demo
  })
}

/**
 * Runs `work` in a transaction under a lock. If two services start concurrently, the second service finds a complete
 * demo.
 */
export async function makeForDemo<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query('begin')
    await client.query("select pg_advisory_xact_lock(hashtext('demo'))")
    const created = await work(client)
    await client.query('commit')
    return created
  } finally {
    await client.end()
  }
}

async function makeTenants(client: pg.Client, now: Date): Promise<void> {
  const merchant = { mid: MID, name: 'Demo Merchant', vpa: VPA, mcc: '5814', dynamicQr: 'link' } as const
  const logo = checkLogo(readFileSync(new URL('demo-logo.png', import.meta.url)))
  const brand = { logo: logo.sha256, colour: '#0b6b4f', website: 'https://shop.example/', support: 'care@shop.example' }
  if (!(await createMerchants(client).add({ ...merchant, ...brand }, now))) return
  await saveLogo(client, MID, logo)
  await createPartners(client).add({ pid: PID, name: 'Demo Partner' }, now)
  await createPartners(client).link(PID, MID)
}

async function makeSettlements(client: pg.Client, now: Date): Promise<void> {
  // Includes undone imports: an operator who undid the import removed its settlements on purpose, so the demo does not
  // import them again.
  const { rowCount } = await client.query('select from settlement_imports limit 1')
  if (rowCount !== 0) return
  await importSettlements(client, Readable.from([SETTLEMENTS]), { now, person: 'demo', file: 'demo-settlements.csv' })
}

/** Creates the paid order DEMO-1, so that the documented checkPaymentStatus example works unchanged in the demo. */
async function makeOrder(client: pg.Client, now: Date): Promise<void> {
  const [orderId, utr] = ['019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3', '523504870405']
  const { rowCount } = await client.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
       customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     values ($1, $2, 'DEMO-1', 20000, 'https://shop.example/thanks', 'Order DEMO-1', 'Asha Rao', 'asha@shop.example',
       '9876543210', $3, 'Demo Merchant', '5814', $4, $4::timestamptz + interval '15 min', 'SUCCESS', $5)
     on conflict do nothing`,
    [MID, orderId, VPA, now, utr],
  )
  if (rowCount === 0) return
  await client.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     values ($1, $2, $3, 20000, $4, $4, 'first', 'direct', 'sandbox')`,
    [MID, utr, orderId, now],
  )
}

async function makeKey(
  store: (key: Pick<NewAccessKey, 'publicKey' | 'secretHash' | 'label'>) => Promise<unknown>,
): Promise<KeyPair> {
  const { publicKey, secretKey } = mintKeyPair()
  await store({ publicKey, secretHash: hashSecret(secretKey), label: 'demo' })
  return { publicKey, secretKey }
}

/**
 * Returns whether the database contains the stored keys. The keys are missing after the data directory was deleted and
 * created again.
 */
async function hasKeys(client: pg.Client, { merchantKey, partnerKey, operatorKey }: Demo): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from access_keys where public_key in ($1, $2)
      union all
     select from operator_keys where public_key = $3`,
    [merchantKey.publicKey, partnerKey.publicKey, operatorKey.publicKey],
  )
  return rowCount === 3
}

function readStored(file: string): Demo | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Demo
  } catch {
    return undefined
  }
}
