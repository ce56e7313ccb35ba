import { createHmac } from 'node:crypto'
import { createAccessKeys } from '../../src/auth/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../src/auth/credentials.ts'
import type { Database } from '../../src/db/pool.ts'
import { createMerchants } from '../../src/merchants/merchants.ts'
import { createPartners } from '../../src/merchants/partners.ts'

/** Known to the test's own service only. */
export const ACQUIRER_SECRET = 'shared-secret-of-the-fault-tests'

/** More than the service reads in one piece, so that it has to be streamed. */
const LONG_LIST_ROWS = 3_000

/** A merchant and its partner, with the Authorization that each sends. */
export type Tenant = { mid: string; pid: string; merchantAuthorization: string; partnerAuthorization: string }

/** A tenant with settlements: one on 01-01-2026, and `longListRows` on 02-01-2026. */
export async function newTenant(db: Database, mid: string, longListRows = LONG_LIST_ROWS): Promise<Tenant> {
  const pid = `PARTNER_OF_${mid}`
  const now = new Date()
  const payee = { name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' as const }
  await createMerchants(db).add({ mid, ...payee }, now)
  await createPartners(db).add({ pid, name: 'Acme' }, now)
  await createPartners(db).link(pid, mid)
  await db.query(
    `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
     select $1, to_char(i, 'FM000000000000'), 1000, 'BRN' || i, 'SUCCESS',
            case when i = 0 then timestamptz '2026-01-01 06:00:00Z'
                 else timestamptz '2026-01-02 06:00:00Z' + i * interval '10 milliseconds' end, now()
       from generate_series(0, $2::int) i`,
    [mid, longListRows],
  )
  await db.query('analyze settlements')
  return {
    mid,
    pid,
    merchantAuthorization: (await newKey(db, { mid })).authorization,
    partnerAuthorization: (await newKey(db, { pid })).authorization,
  }
}

/** The same merchant with `count` other partners: each of them reads one long list at a time. */
export function withPartners(db: Database, tenant: Tenant, count: number): Promise<Tenant[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const pid = `${tenant.pid}_${i}`
      await createPartners(db).add({ pid, name: 'Acme' }, new Date())
      await createPartners(db).link(pid, tenant.mid)
      return { ...tenant, pid, partnerAuthorization: (await newKey(db, { pid })).authorization }
    }),
  )
}

export async function newKey(db: Database, owner: { mid: string } | { pid: string }) {
  const { publicKey, secretKey } = mintKeyPair()
  const secretHash = hashSecret(secretKey)
  await createAccessKeys(db).add({ publicKey, secretHash, owner, label: null, now: new Date() })
  return { publicKey, authorization: `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}` }
}

export function signature(body: string): string {
  const t = Math.floor(Date.now() / 1000)
  return `t=${t},v1=${createHmac('sha256', ACQUIRER_SECRET).update(`${t}.${body}`).digest('hex')}`
}
