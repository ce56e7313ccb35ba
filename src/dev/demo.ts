import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { hashSecret, mintKeyPair } from '../auth/credentials.ts'

type KeyPair = { publicKey: string; secretKey: string }

/** Somebody to try the service as. `settledSince` is the moment of the oldest settlement, ISO 8601. */
export type Demo = { mid: string; pid: string; merchantKey: KeyPair; partnerKey: KeyPair; settledSince: string }

const MID = 'DEMO_MERCHANT'
const PID = 'DEMO_PARTNER'
/** Handles of banks have neither dot nor hyphen, and .invalid is reserved for ever: no money can go there. */
const VPA = 'demo@not-a-bank.invalid'
const HOUR_MS = 3_600_000

const SETTLEMENTS = [
  { utr: 'DEMO00000001', amount: '1999.00', bank: 'DEMOBANK-0001', status: 'SUCCESS', hoursAgo: 122 },
  { utr: 'DEMO00000002', amount: '450.50', bank: 'DEMOBANK-0002', status: 'SUCCESS', hoursAgo: 74 },
  { utr: 'DEMO00000003', amount: '87500.00', bank: 'DEMOBANK-0003', status: 'FAILED', hoursAgo: 50 },
  { utr: 'DEMO00000004', amount: '87500.00', bank: 'DEMOBANK-0004', status: 'SUCCESS', hoursAgo: 26 },
  { utr: 'DEMO00000005', amount: '320.00', bank: 'DEMOBANK-0005', status: 'PENDING', hoursAgo: 2 },
]

/**
 * The demo merchant, partner, keys and settlements: made at the first call, left as they are afterwards. The secrets
 * are kept in a file in `directory` that only its owner may read; if that is lost, new keys are made.
 */
export async function ensureDemo(options: { databaseUrl: string; directory: string; now: Date }): Promise<Demo> {
  const { databaseUrl, directory, now } = options
  const file = join(directory, 'demo.json')
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query('begin')
    // Two services started at the same moment: the second waits, and finds what the first has made.
    await client.query("select pg_advisory_xact_lock(hashtext('demo'))")
    const kept = readKept(file)
    const demo = kept && (await hasKeys(client, kept)) ? kept : await makeDemo(client, now)
    if (demo !== kept) writeFileSync(file, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 })
    await client.query('commit')
    return demo
  } finally {
    await client.end()
  }
}

async function makeDemo(client: pg.Client, now: Date): Promise<Demo> {
  const merchant = await client.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     values ($1, 'Demo Merchant', $2, '5814', 'link', $3)
     on conflict (mid) do nothing`,
    [MID, VPA, now],
  )
  if (merchant.rowCount === 1) await makePartnerAndSettlements(client, now)
  const oldest = await client.query<{ since: Date | null }>(
    'select min(initiated_at) as since from settlements where mid = $1',
    [MID],
  )
  return {
    mid: MID,
    pid: PID,
    merchantKey: await makeKey(client, { mid: MID }, now),
    partnerKey: await makeKey(client, { pid: PID }, now),
    settledSince: (oldest.rows[0]?.since ?? now).toISOString(),
  }
}

async function makePartnerAndSettlements(client: pg.Client, now: Date): Promise<void> {
  await client.query("insert into partners (pid, name, created_at) values ($1, 'Demo Partner', $2)", [PID, now])
  await client.query('insert into partner_merchants (pid, mid) values ($1, $2)', [PID, MID])
  for (const { utr, amount, bank, status, hoursAgo } of SETTLEMENTS) {
    await client.query(
      `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
       values ($1, $2, $3::numeric, $4, $5, $6, $7)`,
      [MID, utr, amount, bank, status, new Date(now.getTime() - hoursAgo * HOUR_MS), now],
    )
  }
}

async function makeKey(client: pg.Client, owner: { mid?: string; pid?: string }, now: Date): Promise<KeyPair> {
  const key = mintKeyPair()
  await client.query(
    `insert into access_keys (public_key, secret_hash, mid, pid, label, created_at)
     values ($1, $2, $3, $4, 'demo', $5)`,
    [key.publicKey, hashSecret(key.secretKey), owner.mid ?? null, owner.pid ?? null, now],
  )
  return key
}

/** They lack when the data were begun anew, by a newer PostgreSQL or by hand. */
async function hasKeys(client: pg.Client, demo: Demo): Promise<boolean> {
  const { rowCount } = await client.query('select 1 from access_keys where public_key = any($1::text[])', [
    [demo.merchantKey.publicKey, demo.partnerKey.publicKey],
  ])
  return rowCount === 2
}

function readKept(file: string): Demo | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Demo
  } catch {
    return undefined
  }
}
