import type { Queryable } from '../db/pool.ts'
import { MERCHANT, type Merchant } from './merchants.ts'

/** Who a key speaks for: exactly one merchant, or exactly one partner. */
export type Caller = { kind: 'merchant'; merchant: Merchant } | { kind: 'partner'; pid: string }

export type AccessKey = { publicKey: string; secretHash: Buffer; caller: Caller }

export type AccessKeyListing = {
  publicKey: string
  mid: string | null
  pid: string | null
  label: string | null
  createdAt: Date
  revokedAt: Date | null
}

export type NewAccessKey = {
  publicKey: string
  secretHash: Buffer
  owner: { mid: string } | { pid: string }
  label: string | null
  now: Date
}

const LISTING = 'public_key as "publicKey", mid, pid, label, created_at as "createdAt", revoked_at as "revokedAt"'

/** The key table. A secret is never in it, only its SHA-256. */
export function createAccessKeys(db: Queryable) {
  return {
    /** The key with its owner, as both are stored now; undefined when the key is unknown or revoked. */
    async find(publicKey: string): Promise<AccessKey | undefined> {
      const { rows } = await db.query<{ secretHash: Buffer; pid: string | null } & Merchant>(
        `select k.secret_hash as "secretHash", k.pid, ${MERCHANT}
           from access_keys k
           left join merchants m on m.mid = k.mid
          where k.public_key = $1 and k.revoked_at is null`,
        [publicKey],
      )
      if (rows[0] === undefined) return undefined
      const { secretHash, pid, ...merchant } = rows[0]
      return { publicKey, secretHash, caller: pid === null ? { kind: 'merchant', merchant } : { kind: 'partner', pid } }
    },

    /** Stores a key of an owner that exists; the foreign keys refuse any other (SQLSTATE 23503). */
    async add({ publicKey, secretHash, owner, label, now }: NewAccessKey): Promise<AccessKeyListing> {
      const { rows } = await db.query<AccessKeyListing>(
        `insert into access_keys (public_key, secret_hash, mid, pid, label, created_at)
         values ($1, $2, $3, $4, $5, $6)
         returning ${LISTING}`,
        [publicKey, secretHash, 'mid' in owner ? owner.mid : null, 'pid' in owner ? owner.pid : null, label, now],
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
