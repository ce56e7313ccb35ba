import type { Database } from '../../src/db/pool.ts'
import { type FakeSetu, startFakeSetu } from '../support/setu-bank.ts'
import { departure } from '../support/setu-schema.ts'
import { type NewMerchant, newMerchant } from '../support/tenants.ts'

const CREDENTIALS = { clientId: 'client-of-a-test', clientSecret: 'secret-of-a-test' }
const NOTIFICATION_SECRET = 'secret0of0a0test0run0'

/** A bank that plays Setu, a merchant of its own, and the settings by which the service reaches it. */
export async function openBank(
  db: Database,
): Promise<{ bank: FakeSetu; merchant: NewMerchant; settings: Record<string, string> }> {
  const options = { ...CREDENTIALS, notificationSecret: NOTIFICATION_SECRET, now: () => new Date(), check: departure }
  const bank = await startFakeSetu(options)
  const settings = {
    SETU_API_URL: bank.url,
    SETU_LOGIN_URL: bank.loginUrl,
    SETU_CLIENT_ID: CREDENTIALS.clientId,
    SETU_CLIENT_SECRET: CREDENTIALS.clientSecret,
    SETU_NOTIFICATION_SECRETS: NOTIFICATION_SECRET,
  }
  const merchant = await newMerchant(db, { acquirer: 'setu', acquirerMerchantId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' })
  return { bank, merchant, settings }
}
