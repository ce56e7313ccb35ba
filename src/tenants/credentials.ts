import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * A new key pair: `pk_` + 24 hex digits names the key, `sk_` + 43 base64url characters (256 random bits) proves it.
 * The secret exists only in what is returned; store `hashSecret(secretKey)`.
 */
export function mintKeyPair(): { publicKey: string; secretKey: string } {
  return {
    publicKey: `pk_${randomBytes(12).toString('hex')}`,
    secretKey: `sk_${randomBytes(32).toString('base64url')}`,
  }
}

/**
 * SHA-256 of a secret, 32 bytes. Nobody can guess 256 random bits, so a slow password hash would protect
 * nothing, and its 77 ms a request (scrypt) would let an attacker block the service with log-ins.
 */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** Whether `secret` is the one that was hashed. The comparison takes the same time wherever they differ. */
export function secretMatches(secret: string, secretHash: Buffer): boolean {
  return timingSafeEqual(hashSecret(secret), secretHash)
}
