import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * Returns a new key pair. The public key is `pk_` followed by 24 hex digits. The secret key is `sk_` followed by 43
 * base64url characters, which encode 256 random bits. Store `hashSecret(secretKey)`, never the secret.
 */
export function mintKeyPair(): { publicKey: string; secretKey: string } {
  return {
    publicKey: `pk_${randomBytes(12).toString('hex')}`,
    secretKey: `sk_${randomBytes(32).toString('base64url')}`,
  }
}

/**
 * Returns the SHA-256 of a secret, 32 bytes. 256 random bits cannot be guessed, so a slow password hash would add no
 * protection, but would let an attacker overload the service with log-ins.
 */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** Compares the hashes in constant time, so that the response time reveals nothing about the secret. */
export function secretMatches(secret: string, secretHash: Buffer): boolean {
  return timingSafeEqual(hashSecret(secret), secretHash)
}
