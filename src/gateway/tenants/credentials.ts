import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * A new key pair: the public key is `pk_` and 24 hex digits, the secret key is `sk_` and 43 base64url characters, 256
 * random bits. Store `hashSecret(secretKey)`, never the secret.
 */
export function mintKeyPair(): { publicKey: string; secretKey: string } {
  return {
    publicKey: `pk_${randomBytes(12).toString('hex')}`,
    secretKey: `sk_${randomBytes(32).toString('base64url')}`,
  }
}

/**
 * SHA-256 of a secret, 32 bytes. 256 random bits cannot be guessed, so a slow password hash would protect nothing, and
 * would let an attacker overload the service with log-ins.
 */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** Compares in constant time. */
export function secretMatches(secret: string, secretHash: Buffer): boolean {
  return timingSafeEqual(hashSecret(secret), secretHash)
}
