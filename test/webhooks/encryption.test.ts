import { createSecretKey, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { decryptSecret, EncryptionError, encryptSecret } from '../../src/platform/encryption.ts'

const key = [createSecretKey(randomBytes(32))]
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const OWNER = 'M1/we_1'

function errorOf(open: () => string): Error {
  try {
    open()
  } catch (error) {
    return error as Error
  }
  throw new Error('the secret was decrypted')
}

describe('an encrypted secret', () => {
  it('decrypts a secret with the key and the owner used for encryption', () => {
    expect(decryptSecret(key, encryptSecret(key, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(decryptSecret(key, encryptSecret(key, '', 'चाय'), 'चाय')).toBe('')
  })

  it('encrypts a secret with the first of two keys, and decrypts a secret with either key', () => {
    const newer = [createSecretKey(randomBytes(32)), ...key]
    expect(decryptSecret(newer, encryptSecret(key, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(decryptSecret(newer, encryptSecret(newer, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(() => decryptSecret(key, encryptSecret(newer, SECRET, OWNER), OWNER)).toThrow(EncryptionError)
  })

  it('does not decrypt a secret with another key or for another row', () => {
    const encrypted = encryptSecret(key, SECRET, OWNER)
    expect(() => decryptSecret([createSecretKey(randomBytes(32))], encrypted, OWNER)).toThrow(EncryptionError)
    for (const owner of ['M2/we_1', 'M1/we_2', '', 'M1/we_1 ', 'm1/we_1']) {
      expect(() => decryptSecret(key, encrypted, owner)).toThrow(EncryptionError)
    }
  })

  it('does not decrypt a secret after any bit has changed', () => {
    const encrypted = encryptSecret(key, SECRET, OWNER)
    for (let bit = 0; bit < encrypted.length * 8; bit += 1) {
      const changed = Buffer.from(encrypted)
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(() => decryptSecret(key, changed, OWNER), `bit ${bit}`).toThrow(EncryptionError)
    }
  })

  it('does not decrypt a truncated or extended secret', () => {
    const encrypted = encryptSecret(key, SECRET, OWNER)
    for (let length = 0; length < encrypted.length; length += 1) {
      expect(() => decryptSecret(key, encrypted.subarray(0, length), OWNER), `${length} bytes`).toThrow(EncryptionError)
    }
    expect(() => decryptSecret(key, Buffer.concat([encrypted, Buffer.alloc(1)]), OWNER)).toThrow(EncryptionError)
  })

  it('encrypts a secret with a new nonce each time, without any part of the secret in the result', () => {
    const encryptions = Array.from({ length: 1_000 }, () => encryptSecret(key, SECRET, OWNER))
    expect(new Set(encryptions.map((encrypted) => encrypted.subarray(0, 12).toString('hex'))).size).toBe(1_000)
    for (const encrypted of encryptions) expect(encrypted.includes(Buffer.from(SECRET).subarray(0, 8))).toBe(false)
  })

  it('returns one error text for a secret that cannot be decrypted, without secret, key, owner or bytes', () => {
    const encrypted = encryptSecret(key, SECRET, OWNER)
    const faults = [
      errorOf(() => decryptSecret([createSecretKey(randomBytes(32))], encrypted, OWNER)),
      errorOf(() => decryptSecret(key, encrypted, 'M2/we_1')),
      errorOf(() => decryptSecret(key, encrypted.subarray(1), OWNER)),
      errorOf(() => decryptSecret(key, encrypted.subarray(0, 5), OWNER)),
    ]
    expect(new Set(faults.map(({ message }) => message)).size).toBe(1)
    for (const fault of faults) {
      expect([fault.name, fault.cause]).toEqual(['EncryptionError', undefined])
      const shown = inspect(fault, { depth: 10, showHidden: true })
      const hidden = [
        SECRET,
        encrypted.toString('hex'),
        encrypted.toString('base64'),
        'M2/we_1',
        key[0]?.export().toString('hex'),
      ]
      for (const text of hidden) expect(shown).not.toContain(text)
    }
  })
})
