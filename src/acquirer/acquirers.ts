import { unavailable } from '../errors.ts'
import type { HttpClient } from '../outbound/http-client.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { AcquirerSettings } from './accounts.ts'
import type { Acquirer, AcquirerMerchant, ReadSettled } from './acquirer.ts'
import { cashfree } from './cashfree.ts'
import { type AcquirerClient, type ClientOptions, withLimits } from './client.ts'
import { direct } from './direct.ts'
import type { Notifications } from './notification.ts'
import { setu } from './setu.ts'

/** Every acquirer that a merchant may have, by name. */
const ACQUIRERS = new Map<string, Acquirer<AcquirerSettings>>(Object.entries({ direct, setu, cashfree }))

export const ACQUIRER_NAMES = [...ACQUIRERS.keys()]

/** Names of the acquirers that make their own links. */
export const LINKING_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.client)

/** Names of the acquirers that report their settlements. */
export const SETTLED_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.settled)

/** The reader of an acquirer's settlements; undefined if the acquirer does not report settlements or is not set up. */
export const settledReader = (name: string, settings: AcquirerSettings, http: HttpClient): ReadSettled | undefined =>
  ACQUIRERS.get(name)?.settled?.(settings, http)

/** The reason why a merchant cannot use this acquirer, as a text for the operator; undefined when there is none. */
export function acquirerFault(
  name: string,
  merchant: AcquirerMerchant,
  settings: AcquirerSettings,
): string | undefined {
  const acquirer = ACQUIRERS.get(name)
  if (acquirer === undefined) return `acquirer must be one of ${ACQUIRER_NAMES.join(', ')}`
  if (!isSetUp(name, settings)) {
    return `the acquirer ${name} is not set up: set ${acquirer.variables}`
  }
  return acquirer.faultOf?.(merchant)
}

/** A warning for each acquirer in `names`, those of open refunds, that is not set up and so cannot carry them out. */
export const refundWarnings = (names: readonly string[], settings: AcquirerSettings): string[] =>
  names
    .filter((name) => !isSetUp(name, settings))
    .map((name) => `Refunds of the acquirer ${name} wait: ${adviceOn(name)}`)

/**
 * Whether an acquirer is set up. `direct` always is, because our own links work without notifications. An unknown
 * acquirer is not: a newer version of the service may have stored its name.
 */
function isSetUp(name: string, settings: AcquirerSettings): boolean {
  const acquirer = ACQUIRERS.get(name)
  return acquirer !== undefined && (!acquirer.client || acquirer.notifications(settings) !== undefined)
}

export type Acquirers = ReturnType<typeof createAcquirers>

/** The options of all clients. `elapsedMs` is a monotonic clock. */
type AcquirersOptions = ClientOptions & { elapsedMs: () => number }

export function createAcquirers(settings: AcquirerSettings, http: HttpClient, options: AcquirersOptions) {
  const clients = new Map<string, AcquirerClient>()
  const notifications: Notifications[] = []
  for (const [name, acquirer] of ACQUIRERS) {
    const client = acquirer.client?.(settings, http, options.elapsedMs)
    if (client) clients.set(name, withLimits(name, client, options))
    const taken = acquirer.notifications(settings)
    if (taken) notifications.push(taken)
  }
  return {
    /** Clients of the acquirers that make their own links, by acquirer. */
    clients,
    notifications,
    /** When and how often each of these acquirers may be queried about payments. */
    enquiryRules: new Map([...clients].map(([name, { enquiryRules }]) => [name, enquiryRules])),

    /** The client that makes a merchant's links; undefined if we do. Throws 503 if the acquirer is not set up. */
    clientOf({ mid, acquirer }: Merchant): AcquirerClient | undefined {
      if (isSetUp(acquirer, settings)) return clients.get(acquirer)
      options.onCall(acquirer, 'createLink', 'refused')
      options.log.error({ mid, acquirer }, notSetUp(acquirer))
      throw unavailable()
    },

    /** One warning for each acquirer that is not set up. `names` are the acquirers that merchants have. */
    warningsOf: (names: readonly string[]) => names.filter((name) => !isSetUp(name, settings)).map(notSetUp),
  }
}

const notSetUp = (name: string) => `Merchants of the acquirer ${name} cannot take payments: ${adviceOn(name)}`

/** Advice to the operator about an acquirer that is not set up. */
export function adviceOn(name: string): string {
  const advice = ACQUIRERS.get(name)?.variables
  return advice ? `set ${advice}` : 'this version does not have it'
}
