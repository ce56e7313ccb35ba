import { AcquirerError } from '../../errors.ts'
import type { HttpClient } from '../../platform/outbound/http-client.ts'
import { HIGHEST_EXPIRY_MINUTES, LONGEST_EXPIRY_MINUTES } from '../payments/order-lifetime.ts'
import type { StatusCheckRules } from '../payments/status-check-times.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { ACCOUNT_KINDS, type AccountKind, type AcquirerSettings, splitAccountName } from './accounts.ts'
import type { Acquirer, AcquirerMerchant, ReadSettled } from './acquirer.ts'
import { cashfree } from './cashfree/client.ts'
import { type ClientOptions, type LimitedClient, type Linker, labelsOf, withLimits } from './client.ts'
import { direct } from './direct/notifications.ts'
import type { Notifications, Notifier } from './notification.ts'
import { phonepe } from './phonepe/client.ts'
import { razorpay } from './razorpay/client.ts'
import { setu } from './setu/client.ts'

/** Every acquirer that a merchant may use, by name. */
const ACQUIRERS = new Map<string, Acquirer<AcquirerSettings>>(
  Object.entries({ direct, setu, cashfree, phonepe, razorpay }),
)

export const ACQUIRER_NAMES = [...ACQUIRERS.keys()]

/** Names of the acquirers that create their own payment links. */
export const LINKING_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.client)

/** Names of the acquirers that report settlements through their API. */
export const SETTLED_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.settled)

const acquirerOf = (account: string) => ACQUIRERS.get(splitAccountName(account).acquirer)

/**
 * When and how often the service may check payments at an account's acquirer; undefined if the service itself creates
 * the links.
 */
export const statusCheckRulesOf = (account: string): StatusCheckRules | undefined =>
  acquirerOf(account)?.statusCheckRules

/**
 * Returns the settlement reader of an account; undefined if the acquirer does not report settlements through its API.
 */
export const settledReader = ({ name, settings }: AcquirerAccount, http: HttpClient): ReadSettled | undefined =>
  acquirerOf(name)?.settled?.(settings, http)

/**
 * An acquirer account. `accountName` formats the name of the account. `settings` contains only the settings for this
 * acquirer.
 */
export type AcquirerAccount = {
  name: string
  settings: AcquirerSettings
  /** Changes with every change of the account. */
  version: string
  /** Why the account cannot be used, as a message to the operator. */
  error?: string | undefined
  /** Time from which the account creates no links; null while the account is enabled. */
  disabledAt: Date | null
}

export type Accounts = ReturnType<typeof createAccounts>

/**
 * Returns all acquirer accounts: accounts that the environment configures, from `settings`, and accounts in the
 * database, which `load` reads.
 */
export function createAccounts(settings: AcquirerSettings, load: () => Promise<AcquirerAccount[]> = async () => []) {
  const ofEnvironment = ACQUIRER_NAMES.filter((name) => isSetUp(name, settings)).map(
    (name): AcquirerAccount => ({ name, settings, version: '', disabledAt: null }),
  )

  async function find(name: string): Promise<AcquirerAccount | undefined> {
    const accounts = name.includes(':') ? await load() : ofEnvironment
    return accounts.find((account) => account.name === name)
  }

  /** Returns the operator's next step for an account that cannot be used; undefined for a usable account. */
  async function adviceOn(name: string): Promise<string | undefined> {
    const found = await find(name)
    if (found) return found.error
    const { acquirer, account } = splitAccountName(name)
    const advice = ACQUIRERS.get(acquirer)?.variables
    if (advice === undefined) return 'this version does not support it'
    return account ? `run ops accounts add --account ${account} --acquirer ${acquirer}` : `set ${advice}`
  }

  async function warn(names: readonly string[], text: (name: string, advice: string) => string): Promise<string[]> {
    const warnings = names.map(async (name) => {
      const advice = await adviceOn(name)
      return advice === undefined ? [] : [text(name, advice)]
    })
    return (await Promise.all(warnings)).flat()
  }

  return {
    find,
    adviceOn,

    /** Returns the names of all accounts. */
    listNames: async () => [...ofEnvironment, ...(await load())].map(({ name }) => name),

    /** Counts the accounts whose payment notifications the service can verify. */
    async countNotifying(): Promise<number> {
      const stored = (await load()).filter(({ error: problem }) => problem === undefined)
      return stored.length + ofEnvironment.filter(({ name }) => ACQUIRERS.get(name)?.notifications(settings)).length
    },

    /**
     * Returns why a merchant cannot use an account, as a message to the operator; undefined if the merchant can use the
     * account.
     */
    async errorOf(name: string, merchant: AcquirerMerchant): Promise<string | undefined> {
      const acquirer = acquirerOf(name)
      if (acquirer === undefined) return `acquirer must be one of ${ACQUIRER_NAMES.join(', ')}`
      const advice = await adviceOn(name)
      if (advice !== undefined) return `the acquirer ${name} is not set up: ${advice}`
      if ((await find(name))?.disabledAt) return `the account ${name} is disabled: run ops accounts enable`
      return acquirer.errorOf?.(merchant)
    },

    /**
     * Returns why an order of a merchant could be open for longer than one of its accounts allows;
     * undefined if no order can.
     */
    async expiryErrorOf(names: readonly string[], merchant: AcquirerMerchant): Promise<string | undefined> {
      const found = await Promise.all(names.map(async (name) => ({ name, longest: longestOf(await find(name)) })))
      const { name, longest } = found.reduce((a, b) => (b.longest < a.longest ? b : a))
      return longestOrderOf(merchant) > longest ? tooLong(name, longest) : undefined
    },

    /**
     * Returns one warning for each account in the database or in `ofMerchants` that cannot be used, or whose merchants
     * have longer orders than the account allows. `longestOrder` is in minutes.
     */
    async warningsOf(ofMerchants: readonly { acquirer: string; longestOrder: number }[]): Promise<string[]> {
      const invalid = (await load()).filter(({ error: problem }) => problem !== undefined)
      const names = ofMerchants.map(({ acquirer }) => acquirer)
      const long = ofMerchants.map(async ({ acquirer, longestOrder }) => {
        const longest = longestOf(await find(acquirer))
        return longestOrder > longest
          ? [`Merchants have orders of up to ${longestOrder} minutes, but ${tooLong(acquirer, longest)}`]
          : []
      })
      return [
        ...(await warn([...new Set([...names, ...invalid.map(({ name }) => name)])], notSetUp)),
        ...(await Promise.all(long)).flat(),
      ]
    },

    /**
     * Returns one warning for each account in `names` that cannot send refunds. `names` are the accounts of open
     * refunds.
     */
    refundWarnings: (names: readonly string[]) =>
      warn(names, (name, advice) => `Refunds at the acquirer ${name} are waiting: ${advice}`),
  }
}

