import type { Limits } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { decryptAll, type EncryptionKeys } from '../../platform/encryption.ts'
import { createAcquirerAccounts, type StoredAccount } from '../tenants/acquirer-accounts.ts'
import { type AcquirerSettings, readAccount, type Service, splitAccountName } from './accounts.ts'
import { type Accounts, type AcquirerAccount, createAccounts } from './acquirers.ts'

/**
 * Opens the acquirer accounts that the environment configures, from `config`, and the accounts in the database.
 * Commands pass no `publicUrl`.
 */
export function openAccounts(
  db: Queryable,
  { acquirers, ...config }: OpeningConfig & { acquirers: AcquirerSettings },
  lookUps: Limits['lookUps'],
  elapsedMs?: () => number,
): Accounts {
  let opened = new Map<string, AcquirerAccount>()
  // An account is opened again only after it has changed, because opening takes 0.1 ms, during which the event loop
  // serves no request.
  const load = async () => {
    const accounts = (await createAcquirerAccounts(db).list()).map((row) => {
      const earlier = opened.get(row.name)
      return earlier?.version === versionOf(row) ? earlier : openAccount(row, config)
    })
    opened = new Map(accounts.map((account) => [account.name, account]))
    return accounts
  }
  return createAccounts(acquirers, cached(load, lookUps, elapsedMs))
}

export type OpeningConfig = Service & { webhooks: { encryptionKeys: EncryptionKeys } }

/** Name under which encryption.ts encrypts an account's secrets. */
export const contextOfAccount = (name: string) => `account/${name}`

/**
 * Decrypts and reads an account from the database, for the service and for commands that store accounts. During a
 * rotation the earlier notification secrets are valid too. An account that cannot be decrypted or has invalid settings
 * is returned with an `error` and without settings.
 */
export function openAccount(row: StoredAccount, { webhooks, ...service }: OpeningConfig): AcquirerAccount {
  const { name, disabledAt } = row
  const opened = { name, version: versionOf(row), disabledAt }
  try {
    const [current = '', ...earlier] = decryptAll(webhooks.encryptionKeys, encryptedOf(row), contextOfAccount(name))
    const account = readAccount(name, current, service)
    const earlierOnes = earlier.flatMap((text) => secretsOf(name, text, service))
    const notificationSecrets = [...account.notificationSecrets, ...earlierOnes]
    const { acquirer } = splitAccountName(name)
    return { ...opened, settings: { direct: [], [acquirer]: { ...account, notificationSecrets } } }
  } catch (error) {
    return { ...opened, settings: { direct: [] }, error: (error as Error).message }
  }
}

const encryptedOf = ({ secrets, earlierSecrets }: StoredAccount) =>
  earlierSecrets ? [secrets, earlierSecrets] : [secrets]

const versionOf = (row: StoredAccount) =>
  [...encryptedOf(row).map((bytes) => bytes.toString('base64')), row.disabledAt?.getTime()].join()

/**
 * Returns the notification secrets of an account's settings; none if the settings are invalid, because a rotation
 * replaces invalid settings.
 */
function secretsOf(...account: Parameters<typeof readAccount>): readonly string[] {
  try {
    return readAccount(...account).notificationSecrets
  } catch {
    return []
  }
}
