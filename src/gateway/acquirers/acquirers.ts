import { AcquirerError } from '../../errors.ts'
import type { HttpClient } from '../../platform/outbound/http-client.ts'
import type { EnquiryRules } from '../payments/enquiry-times.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { ACCOUNT_KINDS, type AccountKind, type AcquirerSettings, splitAccountName } from './accounts.ts'
import type { Acquirer, AcquirerMerchant, ReadSettled } from './acquirer.ts'
import { cashfree } from './cashfree/client.ts'
import { type ClientOptions, type LimitedClient, type Linker, labelsOf, withLimits } from './client.ts'
import { direct } from './direct/notifications.ts'
import type { Notifications, Notifier } from './notification.ts'
import { phonepe } from './phonepe/client.ts'
import { setu } from './setu/client.ts'

/** Every acquirer that a merchant may have, by name. */
const ACQUIRERS = new Map<string, Acquirer<AcquirerSettings>>(Object.entries({ direct, setu, cashfree, phonepe }))

export const ACQUIRER_NAMES = [...ACQUIRERS.keys()]

/** Names of the acquirers that make their own links. */
export const LINKING_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.client)

/** Names of the acquirers that report their settlements. */
export const SETTLED_NAMES = ACQUIRER_NAMES.filter((name) => ACQUIRERS.get(name)?.settled)

const acquirerOf = (account: string) => ACQUIRERS.get(splitAccountName(account).acquirer)

/** When and how often the acquirer of an account may be queried about payments; undefined if we make the links. */
export const enquiryRulesOf = (account: string): EnquiryRules | undefined => acquirerOf(account)?.enquiryRules

/** The reader of an account's settlements; undefined if the acquirer does not report settlements. */
export const settledReader = ({ name, settings }: AcquirerAccount, http: HttpClient): ReadSettled | undefined =>
  acquirerOf(name)?.settled?.(settings, http)

/** An account at an acquirer. `name` is as accountName makes it; the settings of other acquirers are not in `settings`. */
export type AcquirerAccount = {
  name: string
  settings: AcquirerSettings
  /** Differs after each change of the account. */
  version: string
  /** Why the account cannot be used, as a text for the operator. */
  fault?: string | undefined
  /** Since when the account makes no links. */
  disabledAt: Date | null
}

export type Accounts = ReturnType<typeof createAccounts>

/** The accounts at acquirers: those of the environment, in `settings`, and those in the database, which `load` reads. */
export function createAccounts(settings: AcquirerSettings, load: () => Promise<AcquirerAccount[]> = async () => []) {
  const ofEnvironment = ACQUIRER_NAMES.filter((name) => isSetUp(name, settings)).map(
    (name): AcquirerAccount => ({ name, settings, version: '', disabledAt: null }),
  )

  async function find(name: string): Promise<AcquirerAccount | undefined> {
    const accounts = name.includes(':') ? await load() : ofEnvironment
    return accounts.find((account) => account.name === name)
  }

  /** Advice to the operator about an account that cannot be used; undefined for any other account. */
  async function adviceOn(name: string): Promise<string | undefined> {
    const found = await find(name)
    if (found) return found.fault
    const { acquirer, account } = splitAccountName(name)
    const advice = ACQUIRERS.get(acquirer)?.variables
    if (advice === undefined) return 'this version does not have it'
    return account ? `ops accounts add --account ${account} --acquirer ${acquirer}` : `set ${advice}`
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

    /** How many accounts can tell the service of payments. */
    async countNotifying(): Promise<number> {
      const stored = (await load()).filter(({ fault }) => fault === undefined)
      return stored.length + ofEnvironment.filter(({ name }) => ACQUIRERS.get(name)?.notifications(settings)).length
    },

    /** The reason why a merchant cannot use an account, as a text for the operator; undefined when there is none. */
    async faultOf(name: string, merchant: AcquirerMerchant): Promise<string | undefined> {
      const acquirer = acquirerOf(name)
      if (acquirer === undefined) return `acquirer must be one of ${ACQUIRER_NAMES.join(', ')}`
      const advice = await adviceOn(name)
      if (advice !== undefined) return `the acquirer ${name} is not set up: ${advice}`
      if ((await find(name))?.disabledAt) return `the account ${name} is disabled: ops accounts enable`
      return acquirer.faultOf?.(merchant)
    },

    /** One warning for each account that cannot be used, of the database or of `names`: those that merchants have. */
    async warningsOf(names: readonly string[]): Promise<string[]> {
      const faulty = (await load()).filter(({ fault }) => fault !== undefined)
      return warn([...new Set([...names, ...faulty.map(({ name }) => name)])], notSetUp)
    },

    /** One warning for each of `names`, the accounts of open refunds, that cannot carry them out. */
    refundWarnings: (names: readonly string[]) =>
      warn(names, (name, advice) => `Refunds of the acquirer ${name} wait: ${advice}`),
  }
}

const notSetUp = (name: string, advice: string) => `Merchants of the acquirer ${name} cannot take payments: ${advice}`

/**
 * Whether an acquirer is set up. `direct` always is, because our own links work without notifications. An unknown
 * acquirer is not: a newer version of the service may have stored its name.
 */
function isSetUp(name: string, settings: AcquirerSettings): boolean {
  const acquirer = ACQUIRERS.get(name)
  return acquirer !== undefined && (!acquirer.client || acquirer.notifications(settings) !== undefined)
}

export type Acquirers = ReturnType<typeof createAcquirers>

/** Clients and notifications of the accounts. Each is made once, and anew after a change of its account. */
export function createAcquirers(accounts: Accounts, http: HttpClient, options: ClientOptions) {
  type Made = { version: string; client: LimitedClient | undefined; notifications: Notifications | undefined }
  const made = new Map<string, Made>()

  function make(account: AcquirerAccount): Made {
    const { name, settings, version } = account
    const before = made.get(name)
    if (before?.version === version) return before
    const acquirer = acquirerOf(name)
    const client = acquirer?.client?.(settings, http, options.elapsedMs)
    const notifications = acquirer?.notifications(settings)
    const anew = { version, client: client && withLimits(account, client, options), notifications }
    made.set(name, anew)
    return anew
  }

  async function find(name: string): Promise<Made | undefined> {
    const account = await accounts.find(name)
    return account && make(account)
  }

  return {
    /** The client of an account that makes its own links; undefined if we make the links, or the account cannot be used. */
    clientOf: async (name: string) => (await find(name))?.client,

    /** The notifications of an account; undefined if the account cannot be used. */
    async notifierOf(name: string): Promise<Notifier | undefined> {
      const account = await accounts.find(name)
      const notifications = account && make(account).notifications
      return notifications && { account: account.name, isDisabled: account.disabledAt !== null, notifications }
    },

    /**
     * The clients that make a merchant's links, in the order in which they are asked: one that did not answer lately comes
     * last. None if we make the links. Throws an AcquirerError if no account of the merchant makes links.
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
        const advice = (await accounts.adviceOn(name)) ?? 'the account is disabled: ops accounts enable'
        options.log.error({ mid, acquirer: name }, notSetUp(name, advice))
      }
      if (linkers.length === 0) {
        const error = new AcquirerError('refused', 'no account of the merchant makes links')
        throw Object.assign(error, { accountKind: ACCOUNT_KINDS.find((kind) => kinds.includes(kind)) })
      }
      return linkers.sort((a, b) => Number(b.client.isReachable()) - Number(a.client.isReachable()))
    },
  }
}
