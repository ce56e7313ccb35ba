import type { Queryable } from '../../platform/db/pool.ts'

/** An acquirer account, such as `setu:acme`. Its secrets are encrypted, see encryption.ts. */
export type StoredAccount = {
  name: string
  secrets: Buffer
  /** The earlier secrets during an unfinished rotation; null without a rotation. */
  earlierSecrets: Buffer | null
  createdAt: Date
  disabledAt: Date | null
}

const ACCOUNT = `name, secrets, earlier_secrets as "earlierSecrets", created_at as "createdAt", disabled_at as "disabledAt"`

/**
 * The acquirer accounts in the database, in addition to the accounts that the environment configures. An account is
 * disabled, never deleted, because its orders remain.
 */
export function createAcquirerAccounts(db: Queryable) {
  /** Returns all accounts, including disabled accounts, sorted by name. */
  async function list(): Promise<StoredAccount[]> {
    const { rows } = await db.query<StoredAccount>(`select ${ACCOUNT} from acquirer_accounts order by name`)
    return rows
  }

  /** Returns the account after the change; undefined if no account with this name meets `condition`. */
  async function change(name: string, set: string, values: unknown[] = [], condition = 'true') {
    const { rows } = await db.query<StoredAccount>(
      `update acquirer_accounts set ${set} where name = $1 and ${condition} returning ${ACCOUNT}`,
      [name, ...values],
    )
    return rows[0]
  }

  return {
    list,

    /** Locks accounts until the end of the transaction, so that a rotation waits for merchants that are stored in it. */
    lock: (names: readonly (string | null | undefined)[]) =>
      db.query('select from acquirer_accounts where name = any ($1) for share', [names]),

    /** Stores an account. Returns undefined if the name is already used. */
    async add(name: string, secrets: Buffer, now: Date): Promise<StoredAccount | undefined> {
      const { rows } = await db.query<StoredAccount>(
        `insert into acquirer_accounts (name, secrets, created_at) values ($1, $2, $3)
         on conflict (name) do nothing returning ${ACCOUNT}`,
        [name, secrets, now],
      )
      return rows[0]
    },

    /** Begins a rotation. Returns undefined if the name is unknown, or if an earlier rotation is not finished. */
    rotate: (name: string, secrets: Buffer) =>
      change(name, 'earlier_secrets = secrets, secrets = $2', [secrets], 'earlier_secrets is null'),

    /**
     * Exchanges the current secrets with the earlier secrets. Returns undefined if the name is unknown, or if no
     * earlier secrets are stored.
     */
    rotateBack: (name: string) =>
      change(name, 'earlier_secrets = secrets, secrets = earlier_secrets', [], 'earlier_secrets is not null'),

    /** Deletes the earlier secrets. Returns undefined if the name is unknown. */
    finishRotation: (name: string) => change(name, 'earlier_secrets = null'),

    /** Replaces every encrypted text with the result of `reencrypt`. Returns the number of accounts. */
    async reencryptSecrets(reencrypt: (encrypted: Buffer, name: string) => Buffer): Promise<number> {
      const accounts = await list()
      for (const { name, secrets, earlierSecrets: earlier } of accounts) {
        const reencrypted = [reencrypt(secrets, name), earlier && reencrypt(earlier, name)]
        // A concurrent rotation must not be overwritten: otherwise its new secrets would be lost, or the secrets that
        // the rotation deleted would be valid again.
        const isSame = 'secrets = $4 and earlier_secrets is not distinct from $5'
        await change(name, 'secrets = $2, earlier_secrets = $3', [...reencrypted, secrets, earlier], isSame)
      }
      return accounts.length
    },

    /**
     * Prevents an account from creating links. A repeat does not change the stored time. Returns undefined if the name
     * is unknown.
     */
    disable: (name: string, now: Date) => change(name, 'disabled_at = coalesce(disabled_at, $2)', [now]),

    /** Lets an account create links again. Returns undefined if the name is unknown. */
    enable: (name: string) => change(name, 'disabled_at = null'),
  }
}
