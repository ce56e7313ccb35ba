import type { Queryable } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import { nextDay, startOfDay } from '../ist.ts'
import { MERCHANT, type Merchant } from './merchants.ts'

/** Who a key speaks for: exactly one merchant, or exactly one partner. */
export type Caller = { kind: 'merchant'; merchant: Merchant; mayRefund: boolean } | { kind: 'partner'; pid: string }

/** `notedUntil` ends the last day of India on which it is noted that the key was used. */
export type AccessKey = { publicKey: string; secretHash: Buffer; caller: Caller; notedUntil: Date }

export type AccessKeyListing = {
  publicKey: string
  mid: string | null
  pid: string | null
  label: string | null
  mayRefund: boolean
  createdAt: Date
  /** A day of India: `YYYY-MM-DD`. */
  lastUsedOn: string | null
  revokedAt: Date | null
}

type StoredKey = Pick<AccessKey, 'secretHash'> & Pick<AccessKeyListing, 'pid' | 'mayRefund' | 'lastUsedOn'>

export type NewAccessKey = {
  publicKey: string
  secretHash: Buffer
  owner: { mid: string; pid?: never } | { pid: string; mid?: never }
  label: string | null
  /** Only a merchant's key may have this right. */
  mayRefund?: boolean | undefined
  now: Date
}

const LAST_USED_ON = `to_char(last_used_on, 'YYYY-MM-DD') as "lastUsedOn"`
const LISTING = `public_key as "publicKey", mid, pid, label, may_refund as "mayRefund", created_at as "createdAt",
                 ${LAST_USED_ON}, revoked_at as "revokedAt"`

const FIND = prepared(
  `select k.secret_hash as "secretHash", k.pid, k.may_refund as "mayRefund", ${LAST_USED_ON}, ${MERCHANT}
     from access_keys k
     left join merchants m on m.mid = k.mid
    where k.public_key = $1 and k.revoked_at is null`,
)

/** The key table. A secret is never in it, only its SHA-256. */
export function createAccessKeys(db: Queryable) {
  /** Not `returning`, in which Citus refuses to_char. */
  async function show(publicKey: string): Promise<AccessKeyListing | undefined> {
    const { rows } = await db.query<AccessKeyListing>(`select ${LISTING} from access_keys where public_key = $1`, [
      publicKey,
    ])
    return rows[0]
  }

  return {
    /** The key with its owner, as both are stored now; undefined when the key is unknown or revoked. */
    async find(publicKey: string): Promise<AccessKey | undefined> {
      const { rows } = await db.query<StoredKey & Merchant>(FIND(publicKey))
      if (rows[0] === undefined) return undefined
      const { secretHash, pid, mayRefund, lastUsedOn, ...merchant } = rows[0]
      const caller: Caller = pid === null ? { kind: 'merchant', merchant, mayRefund } : { kind: 'partner', pid }
      const notedUntil = lastUsedOn === null ? new Date(0) : nextDay(startOfDay(lastUsedOn))
      return { publicKey, secretHash, caller, notedUntil }
    },

    /** Notes that the key was used on this day of India, unless a later one is noted already. */
    async noteUse(publicKey: string, day: string): Promise<void> {
      await db.query(
        'update access_keys set last_used_on = $2 where public_key = $1 and (last_used_on < $2) is not false',
        [publicKey, day],
      )
    },

    /** Stores a key of an owner that exists; the foreign keys refuse any other (SQLSTATE 23503). */
    async add({ publicKey, secretHash, owner, label, mayRefund, now }: NewAccessKey): Promise<AccessKeyListing> {
      await db.query(
        `insert into access_keys (public_key, secret_hash, mid, pid, label, created_at, may_refund)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [publicKey, secretHash, owner.mid, owner.pid, label, now, mayRefund ?? false],
      )
      return (await show(publicKey)) as AccessKeyListing
    },

    /** All keys, or those of one owner, oldest first, revoked ones included. */
    async list(owner: { mid?: string | undefined; pid?: string | undefined } = {}): Promise<AccessKeyListing[]> {
      const { rows } = await db.query<AccessKeyListing>(
        `select ${LISTING}
           from access_keys
          where ($1::text is null or mid = $1) and ($2::text is null or pid = $2)
          order by created_at, public_key`,
        [owner.mid, owner.pid],
      )
      return rows
    },

    /** Revokes a key. Revoking it again keeps the first time. Undefined when there is no such key. */
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
