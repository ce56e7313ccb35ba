import { createAccessKeys } from '../../src/auth/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../src/auth/credentials.ts'
import type { Database } from '../../src/db/pool.ts'
import { createMerchants } from '../../src/merchants/merchants.ts'
import { createPartners } from '../../src/merchants/partners.ts'
import type { LoadRequest } from './load.ts'

/** Makes a merchant with a key, and answers its createPaymentIntent. */
export async function newMerchantRequest(db: Database, mid: string): Promise<LoadRequest> {
  const payee = { name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814' }
  await createMerchants(db).add({ mid, ...payee, dynamicQr: 'link' }, new Date())
  return newCreateRequest(db, mid)
}

/** Makes a key of merchant `mid`, and answers its createPaymentIntent: the seven required fields and no order_id. */
export async function newCreateRequest(db: Database, mid: string): Promise<LoadRequest> {
  return formRequest('/v1/payments/createPaymentIntent', await newCredentials(db, { mid }), {
    mid,
    amount: '200',
    redirect_url: 'https://shop.example.in/thanks?order=1001',
    note: 'Order 1001',
    customer_name: 'Asha Rao',
    customer_email: 'asha@example.in',
    customer_mobile: '0123456789',
  })
}

/** Makes a partner of `mid` with a key, and answers its fetchSettlementList of the days `from` to `till`, dd-mm-yyyy. */
export async function newPartnerRequest(
  db: Database,
  mid: string,
  from: string,
  till: string,
  pid = 'BENCH_PARTNER',
): Promise<LoadRequest> {
  const partners = createPartners(db)
  await partners.add({ pid, name: 'Acme' }, new Date())
  await partners.link(pid, mid)
  const fields = { pid, mid, s_date: from, e_date: till }
  return formRequest('/v1/partner/fetchSettlementList', await newCredentials(db, { pid }), fields)
}

async function newCredentials(db: Database, owner: { mid: string } | { pid: string }): Promise<string> {
  const { publicKey, secretKey } = mintKeyPair()
  const secretHash = hashSecret(secretKey)
  await createAccessKeys(db).add({ publicKey, secretHash, owner, label: null, now: new Date() })
  return `Basic ${Buffer.from(`${publicKey}:${secretKey}`).toString('base64')}`
}

function formRequest(path: string, authorization: string, fields: Record<string, string>): LoadRequest {
  return {
    path,
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  }
}

/** The answer to `request`, once; throws when it is no success. */
export async function answerTo(url: string, { path, headers, body }: LoadRequest): Promise<string> {
  const response = await fetch(url + path, { method: 'POST', headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url}${path} answered ${response.status}: ${text}`)
  return text
}
