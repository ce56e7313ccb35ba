import { expect } from 'vitest'
import type { AcquirerSettings } from '../../src/gateway/acquirers/accounts.ts'
import { checkAfterEach, stopAtEnd } from './at-end.ts'
import { startService, type TestService } from './service.ts'

export type BesideOptions = Omit<NonNullable<Parameters<typeof startService>[0]>, 'acquirers'>

/**
 * Long time limits, so that a busy machine does not turn a correct response into a 503. The tests run pending jobs
 * themselves.
 */
export const PATIENT_LIMITS = {
  outbound: { acquirerMs: 30_000 },
  acquirers: { requestMs: 30_000 },
  webhooks: { lookIntervalMs: 3_600_000 },
}

type Bank = { notifyUrl: string | undefined; violations: string[]; goAway: () => Promise<void> }

/**
 * How to start the fake of an acquirer, the service's settings for it, and the path that receives its notifications.
 */
export type Starter<Started extends Bank> = {
  start: (now: () => Date) => Promise<Started>
  settings: (bank: Started) => Partial<AcquirerSettings>
  path: string
}

const started: Bank[] = []
checkAfterEach(() =>
  expect(
    started.flatMap(({ violations }) => violations.splice(0)),
    'requests that the acquirer does not document',
  ).toEqual([]),
)

/**
 * Starts the fake bank of an acquirer. A request that violates the acquirer's documents fails the test that sent it.
 */
export async function startBank<Started extends Bank>(
  { start }: Pick<Starter<Started>, 'start'>,
  now: () => Date,
): Promise<Started> {
  const bank = await start(now)
  started.push(bank)
  stopAtEnd(() => {
    started.splice(started.indexOf(bank), 1)
    return bank.goAway()
  })
  return bank
}

/** Starts a service and the bank of one of its acquirers, which reach each other over the network. */
export async function startServiceBeside<Beside extends Bank>(
  { start, settings, path }: Starter<Beside>,
  options: BesideOptions = {},
): Promise<{ service: TestService; bank: Beside }> {
  // The service owns the clock, but needs the bank's address first.
  const clock = { now: () => new Date() }
  const bank = await startBank({ start }, () => clock.now())
  const service = await startService({ ...options, acquirers: settings(bank) })
  clock.now = service.clock.now
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  bank.notifyUrl = url + path
  return { service, bank }
}
