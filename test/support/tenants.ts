import { randomUUID } from 'node:crypto'
import { createAccessKeys, USUAL_RIGHTS } from '../../src/gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../src/gateway/tenants/credentials.ts'
import { checkLogo, type Logo, saveLogo } from '../../src/gateway/tenants/logo.ts'
import { createMerchants, type Merchant } from '../../src/gateway/tenants/merchants.ts'
import { createPartners } from '../../src/gateway/tenants/partners.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import type { Right } from '../../src/platform/rights.ts'
import { logoOf } from './png.ts'

export type Key = { publicKey: string; secretKey: string }
export type NewMerchant = { mid: string; key: Key }
export type NewPartner = { pid: string; key: Key }

/** A merchant and a partner linked to it. */
export type Tenant = { merchant: NewMerchant; partner: NewPartner }

export const unique = (prefix: string) => `${prefix}${randomUUID().replaceAll('-', '').slice(0, 16)}`

export async function newMerchant(
  db: Database,
  values: Partial<
    Pick<
      Merchant,
      | 'mid'
      | 'name'
      | 'vpa'
      | 'payees'
      | 'mcc'
      | 'dynamicQr'
      | 'input'
      | 'expiryMinutes'
      | 'maxExpiryMinutes'
      | 'maxAmount'
    > & {
      acquirer: string
      acquirerMerchantId: string
      fallbackAcquirer: string
      fallbackAcquirerMerchantId: string
    }
  > = {},
): Promise<NewMerchant> {
  const mid = values.mid ?? unique('M')
  const merchant = { mid, name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' as const }
  await createMerchants(db).add({ ...merchant, ...values }, new Date())
  return { mid, key: await newKey(db, { mid }) }
}

/** Gives a merchant a logo of 40 × 40 pixels. */
export async function addLogo(db: Database, mid: string): Promise<Logo> {
  const logo = checkLogo(logoOf())
  await saveLogo(db, mid, logo)
  await createMerchants(db).update(mid, { logo: logo.sha256 })
  return logo
}

export async function newPartner(db: Database, ...mids: string[]): Promise<NewPartner> {
  const pid = unique('P')
  const partners = createPartners(db)
  await partners.add({ pid, name: 'Acme' }, new Date())
  for (const mid of mids) await partners.link(pid, mid)
  return { pid, key: await newKey(db, { pid }) }
}

export async function newTenant(db: Database): Promise<Tenant> {
  const merchant = await newMerchant(db)
  return { merchant, partner: await newPartner(db, merchant.mid) }
}

export async function newKey(
  db: Database,
  owner: { mid: string } | { pid: string },
  rights: readonly Right[] = 'mid' in owner ? USUAL_RIGHTS : ['list'],
  expiresOn?: string,
): Promise<Key> {
  const pair = mintKeyPair()
  const secretHash = hashSecret(pair.secretKey)
  const key = { publicKey: pair.publicKey, secretHash, owner, label: null, rights, expiresOn, now: new Date() }
  await createAccessKeys(db).add(key)
  return pair
}

export function basic({ publicKey, secretKey }: Key): string {
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`
}
