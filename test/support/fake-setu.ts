import { newMerchant, type TestService, unique } from './service.ts'
import { type BesideOptions, type Starter, startServiceBeside } from './service-with-bank.ts'
import { type FakeSetu, startFakeSetu } from './setu-bank.ts'
import { departure } from './setu-schema.ts'

/** Both secrets are valid during a rotation; the first one signs. */
export const SETU_SECRETS = ['first0secret0of0a0test0', 'second0secret0of0a0test'] as const

const CREDENTIALS = { clientId: 'client-of-a-test', clientSecret: 'secret-of-a-test' }

/** Settings with which the service uses a fake Setu. */
export const setuSettings = ({ url, loginUrl }: Pick<FakeSetu, 'url' | 'loginUrl'>) => ({
  apiUrl: url,
  loginUrl,
  ...CREDENTIALS,
  notificationSecrets: SETU_SECRETS,
})

export const SETU: Starter<FakeSetu> = {
  start: (now) => startFakeSetu({ ...CREDENTIALS, notificationSecret: SETU_SECRETS[0], now, check: departure }),
  settings: (bank) => ({ setu: setuSettings(bank) }),
  path: '/acquirer/setu/notification',
}

export const startServiceWithBank = (options?: BesideOptions) => startServiceBeside(SETU, options)

export const newSetuMerchant = ({ db }: Pick<TestService, 'db'>, values: Parameters<typeof newMerchant>[1] = {}) =>
  newMerchant(db, { acquirer: 'setu', acquirerMerchantId: unique('01SETU'), ...values })
