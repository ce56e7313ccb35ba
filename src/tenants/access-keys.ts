import type { Queryable } from '../db/pool.ts'
import { MERCHANT, type Merchant } from './merchants.ts'

/** Who a key speaks for: exactly one merchant, or exactly one partner. */
export type Caller = { kind: 'merchant'; merchant: Merchant; mayRefund: boolean } | { kind: 'partner'; pid: string }

export type AccessKey = { publicKey: string; secretHash: Buffer; caller: Caller }

export type AccessKeyListing = {
  publicKey: string
  mid: string | null
  pid: string | null
  label: string | null
  mayRefund: boolean
  createdAt: Date
  revokedAt: Date | null
}

export type NewAccessKey = {
  publicKey: string
  secretHash: Buffer
  owner: { mid: string } | { pid: string }
  label: string | null
  /** Only a merchant's key may have this right. */
  mayRefund?: boolean | undefined
  now: Date
}

const LISTING = `public_key as "publicKey", mid, pid, label, may_refund as "mayRefund", created_at as "createdAt",
                 revoked_at as "revokedAt"`

/** The key table. A secret is never in it, only its SHA-256. */
export function createAccessKeys(db: Queryable) {
  return {
    /** The key with its owner, as both are stored now; undefined when the key is unknown or revoked. */
    async find(publicKey: string): Promise<AccessKey | undefined> {
      const { rows } = await db.query<{ secretHash: Buffer; pid: string | null; mayRefund: boolean } & Merchant>(
        `select k.secret_hash as "secretHash", k.pid, k.may_refund as "mayRefund", ${MERCHANT}
           from access_keys k
           left join merchants m on m.mid = k.mid
          where k.public_key = $1 and k.revoked_at is null`,
        [publicKey],
      )
      if (rows[0] === undefined) return undefined
      const { secretHash, pid, mayRefund, ...merchant } = rows[0]
      const caller: Caller = pid === null ? { kind: 'merchant', merchant, mayRefund } : { kind: 'partner', pid }
      return { publicKey, secretHash, caller }
    },

    /** Stores a key of an owner that exists; the foreign keys refuse any other (SQLSTATE 23503). */
    async add({ publicKey, secretHash, owner, label, mayRefund, now }: NewAccessKey): Promise<AccessKeyListing> {
      const { rows } = await db.query<AccessKeyListing>(
        `insert into access_keys (public_key, secret_hash, mid, pid, label, created_at, may_refund)
         values ($1, $2, $3, $4, $5, $6, $7)
         returning ${LISTING}`,
        [
          ...[publicKey, secretHash, 'mid' in owner ? owner.mid : null, 'pid' in owner ? owner.pid : null],
          ...[label, now, mayRefund ?? false],
        ],
      )
      return rows[0] as AccessKeyListing
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
      const { rows } = await db.query<AccessKeyListing>(
        `update access_keys set revoked_at = coalesce(revoked_at, $2) where public_key = $1 returning ${LISTING}`,
        [publicKey, now],
      )
      return rows[0]
    },
  }
}

export type AccessKeys = ReturnType<typeof createAccessKeys>
