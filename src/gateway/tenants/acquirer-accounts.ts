import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'

/** An acquirer account, such as `setu:acme`. Its secrets are encrypted, see encryption.ts. */
export type StoredAccount = {
  name: string
  secrets: Buffer
  /** The earlier secrets during an unfinished rotation; null without a rotation. */
  earlierSecrets: Buffer | null
  createdAt: Date
  disabledAt: Date | null
}

const ACCOUNT = 'name, secrets, earlier_secrets, created_at, disabled_at'

const LIST = query<StoredAccount, object>(`select ${ACCOUNT} from acquirer_accounts order by name`)

const LOCK = plannedQuery<object, { names: readonly (string | null | undefined)[] }>(
  'select from acquirer_accounts where name = any (:names) for share',
)

const ADD = query<StoredAccount, { name: string; secrets: Buffer; now: Date }>(`
  insert into acquirer_accounts (name, secrets, created_at)
  values (:name, :secrets, :now)
      on conflict (name) do nothing
  returning ${ACCOUNT}`)

/**
 * The acquirer accounts in the database, in addition to the accounts that the environment configures. An account is
 * disabled, never deleted, because its orders remain.
 */
export function createAcquirerAccounts(db: Queryable) {
  /** Returns the account after the change; undefined if no account with this name meets `condition`. */
  async function change(name: string, set: string, values: object = {}, condition = 'true') {
    const update = plannedQuery<StoredAccount, object>(
      `update acquirer_accounts set ${set} where name = :name and ${condition} returning ${ACCOUNT}`,
    )
    return (await update(db, { ...values, name }))[0]
  }

  return {
    /** Returns all accounts, including disabled accounts, sorted by name. */
    list: () => LIST(db, {}),

    /** Locks accounts until the end of the transaction, so that a rotation waits for merchants that are stored in it. */
    lock: (names: readonly (string | null | undefined)[]) => LOCK(db, { names }),

    /** Stores an account. Returns undefined if the name is already used. */
    add: async (name: string, secrets: Buffer, now: Date): Promise<StoredAccount | undefined> =>
      (await ADD(db, { name, secrets, now }))[0],

    /** Begins a rotation. Returns undefined if the name is unknown, or if an earlier rotation is not finished. */
    rotate: (name: string, secrets: Buffer) =>
      change(name, 'earlier_secrets = secrets, secrets = :secrets', { secrets }, 'earlier_secrets is null'),

    /**
     * Exchanges the current secrets with the earlier secrets. Returns undefined if the name is unknown, or if no
     * earlier secrets are stored.
     */
    rotateBack: (name: string) =>
      change(name, 'earlier_secrets = secrets, secrets = earlier_secrets', {}, 'earlier_secrets is not null'),

    /** Deletes the earlier secrets. Returns undefined if the name is unknown. */
    finishRotation: (name: string) => change(name, 'earlier_secrets = null'),

    /** Replaces every encrypted text with the result of `reencrypt`. Returns the number of accounts. */
    async reencryptSecrets(reencrypt: (encrypted: Buffer, name: string) => Buffer): Promise<number> {
      const accounts = await LIST(db, {})
      for (const { name, secrets, earlierSecrets: earlier } of accounts) {
        const values = {
          secrets,
          earlier,
          current: reencrypt(secrets, name),
          previous: earlier && reencrypt(earlier, name),
        }
        // A concurrent rotation must not be overwritten: otherwise its new secrets would be lost, or the secrets that
        // the rotation deleted would be valid again.
        const isSame = 'secrets = :secrets and earlier_secrets is not distinct from :earlier'
        await change(name, 'secrets = :current, earlier_secrets = :previous', values, isSame)
      }
      return accounts.length
    },

    /**
     * Prevents an account from creating links. A repeat does not change the stored time. Returns undefined if the name
     * is unknown.
     */
    disable: (name: string, now: Date) => change(name, 'disabled_at = coalesce(disabled_at, :now)', { now }),

    /** Lets an account create links again. Returns undefined if the name is unknown. */
    enable: (name: string) => change(name, 'disabled_at = null'),
  }
}
