import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { createPartners } from '../../src/gateway/tenants/partners.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import {
  basic,
  CREATE,
  errorResponse,
  intentFields,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  STATUS,
  startService,
} from '../support/service.ts'

const UNAUTHORIZED = errorResponse(
  401,
  'The credentials are missing, malformed, unknown, wrong, revoked or expired. Send Authorization: Basic base64(PUBLIC_KEY:SECRET_KEY).',
)
const FORBIDDEN = errorResponse(
  403,
  'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
)

const service = await startService()
const { mid, key } = await newMerchant(service.db)

const b64 = (text: string) => Buffer.from(text).toString('base64')

describe('invalid credentials', () => {
  it('accepts several blanks between the scheme and the credentials', async () => {
    const { mid, key } = await newMerchant(service.db)
    const authorization = basic(key).replace(' ', '  ')
    const payload = new URLSearchParams({ mid, order_id: 'none' }).toString()
    const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
    const response = await service.app.inject({ method: 'POST', url: STATUS, headers, payload })
    expect(response.statusCode).toBe(404)
  })

  it.each<[string, () => string | undefined]>([
    ['a missing header', () => undefined],
    ['an empty header', () => ''],
    ['another scheme', () => `Bearer ${key.secretKey}`],
    ['Basic without credentials', () => 'Basic'],
    ['broken base64', () => 'Basic !!!!'],
    ['base64 of bytes that are not UTF-8', () => `Basic ${Buffer.from([0xff, 0xfe, 0x3a, 0xff]).toString('base64')}`],
    ['no colon', () => `Basic ${b64(key.publicKey)}`],
    ['an empty public key and secret', () => `Basic ${b64(':')}`],
    ['an empty secret', () => `Basic ${b64(`${key.publicKey}:`)}`],
    ['an empty public key', () => `Basic ${b64(`:${key.secretKey}`)}`],
    ['a length of 10 kB', () => `Basic ${b64(`${key.publicKey}:${'x'.repeat(7_500)}`)}`],
    ['an unknown public key', () => basic({ ...key, publicKey: 'pk_000000000000000000000000' })],
    ['a wrong secret', () => basic({ ...key, secretKey: `${key.secretKey.slice(0, -1)}!` })],
    ['the secret of another key', () => basic({ ...key, secretKey: 'sk_other' })],
    ['the secret in another case', () => basic({ ...key, secretKey: key.secretKey.toUpperCase() })],
    ['a NUL in the secret', () => `Basic ${b64(`${key.publicKey}:${key.secretKey}\u0000`)}`],
    ['SQL in the public key', () => basic({ publicKey: `pk_' or '1'='1`, secretKey: 'x' })],
  ])('returns 401 with the same text and WWW-Authenticate for credentials with %s', async (_name, authorization) => {
    const header = authorization()
    const headers: Record<string, string> = header === undefined ? {} : { authorization: header }
    const response = await post(service.app, CREATE, intentFields(mid), undefined, headers)
    expect([response.status, response.body]).toEqual([401, UNAUTHORIZED])
    expect(response.headers['www-authenticate']).toBe('Basic realm="UPI payments", charset="UTF-8"')
  })

  it('returns 401 for a revoked key within 5 seconds, while another key of the same merchant is accepted', async () => {
    const second = await newKey(service.db, { mid })
    expect((await post(service.app, CREATE, intentFields(mid), second)).status).toBe(200)
    await createAccessKeys(service.db).revoke(second.publicKey, new Date())
    service.clock.advance(5)
    expect((await post(service.app, CREATE, intentFields(mid), second)).status).toBe(401)
    expect((await post(service.app, CREATE, intentFields(mid), key)).status).toBe(200)
  })

  it('splits credentials at the first colon only, so that a secret may contain colons', async () => {
    const { hashSecret } = await import('../../src/gateway/tenants/credentials.ts')
    const withColons = { publicKey: 'pk_colons', secretKey: 'a:b::c' }
    await createAccessKeys(service.db).add({
      publicKey: withColons.publicKey,
      secretHash: hashSecret(withColons.secretKey),
      owner: { mid },
      label: null,
      rights: RIGHTS,
      now: new Date(),
    })
    expect((await post(service.app, CREATE, intentFields(mid), withColons)).status).toBe(200)
  })
})

