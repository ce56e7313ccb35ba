import type { PhonepeSettings } from '../../src/gateway/acquirers/accounts.ts'
import { type FakePhonepe, startFakePhonepe } from './phonepe-bank.ts'
import { departure } from './phonepe-schema.ts'
import { newMerchant, type TestService, unique } from './service.ts'
import type { Starter } from './service-with-bank.ts'

/** A key of the kind HMAC, which is the bank's, and a user and password of the kind SHA: both count while one replaces the other. */
export const PHONEPE_SECRETS = ['key0of0the0kind0HMAC', 'user_1:Passw0rd9'] as const

const CREDENTIALS = { clientId: 'client-of-a-test', clientVersion: '1', clientSecret: 'secret of a test&+=%' }

/** What the service needs to know of a bank that speaks as PhonePe does. */
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

/** A merchant who accepts the payee that the bank makes. */
export const newPhonepeMerchant = ({ db }: Pick<TestService, 'db'>, values: Parameters<typeof newMerchant>[1] = {}) =>
  newMerchant(db, {
    acquirer: 'phonepe',
    acquirerMerchantId: unique('PP'),
    payees: ['demomerchantonline@ybl', 'demomerchantonline@axl'],
    ...values,
  })
