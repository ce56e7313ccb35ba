import { cached } from '../db/cached.ts'
import type { Queryable } from '../db/pool.ts'
import type { Limits } from '../limits.ts'
import { type SealingKeys, unsealAll } from '../sealing.ts'
import { createAcquirerAccounts, type StoredAccount } from '../tenants/acquirer-accounts.ts'
import { type AcquirerSettings, readAccount, type Service } from './accounts.ts'
import { type Accounts, type AcquirerAccount, createAccounts } from './acquirers.ts'

/** The accounts of the environment, in `config`, and those in the database. Commands pass no `publicUrl`. */
export function openAccounts(
  db: Queryable,
  { acquirers, webhooks, production = false, publicUrl }: AccountsConfig,
  lookUps: Limits['lookUps'],
): Accounts {
  const service = publicUrl === undefined ? undefined : { production, publicUrl }
  const load = async () =>
    (await createAcquirerAccounts(db).list()).map((row) => openAccount(row, webhooks.sealingKeys, service))
  return createAccounts(acquirers, cached(load, lookUps))
}

type AccountsConfig = Partial<Service> & { acquirers: AcquirerSettings; webhooks: { sealingKeys: SealingKeys } }

/** The owner of an account's secrets, for sealing.ts. */
export const ownerOfAccount = (name: string) => `account/${name}`

/**
 * Opens an account of the database. During a rotation the earlier secrets of notifications count too. An account that does
 * not open, or has settings that the service refuses, has a `fault` and no settings.
 */
function openAccount(
  { name, secrets, earlierSecrets, disabledAt }: StoredAccount,
  keys: SealingKeys,
  service?: Service,
): AcquirerAccount {
  const sealed = [secrets, ...(earlierSecrets ? [earlierSecrets] : [])]
  const version = [...sealed.map((bytes) => bytes.toString('base64')), disabledAt?.getTime()].join()
  try {
    const [current = NONE, earlier = NONE] = unsealAll(keys, sealed, ownerOfAccount(name)).map((text) =>
      readAccount(name, text, service),
    )
    return { name, settings: withSecretsOf(earlier, current), version, disabledAt }
  } catch (error) {
    return { name, settings: NONE, version, fault: (error as Error).message, disabledAt }
  }
}

const NONE: AcquirerSettings = { direct: [] }

/** `settings`, with the secrets of notifications that `earlier` has. */
function withSecretsOf({ direct: _, ...earlier }: AcquirerSettings, { direct, ...settings }: AcquirerSettings) {
  const merged = Object.entries(settings).map(([acquirer, account]) => {
    const added = earlier[acquirer as keyof typeof earlier]?.notificationSecrets ?? []
    return [acquirer, account && { ...account, notificationSecrets: [...account.notificationSecrets, ...added] }]
  })
  return { direct, ...Object.fromEntries(merged) }
}
