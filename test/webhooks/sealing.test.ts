import { createSecretKey, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { SealError, seal, unseal } from '../../src/platform/encryption.ts'

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
  it('is decrypted with the key and the owner that it was encrypted with', () => {
    expect(unseal(key, seal(key, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(unseal(key, seal(key, '', 'चाय'), 'चाय')).toBe('')
  })

  it('is encrypted with the first of two keys and decrypted with either', () => {
    const newer = [createSecretKey(randomBytes(32)), ...key]
    expect(unseal(newer, seal(key, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(unseal(newer, seal(newer, SECRET, OWNER), OWNER)).toBe(SECRET)
    expect(() => unseal(key, seal(newer, SECRET, OWNER), OWNER)).toThrow(SealError)
  })

  it('is not decrypted with another key or for another row', () => {
    const sealed = seal(key, SECRET, OWNER)
    expect(() => unseal([createSecretKey(randomBytes(32))], sealed, OWNER)).toThrow(SealError)
    for (const owner of ['M2/we_1', 'M1/we_2', '', 'M1/we_1 ', 'm1/we_1']) {
      expect(() => unseal(key, sealed, owner)).toThrow(SealError)
    }
  })

  it('is not decrypted after any bit has changed', () => {
    const sealed = seal(key, SECRET, OWNER)
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      expect(() => unseal(key, changed, OWNER), `bit ${bit}`).toThrow(SealError)
    }
  })

  it('is not decrypted after it was truncated or extended', () => {
    const sealed = seal(key, SECRET, OWNER)
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => unseal(key, sealed.subarray(0, length), OWNER), `${length} bytes`).toThrow(SealError)
    }
    expect(() => unseal(key, Buffer.concat([sealed, Buffer.alloc(1)]), OWNER)).toThrow(SealError)
  })

  it('has a new nonce each time and contains no part of the secret', () => {
    const sealings = Array.from({ length: 1_000 }, () => seal(key, SECRET, OWNER))
    expect(new Set(sealings.map((sealed) => sealed.subarray(0, 12).toString('hex'))).size).toBe(1_000)
    for (const sealed of sealings) expect(sealed.includes(Buffer.from(SECRET).subarray(0, 8))).toBe(false)
  })

  it('that cannot be decrypted produces one error text, without secret, key, owner or bytes', () => {
    const sealed = seal(key, SECRET, OWNER)
    const faults = [
      errorOf(() => unseal([createSecretKey(randomBytes(32))], sealed, OWNER)),
      errorOf(() => unseal(key, sealed, 'M2/we_1')),
      errorOf(() => unseal(key, sealed.subarray(1), OWNER)),
      errorOf(() => unseal(key, sealed.subarray(0, 5), OWNER)),
    ]
    expect(new Set(faults.map(({ message }) => message)).size).toBe(1)
    for (const fault of faults) {
      expect([fault.name, fault.cause]).toEqual(['SealError', undefined])
      const shown = inspect(fault, { depth: 10, showHidden: true })
      const hidden = [
        SECRET,
        sealed.toString('hex'),
        sealed.toString('base64'),
        'M2/we_1',
        key[0]?.export().toString('hex'),
      ]
      for (const text of hidden) expect(shown).not.toContain(text)
    }
  })
})
