import type { AccessKeyListing, NewAccessKey } from '../../gateway/tenants/access-keys.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { toIstDay } from '../../platform/time.ts'

/** The rights of an operator's key: `read` shows pages, `act` also makes changes. */
export const CONSOLE_RIGHTS = ['read', 'act'] as const
export type ConsoleRight = (typeof CONSOLE_RIGHTS)[number]

/** The key with which an operator signs in to the console. */
export type OperatorKey = { publicKey: string; secretHash: Buffer; operator: string; rights: readonly ConsoleRight[] }

type OperatorKeyListing = Omit<OperatorKey, 'secretHash'> &
  Pick<AccessKeyListing, 'label' | 'expiresOn' | 'createdAt' | 'revokedAt'>

export type NewOperatorKey = OperatorKey & Pick<NewAccessKey, 'label' | 'expiresOn' | 'now'>

const LISTING = `public_key as "publicKey", operator, label, rights, to_char(expires_on, 'YYYY-MM-DD') as "expiresOn",
                 created_at as "createdAt", revoked_at as "revokedAt"`
const IS_VALID = 'revoked_at is null and (expires_on is null or expires_on >= $1)'

const REVOKE = 'update operator_keys set revoked_at = coalesce(revoked_at, $2) where public_key = $1'

type Criteria = { operator?: string | undefined; publicKey?: string }

/** The operators' keys in the database. The database stores only the SHA-256 of a secret. */
export function createOperatorKeys(db: Queryable) {
  /** Returns the keys, oldest first, also revoked ones. Changes read their key here: Citus has no to_char in RETURNING. */
  async function list({ operator, publicKey }: Criteria = {}): Promise<OperatorKeyListing[]> {
    const { rows } = await db.query<OperatorKeyListing>(
      `select ${LISTING}
         from operator_keys
        where ($1::text is null or operator = $1) and ($2::text is null or public_key = $2)
        order by created_at, public_key`,
      [operator, publicKey],
    )
    return rows
  }

  return {
    /** Returns a valid key; undefined for an unknown, revoked or expired key. */
    async find(publicKey: string, now: Date): Promise<OperatorKey | undefined> {
      const { rows } = await db.query<OperatorKey>(
        `select public_key as "publicKey", secret_hash as "secretHash", operator, rights
           from operator_keys
          where ${IS_VALID} and public_key = $2`,
        [toIstDay(now), publicKey],
      )
      return rows[0]
    },

    /** Returns whether any key is valid. */
    async isAnyValid(now: Date): Promise<boolean> {
      const { rowCount } = await db.query(`select from operator_keys where ${IS_VALID} limit 1`, [toIstDay(now)])
      return rowCount === 1
    },

    async add({ publicKey, secretHash, operator, label, rights, expiresOn, now }: NewOperatorKey) {
      await db.query(
        `insert into operator_keys (public_key, secret_hash, operator, label, rights, expires_on, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [publicKey, secretHash, operator, label, rights, expiresOn, now],
      )
      return (await list({ publicKey }))[0] as OperatorKeyListing
    },

    list,

    /** Revokes a key. A repeat does not change the time of the first call. Returns undefined if the key is unknown. */
    async revoke(publicKey: string, now: Date): Promise<OperatorKeyListing | undefined> {
      await db.query(REVOKE, [publicKey, now])
      return (await list({ publicKey }))[0]
    },
  }
}
