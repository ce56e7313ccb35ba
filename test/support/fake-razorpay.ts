import type { RazorpaySettings } from '../../src/gateway/acquirers/accounts.ts'
import { type FakeRazorpay, startFakeRazorpay } from './razorpay-bank.ts'
import { departure } from './razorpay-schema.ts'
import { newMerchant, type TestService, unique } from './service.ts'
import type { Starter } from './service-with-bank.ts'

/** Both secrets are valid during a rotation; the first one signs notifications. */
export const RAZORPAY_SECRETS = ['first-secret-of-a-test', 'second-secret-of-a-test'] as const

const CLIENT = { clientId: 'rzp_test_made_up', clientSecret: 'key-secret-of-a-test' }

/** Settings with which the service uses a fake Razorpay. Its links live as long as the orders of most tests. */
export const razorpaySettings = ({ apiUrl }: Pick<FakeRazorpay, 'apiUrl'>): RazorpaySettings => ({
  apiUrl,
  ...CLIENT,
  notificationSecrets: RAZORPAY_SECRETS,
  linkMinutes: 15,
})

export const RAZORPAY: Starter<FakeRazorpay> = {
  start: (now) => startFakeRazorpay({ ...CLIENT, webhookSecret: RAZORPAY_SECRETS[0], now, check: departure }),
  settings: (bank) => ({ razorpay: razorpaySettings(bank) }),
  path: '/acquirer/razorpay/notification',
}

/** Creates a merchant who accepts the bank's payees. */
export const newRazorpayMerchant = ({ db }: Pick<TestService, 'db'>) =>
  newMerchant(db, { acquirer: 'razorpay', acquirerMerchantId: unique('RZ'), payees: ['rzr.demo*@icici'] })
