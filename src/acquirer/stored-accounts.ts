import { cached } from '../db/cached.ts'
import type { Queryable } from '../db/pool.ts'
import type { Limits } from '../limits.ts'
import { type SealingKeys, unsealAll } from '../sealing.ts'
import { createAcquirerAccounts, type StoredAccount } from '../tenants/acquirer-accounts.ts'
import { type AcquirerSettings, readAccount, type Service, splitAccountName } from './accounts.ts'
import { type Accounts, type AcquirerAccount, createAccounts } from './acquirers.ts'

/** The accounts of the environment, in `config`, and those in the database. Commands pass no `publicUrl`. */
export function openAccounts(
  db: Queryable,
  { acquirers, webhooks, production = false, publicUrl }: AccountsConfig,
  lookUps: Limits['lookUps'],
  elapsedMs?: () => number,
): Accounts {
  const service = publicUrl === undefined ? undefined : { production, publicUrl }
  const load = async () =>
    (await createAcquirerAccounts(db).list()).map((row) => openAccount(row, webhooks.sealingKeys, service))
  return createAccounts(acquirers, cached(load, lookUps, elapsedMs))
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
  const opened = { name, version: sealed.map((bytes) => bytes.toString('base64')).join(), disabledAt }
  try {
    const [current = '', ...earlier] = unsealAll(keys, sealed, ownerOfAccount(name))
    const account = readAccount(name, current, service)
    const earlierOnes = earlier.flatMap((text) => secretsOf(name, text, service))
    const notificationSecrets = [...account.notificationSecrets, ...earlierOnes]
    const { acquirer } = splitAccountName(name)
    return { ...opened, settings: { direct: [], [acquirer]: { ...account, notificationSecrets } } }
  } catch (error) {
    return { ...opened, settings: { direct: [] }, fault: (error as Error).message }
  }
}

/** The secrets of notifications in an account's text; none if the service refuses the text, which a rotation replaces. */
function secretsOf(...account: Parameters<typeof readAccount>): readonly string[] {
  try {
    return readAccount(...account).notificationSecrets
  } catch {
    return []
  }
}
