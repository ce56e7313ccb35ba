import type { AccessKeyListing, NewAccessKey } from '../../gateway/tenants/access-keys.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { toIstDay } from '../../platform/time.ts'

/** The rights of an operator's key: `read` shows pages, `act` also makes changes. */
export const CONSOLE_RIGHTS = ['read', 'act'] as const
export type ConsoleRight = (typeof CONSOLE_RIGHTS)[number]

/** The key with which an operator signs in to the console. */
export type OperatorKey = { publicKey: string; secretHash: Buffer; operator: string; rights: readonly ConsoleRight[] }

type OperatorKeyListing = Omit<OperatorKey, 'secretHash'> &
  Pick<AccessKeyListing, 'label' | 'expiresOn' | 'createdAt' | 'revokedAt'>

export type NewOperatorKey = OperatorKey & Pick<NewAccessKey, 'label' | 'expiresOn' | 'now'>

type Criteria = { operator?: string | undefined; publicKey?: string }

/** The operators' keys in the database. The database stores only the SHA-256 of a secret. */
export function createOperatorKeys(db: Queryable) {
  /** Returns the keys, oldest first, also revoked ones. Changes read their key here: Citus has no to_char in RETURNING. */
  const list = (criteria: Criteria = {}) => LIST(db, criteria)

  return {
    list,

    /** Returns a valid key; undefined for an unknown, revoked or expired key. */
    async find(publicKey: string, now: Date): Promise<OperatorKey | undefined> {
      return (await FIND(db, { publicKey, today: toIstDay(now) }))[0]
    },

    /** Returns whether any key is valid. */
    async isAnyValid(now: Date): Promise<boolean> {
      return (await FIND_VALID(db, { today: toIstDay(now) })).length === 1
    },

    async add(key: NewOperatorKey) {
      await ADD(db, key)
      return (await list({ publicKey: key.publicKey }))[0] as OperatorKeyListing
    },

    /** Revokes a key. A repeat does not change the time of the first call. Returns undefined if the key is unknown. */
    async revoke(publicKey: string, now: Date): Promise<OperatorKeyListing | undefined> {
      await REVOKE(db, { publicKey, now })
      return (await list({ publicKey }))[0]
    },
  }
}

const LIST = plannedQuery<OperatorKeyListing, Criteria>(`
  select public_key, operator, label, rights, to_char(expires_on, 'YYYY-MM-DD') as expires_on, created_at, revoked_at
    from operator_keys
   where (:operator::text is null or operator = :operator) and (:publicKey::text is null or public_key = :publicKey)
   order by created_at, public_key`)

const IS_VALID = 'revoked_at is null and (expires_on is null or expires_on >= :today)'

const FIND = query<OperatorKey, { publicKey: string; today: string }>(`
  select public_key, secret_hash, operator, rights
    from operator_keys
   where ${IS_VALID} and public_key = :publicKey`)

const FIND_VALID = query<object, { today: string }>(`select 1 from operator_keys where ${IS_VALID} limit 1`)

const ADD = query<object, NewOperatorKey>(`
  insert into operator_keys (public_key, secret_hash, operator, label, rights, expires_on, created_at)
  values (:publicKey, :secretHash, :operator, :label, :rights, :expiresOn, :now)`)

const REVOKE = query<object, { publicKey: string; now: Date }>(
  'update operator_keys set revoked_at = coalesce(revoked_at, :now) where public_key = :publicKey',
)
