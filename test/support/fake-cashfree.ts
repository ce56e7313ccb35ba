import type { CashfreeSettings } from '../../src/gateway/acquirers/accounts.ts'
import { type FakeCashfree, startFakeCashfree } from './cashfree-bank.ts'
import { departure } from './cashfree-schema.ts'
import { newMerchant, PUBLIC_URL, type TestService, unique } from './service.ts'
import type { Starter } from './service-with-bank.ts'

/** Both secrets are valid during a rotation; the first one is the service's and signs notifications. */
export const CASHFREE_SECRETS = ['first-secret-of-a-test', 'second-secret-of-a-test'] as const

const CLIENT_ID = 'client-of-a-test'

/** Settings with which the service uses a fake Cashfree. */
export const cashfreeSettings = ({ apiUrl }: Pick<FakeCashfree, 'apiUrl'>): CashfreeSettings => ({
  apiUrl,
  clientId: CLIENT_ID,
  clientSecret: CASHFREE_SECRETS[0],
  notificationSecrets: CASHFREE_SECRETS,
  publicUrl: PUBLIC_URL,
})

export const CASHFREE: Starter<FakeCashfree> = {
  start: (now) => startFakeCashfree({ clientId: CLIENT_ID, clientSecret: CASHFREE_SECRETS[0], now, check: departure }),
  settings: (bank) => ({ cashfree: cashfreeSettings(bank) }),
  path: '/acquirer/cashfree/notification',
}

/** Creates a merchant who accepts the bank's payees. */
export const newCashfreeMerchant = ({ db }: Pick<TestService, 'db'>) =>
  newMerchant(db, { acquirer: 'cashfree', acquirerMerchantId: unique('CF'), payees: ['cf.demo*@icici'] })
