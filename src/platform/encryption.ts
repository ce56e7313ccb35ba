import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
/**
 * The standard length of a GCM nonce. One key may encrypt 2^32 times before a repeated random nonce becomes likely
 * enough to matter.
 */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Error for bytes that cannot be decrypted. The message names both possible causes, because GCM cannot distinguish
 * between the causes.
 */
export class EncryptionError extends Error {
  override name = 'EncryptionError'
  constructor() {
    super('a secret cannot be decrypted: WEBHOOK_SEALING_KEY lacks the key that encrypted it, or its row was changed')
  }
}

/**
 * The keys of WEBHOOK_SEALING_KEY: the first key encrypts, and every key decrypts. The list is empty if the variable is
 * not set.
 */
export type EncryptionKeys = readonly KeyObject[]

/**
 * Encrypts a secret for the database. Returns nonce, tag and ciphertext. `owner` names the secret's row, such as
 * `M1/endpoint`, so that a secret that was moved to another row cannot be decrypted. Throws if no key is configured.
 */
export function encryptSecret([key]: EncryptionKeys, secret: string, owner: string): Buffer {
  if (!key) throw new Error('WEBHOOK_SEALING_KEY is not set. Set it to a key that `openssl rand -base64 32` prints.')
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(owner))
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

export const contextOf = ({ mid, endpointId }: { mid: string; endpointId: string }) => `${mid}/${endpointId}`

/**
 * Decrypts a secret. Throws EncryptionError if `keys` does not contain the key that encrypted the secret, if `owner`
 * differs from the `owner` passed to `encryptSecret`, or if a byte was changed.
 */
export function decryptSecret(keys: EncryptionKeys, encrypted: Uint8Array, owner: string): string {
  for (const key of keys) {
    const opened = open(key, encrypted, owner)
    if (opened !== undefined) return opened
  }
  throw new EncryptionError()
}

/** Decrypts with one key. Returns undefined if the bytes cannot be decrypted. */
function open(key: KeyObject, encrypted: Uint8Array, owner: string): string | undefined {
  const nonce = encrypted.subarray(0, NONCE_BYTES)
  const tag = encrypted.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const ciphertext = encrypted.subarray(NONCE_BYTES + TAG_BYTES)
  // Rejects a shorter tag, because a shorter tag would be easier to forge.
  if (tag.length < TAG_BYTES) return undefined
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(owner)).setAuthTag(tag)
  try {
    return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

/**
 * Decrypts the secrets of an endpoint. Throws EncryptionError if the current secret cannot be decrypted. The result
 * omits an earlier secret that cannot be decrypted, so that after a loss of the key the endpoint works again as soon as
 * it has a new secret.
 */
export function decryptAll(
  keys: EncryptionKeys,
  [current, ...earlier]: readonly Uint8Array[],
  owner: string,
): string[] {
  if (!current) return []
  const opened = [decryptSecret(keys, current, owner)]
  for (const encrypted of earlier) {
    try {
      opened.push(decryptSecret(keys, encrypted, owner))
    } catch (error) {
      if (!(error instanceof EncryptionError)) throw error
    }
  }
  return opened
}
