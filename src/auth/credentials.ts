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
 * SHA-256 of a secret, 32 bytes. A slow password hash would only serve an attacker who floods us with logins:
 * nobody guesses 256 random bits, and scrypt was measured at 77 ms a request.
 */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** Whether `secret` is the one that was hashed, in a time that does not depend on where they differ. */
export function secretMatches(secret: string, secretHash: Buffer): boolean {
  return timingSafeEqual(hashSecret(secret), secretHash)
}
