import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { RIGHTS, type Right } from '../../platform/rights.ts'
import { nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { MERCHANT, type Merchant } from './merchants.ts'

/** The merchant or partner to which a key belongs, and the key's rights. */
export type Caller = ({ kind: 'merchant'; merchant: Merchant } | { kind: 'partner'; pid: string }) & {
  rights: readonly Right[]
}

/** Rights of a merchant's key for which the operator has set none. A partner's key always has only `list`. */
export const USUAL_RIGHTS = RIGHTS.filter((right) => right !== 'refund')

/** An API key. `notedUntil` is the end of the last IST day for which the use of the key is stored. */
export type AccessKey = { publicKey: string; secretHash: Buffer; caller: Caller; notedUntil: Date }

export type AccessKeyListing = {
  publicKey: string
  mid: string | null
  pid: string | null
  label: string | null
  rights: readonly Right[]
  /** The last IST day on which the key is valid, `YYYY-MM-DD`; null if the key does not expire. */
  expiresOn: string | null
  createdAt: Date
  /** The IST day on which the key was last used, `YYYY-MM-DD`; null if no use is stored. */
  lastUsedOn: string | null
  revokedAt: Date | null
}

type StoredKey = Pick<AccessKey, 'secretHash'> & Pick<AccessKeyListing, 'pid' | 'rights' | 'lastUsedOn'>

export type NewAccessKey = {
  publicKey: string
  secretHash: Buffer
  owner: { mid: string; pid?: never } | { pid: string; mid?: never }
  label: string | null
  rights: readonly Right[]
  /** The last IST day on which the key is valid, `YYYY-MM-DD`. */
  expiresOn?: string | undefined
  now: Date
}

const KEYS = 'access_keys k left join key_uses u using (public_key)'
const LISTED = `select public_key, mid, pid, label, rights, expires_on, created_at, last_used_on, revoked_at from ${KEYS}`

const FIND = query<StoredKey & Merchant, { publicKey: string; today: string }>(`
  select k.secret_hash, k.pid, k.rights, u.last_used_on, ${MERCHANT}
    from ${KEYS}
    left join merchants m on m.mid = k.mid
   where public_key = :publicKey and k.revoked_at is null and (k.expires_on is null or k.expires_on >= :today)`)

const SHOW = query<AccessKeyListing, { publicKey: string }>(`${LISTED} where public_key = :publicKey`)

const LIST = plannedQuery<AccessKeyListing, { mid?: string | undefined; pid?: string | undefined }>(`${LISTED}
   where (:mid::text is null or mid = :mid) and (:pid::text is null or pid = :pid)
   order by created_at, public_key`)

const NOTE_USE = query<object, { publicKey: string; day: string }>(`
  insert into key_uses (public_key, last_used_on)
  values (:publicKey, :day)
      on conflict (public_key) do update set last_used_on = excluded.last_used_on
   where key_uses.last_used_on < excluded.last_used_on`)

const ADD = query<object, Omit<NewAccessKey, 'owner'> & NewAccessKey['owner']>(`
  insert into access_keys (public_key, secret_hash, mid, pid, label, rights, expires_on, created_at)
  values (:publicKey, :secretHash, :mid, :pid, :label, :rights, :expiresOn, :now)`)

const REVOKE = query<object, { publicKey: string; now: Date }>(
  'update access_keys set revoked_at = coalesce(revoked_at, :now) where public_key = :publicKey',
)

/** The API keys in the database. The database stores only the SHA-256 of a secret. */
export function createAccessKeys(db: Queryable) {
  const show = async (publicKey: string) => (await SHOW(db, { publicKey }))[0]

  return {
    /**
     * Returns the key with its merchant or partner, read from the database; undefined for an unknown, revoked or
     * expired key.
     */
    async find(publicKey: string, now: Date): Promise<AccessKey | undefined> {
      const [row] = await FIND(db, { publicKey, today: toIstDay(now) })
      if (row === undefined) return undefined
      const { secretHash, pid, rights, lastUsedOn, ...merchant } = row
      const caller: Caller = pid === null ? { kind: 'merchant', merchant, rights } : { kind: 'partner', pid, rights }
      const notedUntil = lastUsedOn === null ? new Date(0) : nextDay(startOfDay(lastUsedOn))
      return { publicKey, secretHash, caller, notedUntil }
    },

    /** Stores that the key was used on this IST day, unless a later day is stored. */
    noteUse: (publicKey: string, day: string) => NOTE_USE(db, { publicKey, day }),

    /** Stores a key. Foreign keys reject an unknown merchant or partner (SQLSTATE 23503). */
    async add({ owner, ...key }: NewAccessKey): Promise<AccessKeyListing> {
      await ADD(db, { ...key, ...owner })
      return (await show(key.publicKey)) as AccessKeyListing
    },

    /** Returns all keys, or the keys of one merchant or partner, oldest first. The result includes revoked keys. */
    list: (owner: Parameters<typeof LIST>[1] = {}) => LIST(db, owner),

    /** Revokes a key. A repeat does not change the time of the first call. Returns undefined if the key is unknown. */
    async revoke(publicKey: string, now: Date): Promise<AccessKeyListing | undefined> {
      await REVOKE(db, { publicKey, now })
      return show(publicKey)
    },
  }
}

export type AccessKeys = ReturnType<typeof createAccessKeys>