const longestOf = (account: AcquirerAccount | undefined) =>
  (account && acquirerOf(account.name)?.longestExpiryMinutes?.(account.settings)) ?? HIGHEST_EXPIRY_MINUTES

/** An absent setting is LONGEST_EXPIRY_MINUTES: the usual maximum, and the highest INTENT_EXPIRY_MINUTES. */
const longestOrderOf = ({ expiryMinutes, maxExpiryMinutes }: AcquirerMerchant) =>
  Math.max(expiryMinutes ?? LONGEST_EXPIRY_MINUTES, maxExpiryMinutes ?? LONGEST_EXPIRY_MINUTES)

const tooLong = (name: string, longest: number) =>
  `${name} accepts orders of at most ${longest} minutes: set --expiry-minutes and --max-expiry-minutes to ${longest} or less`

const notSetUp = (name: string, advice: string) => `Merchants of the acquirer ${name} cannot accept payments: ${advice}`

/**
 * Whether an acquirer is set up. `direct` is always set up, because the service's own links work without notifications.
 * An acquirer that this version does not know is not set up: a newer version may have stored the acquirer's name.
 */
function isSetUp(name: string, settings: AcquirerSettings): boolean {
  const acquirer = ACQUIRERS.get(name)
  return acquirer !== undefined && (!acquirer.client || acquirer.notifications(settings) !== undefined)
}

/**
 * Clients and notifications of the acquirer accounts. Each client is created once, and again after its account changes.
 */
export function createAcquirers(accounts: Accounts, http: HttpClient, options: ClientOptions) {
  type Created = { version: string; client: LimitedClient | undefined; notifications: Notifications | undefined }
  const created = new Map<string, Created>()

  function make(account: AcquirerAccount): Created {
    const { name, settings, version } = account
    const before = created.get(name)
    if (before?.version === version) return before
    const acquirer = acquirerOf(name)
    const client = acquirer?.client?.(settings, http, options.elapsedMs)
    const notifications = acquirer?.notifications(settings)
    const anew = { version, client: client && withLimits(account, client, options), notifications }
    created.set(name, anew)
    return anew
  }

  async function find(name: string): Promise<Created | undefined> {
    const account = await accounts.find(name)
    return account && make(account)
  }

  return {
    /**
     * Returns the client of an account that creates its own links; undefined if the service itself creates the links or
     * the account cannot be used.
     */
    clientOf: async (name: string) => (await find(name))?.client,

    /** Returns the notifications of an account; undefined if the account cannot be used. */
    async notifierOf(name: string): Promise<Notifier | undefined> {
      const account = await accounts.find(name)
      const notifications = account && make(account).notifications
      return notifications && { account: account.name, isDisabled: account.disabledAt !== null, notifications }
    },

    /**
     * Returns the clients that create a merchant's links, in the order of attempts: an account that recently failed to
     * respond comes last. The list is empty if the service itself creates the links. Throws an AcquirerError if none of
     * the merchant's accounts can create links.
     */
    async linkersOf({ mid, ...merchant }: Merchant): Promise<Linker[]> {
      if (merchant.acquirer === 'direct') return []
      const first = { name: merchant.acquirer, merchantId: merchant.acquirerMerchantId, isFallback: false }
      const next = {
        name: merchant.fallbackAcquirer,
        merchantId: merchant.fallbackAcquirerMerchantId,
        isFallback: true,
      }
      const linkers: (Linker & { client: LimitedClient })[] = []
      const kinds: AccountKind[] = []
      for (const { name, merchantId, isFallback } of [first, next]) {
        if (name === null) continue
        const account = await accounts.find(name)
        const labels = labelsOf(account ?? { name, disabledAt: null })
        kinds.push(labels.account)
        const client = account && !account.disabledAt ? make(account).client : undefined
        if (client) {
          linkers.push({
            client,
            merchantId: merchantId ?? '',
            isFallback,
            kind: labels.account,
            firstKind: kinds[0] as AccountKind,
          })
          continue
        }
        options.onCall(labels, 'createLink', 'refused')
        const advice = (await accounts.adviceOn(name)) ?? 'the account is disabled: run ops accounts enable'
        options.log.error({ mid, acquirer: name }, notSetUp(name, advice))
      }
      if (linkers.length === 0) {
        const error = new AcquirerError('refused', "none of the merchant's acquirer accounts can create links")
        throw Object.assign(error, { accountKind: ACCOUNT_KINDS.find((kind) => kinds.includes(kind)) })
      }
      return linkers.sort((a, b) => Number(b.client.isReachable()) - Number(a.client.isReachable()))
    },
  }
}
