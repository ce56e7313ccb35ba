import type { PhonepeSettings } from '../../src/gateway/acquirers/accounts.ts'
import { type FakePhonepe, startFakePhonepe } from './phonepe-bank.ts'
import { departure } from './phonepe-schema.ts'
import { newMerchant, type TestService, unique } from './service.ts'
import type { Starter } from './service-with-bank.ts'

/** An HMAC key, used by the bank, and an SHA user and password: both are valid during a rotation. */
export const PHONEPE_SECRETS = ['key0of0the0kind0HMAC', 'user_1:Passw0rd9'] as const

const CREDENTIALS = { clientId: 'client-of-a-test', clientVersion: '1', clientSecret: 'secret of a test&+=%' }

/** Settings with which the service uses a fake PhonePe. */
export const phonepeSettings = ({ apiUrl, loginUrl }: Pick<FakePhonepe, 'apiUrl' | 'loginUrl'>): PhonepeSettings => ({
  apiUrl,
  loginUrl,
  ...CREDENTIALS,
  notificationSecrets: PHONEPE_SECRETS,
})

export const PHONEPE: Starter<FakePhonepe> = {
  start(now) {
    return startFakePhonepe({ ...CREDENTIALS, webhookSecret: PHONEPE_SECRETS[0], now, check: departure })
  },
  settings: (bank) => ({ phonepe: phonepeSettings(bank) }),
  path: '/acquirer/phonepe/notification',
}

/** Creates a merchant who accepts the bank's payee. */
export const newPhonepeMerchant = ({ db }: Pick<TestService, 'db'>, values: Parameters<typeof newMerchant>[1] = {}) =>
  newMerchant(db, {
    acquirer: 'phonepe',
    acquirerMerchantId: unique('PP'),
    payees: ['demomerchantonline@ybl', 'demomerchantonline@axl'],
    ...values,
  })
