import type { CashfreeSettings } from '../../src/gateway/acquirers/accounts.ts'
import { type FakeCashfree, startFakeCashfree } from './cashfree-bank.ts'
import { departure } from './cashfree-schema.ts'
import { newMerchant, PUBLIC_URL, type TestService, unique } from './service.ts'
import type { Starter } from './service-with-bank.ts'

/** The first one is ours, and signs; both are valid while the operator changes over. */
export const CASHFREE_SECRETS = ['first-secret-of-a-test', 'second-secret-of-a-test'] as const

const CLIENT_ID = 'client-of-a-test'

/** What the service needs to know of a bank that speaks as Cashfree does. */
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

/** A merchant who accepts the payees that the bank makes. */
export const newCashfreeMerchant = ({ db }: Pick<TestService, 'db'>) =>
  newMerchant(db, { acquirer: 'cashfree', acquirerMerchantId: unique('CF'), payees: ['cf.demo*@icici'] })