describe('secrets', () => {
  it('compares secrets by hash, and only with the platform’s constant-time comparison', () => {
    const source = readFileSync(join(import.meta.dirname, '../../src/gateway/tenants/credentials.ts'), 'utf8')
    expect(source).toMatch(/return timingSafeEqual\(hashSecret\(secret\), secretHash\)/)
  })

  it('the database rejects a key that belongs to both a merchant and a partner, or to neither a merchant nor a partner', async () => {
    const { pid } = await newPartner(service.db)
    const insert = (owner: [string | null, string | null]) =>
      service.db.query(
        `insert into access_keys (public_key, secret_hash, mid, pid, rights, created_at)
         values ('pk_both', sha256('x'), $1, $2, '{list}', now())`,
        owner,
      )
    await expect(insert([mid, pid])).rejects.toThrow('access_keys_one_owner_check')
    await expect(insert([null, null])).rejects.toThrow('access_keys_one_owner_check')
  })
})

describe('valid keys without access to the merchant', () => {
  it('returns the same 403 for another merchant’s mid, for an unknown mid, and for a partner’s key', async () => {
    const other = await newMerchant(service.db)
    const partner = await newPartner(service.db, mid)
    const responses = [
      await post(service.app, CREATE, intentFields(other.mid), key),
      await post(service.app, CREATE, intentFields('nobody'), key),
      await post(service.app, CREATE, intentFields(mid), partner.key),
    ]
    for (const { status, body } of responses) expect([status, body]).toEqual([403, FORBIDDEN])
  })

  it('returns 403 for the settlements of a merchant not linked to the partner, for another partner’s pid, and for a merchant’s key', async () => {
    const other = await newMerchant(service.db)
    const partner = await newPartner(service.db, mid)
    const [ofSame, ofOther] = [await newPartner(service.db, mid), await newPartner(service.db, other.mid)]
    const range = { s_date: '01-04-2026', e_date: '30-04-2026' }
    const responses = [
      await post(service.app, LIST, { pid: partner.pid, mid: other.mid, ...range }, partner.key),
      await post(service.app, LIST, { pid: partner.pid, mid: 'nobody', ...range }, partner.key),
      await post(service.app, LIST, { pid: 'nobody', mid, ...range }, partner.key),
      await post(service.app, LIST, { pid: ofSame.pid, mid, ...range }, partner.key),
      await post(service.app, LIST, { pid: ofOther.pid, mid: other.mid, ...range }, partner.key),
      await post(service.app, LIST, { pid: mid, mid, ...range }, key),
    ]
    for (const { status, body } of responses) expect([status, body]).toEqual([403, FORBIDDEN])
    expect((await post(service.app, LIST, { pid: partner.pid, mid, ...range }, partner.key)).status).toBe(200)
  })

  it('returns 403 for a partner’s key within 5 seconds after the operator has unlinked the merchant', async () => {
    const partner = await newPartner(service.db, mid)
    const fields = { pid: partner.pid, mid, s_date: '01-04-2026', e_date: '30-04-2026' }
    const list = async () => (await post(service.app, LIST, fields, partner.key)).status
    expect(await list()).toBe(200)
    await createPartners(service.db).unlink(partner.pid, mid)
    service.clock.advance(5)
    expect(await list()).toBe(403)
  })

  it('returns 403 for a merchant’s key within 5 seconds after the merchant is disabled, and 200 after the merchant is enabled again', async () => {
    const merchant = await newMerchant(service.db)
    const create = async () => (await post(service.app, CREATE, intentFields(merchant.mid), merchant.key)).status
    expect(await create()).toBe(200)
    await createMerchants(service.db).disable(merchant.mid, new Date())
    service.clock.advance(5)
    expect(await create()).toBe(403)
    await createMerchants(service.db).enable(merchant.mid)
    service.clock.advance(5)
    expect(await create()).toBe(200)
  })

  it('accepts partners’ requests for the settlements of a disabled merchant', async () => {
    const merchant = await newMerchant(service.db)
    const partner = await newPartner(service.db, merchant.mid)
    await createMerchants(service.db).disable(merchant.mid, new Date())
    const fields = { pid: partner.pid, mid: merchant.mid, s_date: '01-04-2026', e_date: '30-04-2026' }
    expect((await post(service.app, LIST, fields, partner.key)).status).toBe(200)
  })

  it('decides on 403 from the caller alone, without a query for the requested merchant', async () => {
    const other = await newMerchant(service.db)
    await post(service.app, CREATE, intentFields(other.mid, { order_id: 'theirs' }), other.key)
    const { requests, creates } = service.pools
    const [requested, stored] = [vi.spyOn(requests, 'query'), vi.spyOn(creates, 'connect')]
    const send = async (mid: string) => {
      const { status } = await post(service.app, CREATE, intentFields(mid, { order_id: 'theirs' }), key)
      const queries = requested.mock.calls.filter(([sql]) => !String(sql).includes('access_keys'))
      return [status, queries, stored.mock.calls]
    }
    for (const named of [other.mid, 'nobody']) expect(await send(named)).toEqual([403, [], []])
    for (const spy of [requested, stored]) spy.mockRestore()
  })
})
