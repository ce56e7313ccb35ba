import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
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
const LAST_USED_ON = `to_char(u.last_used_on, 'YYYY-MM-DD') as "lastUsedOn"`
const LISTING = `public_key as "publicKey", mid, pid, label, rights, to_char(expires_on, 'YYYY-MM-DD') as "expiresOn",
                 created_at as "createdAt", ${LAST_USED_ON}, revoked_at as "revokedAt"`

const FIND = prepared(
  `select k.secret_hash as "secretHash", k.pid, k.rights, ${LAST_USED_ON}, ${MERCHANT}
     from ${KEYS}
     left join merchants m on m.mid = k.mid
    where public_key = $1 and k.revoked_at is null and (k.expires_on is null or k.expires_on >= $2)`,
)

/** The API keys in the database. The database stores only the SHA-256 of a secret. */
export function createAccessKeys(db: Queryable) {
  async function show(publicKey: string): Promise<AccessKeyListing | undefined> {
    const { rows } = await db.query<AccessKeyListing>(`select ${LISTING} from ${KEYS} where public_key = $1`, [
      publicKey,
    ])
    return rows[0]
  }

  return {
    /**
     * Returns the key with its merchant or partner, read from the database; undefined for an unknown, revoked or
     * expired key.
     */
    async find(publicKey: string, now: Date): Promise<AccessKey | undefined> {
      const { rows } = await db.query<StoredKey & Merchant>(FIND(publicKey, toIstDay(now)))
      if (rows[0] === undefined) return undefined
      const { secretHash, pid, rights, lastUsedOn, ...merchant } = rows[0]
      const caller: Caller = pid === null ? { kind: 'merchant', merchant, rights } : { kind: 'partner', pid, rights }
      const notedUntil = lastUsedOn === null ? new Date(0) : nextDay(startOfDay(lastUsedOn))
      return { publicKey, secretHash, caller, notedUntil }
    },

    /** Stores that the key was used on this IST day, unless a later day is stored. */
    async noteUse(publicKey: string, day: string): Promise<void> {
      await db.query(
        `insert into key_uses (public_key, last_used_on)
         values ($1, $2)
         on conflict (public_key) do update set last_used_on = excluded.last_used_on
          where key_uses.last_used_on < excluded.last_used_on`,
        [publicKey, day],
      )
    },

    /** Stores a key. Foreign keys reject an unknown merchant or partner (SQLSTATE 23503). */
    async add({ publicKey, owner, now, ...key }: NewAccessKey): Promise<AccessKeyListing> {
      await db.query(
        `insert into access_keys (public_key, secret_hash, mid, pid, label, rights, expires_on, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [publicKey, key.secretHash, owner.mid, owner.pid, key.label, key.rights, key.expiresOn, now],
      )
      return (await show(publicKey)) as AccessKeyListing
    },

    /** Returns all keys, or the keys of one merchant or partner, oldest first. The result includes revoked keys. */
    async list(owner: { mid?: string | undefined; pid?: string | undefined } = {}): Promise<AccessKeyListing[]> {
      const { rows } = await db.query<AccessKeyListing>(
        `select ${LISTING}
           from ${KEYS}
          where ($1::text is null or mid = $1) and ($2::text is null or pid = $2)
          order by created_at, public_key`,
        [owner.mid, owner.pid],
      )
      return rows
    },

    /** Revokes a key. A repeat does not change the time of the first call. Returns undefined if the key is unknown. */
    async revoke(publicKey: string, now: Date): Promise<AccessKeyListing | undefined> {
      await db.query('update access_keys set revoked_at = coalesce(revoked_at, $2) where public_key = $1', [
        publicKey,
        now,
      ])
      return show(publicKey)
    },
  }
}

export type AccessKeys = ReturnType<typeof createAccessKeys>
