import { expect } from 'vitest'
import { checkAfterEach, stopAtEnd } from './at-end.ts'
import { newMerchant, startService, type TestService, unique } from './service.ts'
import { type FakeSetu, startFakeSetu } from './setu-bank.ts'
import { departure } from './setu-schema.ts'

/** The first one signs; both are valid while the operator changes over. */
export const SETU_SECRETS = ['first0secret0of0a0test0', 'second0secret0of0a0test']

const CREDENTIALS = { clientId: 'client-of-a-test', clientSecret: 'secret-of-a-test' }

const fakes: FakeSetu[] = []
checkAfterEach(() =>
  expect(
    fakes.flatMap(({ violations }) => violations.splice(0)),
    'requests that Setu does not document',
  ).toEqual([]),
)

/** A bank that speaks as Setu does. A request that departs from Setu's documents fails the test that made it. */
export async function startBank(now: () => Date, seed?: number) {
  const fake = await startFakeSetu({
    ...CREDENTIALS,
    notificationSecret: SETU_SECRETS[0] as string,
    now,
    check: departure,
    ...(seed !== undefined && { seed }),
  })
  fakes.push(fake)
  stopAtEnd(() => {
    fakes.splice(fakes.indexOf(fake), 1)
    return fake.goAway()
  })
  return fake
}

/** What the service needs to know of that bank. */
export const setuSettings = ({ url, loginUrl }: Pick<FakeSetu, 'url' | 'loginUrl'>) => ({
  apiUrl: url,
  loginUrl,
  ...CREDENTIALS,
  notificationSecrets: SETU_SECRETS,
})

/** A service and the bank that its merchants of Setu have, each of which reaches the other over the network. */
export async function startServiceWithBank(
  options: Omit<Parameters<typeof startService>[0], 'setu'> = {},
): Promise<{ service: TestService; bank: FakeSetu }> {
  // The service has the clock, and needs the bank's address first.
  const clock = { now: () => new Date() }
  const bank = await startBank(() => clock.now())
  const service = await startService({ ...options, setu: setuSettings(bank) })
  clock.now = service.clock.now
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  bank.notifyUrl = `${url}/acquirer/setu/notification`
  return { service, bank }
}

export const newSetuMerchant = ({ db }: Pick<TestService, 'db'>, values: Parameters<typeof newMerchant>[1] = {}) =>
  newMerchant(db, { acquirer: 'setu', acquirerMerchantId: unique('01SETU'), ...values })
