import { describe, expect, it } from 'vitest'
import { held, strangeness } from '../support/openapi.ts'
import { CREATE, intentFields, LIST, newMerchant, newPartner, post, startService } from '../support/service.ts'

const service = await startService()
const { mid, key } = await newMerchant(service.db)

/** How many answers `work` made the support of these tests hold against the document. */
async function heldDuring(work: () => Promise<unknown>): Promise<number> {
  const before = held.responses
  await work()
  return held.responses - before
}

const rejected = { status: false, statusCode: 401, msg: 'Revoked credentials' }
const challenge: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'www-authenticate': 'Basic',
  'x-error-code': 'invalid_credentials',
}
const seen = (status: number, body: unknown, headers: Record<string, string | undefined> = challenge) => ({
  status,
  header: (name: string) => headers[name],
  text: typeof body === 'string' ? body : JSON.stringify(body),
})

describe('every response in the tests is checked against the OpenAPI document', () => {
  it('the tests compare a response from a service in their own process with the OpenAPI document', async () => {
    expect(await heldDuring(() => post(service.app, CREATE, intentFields(mid), key))).toBe(1)
    expect(await heldDuring(() => post(service.app, CREATE, intentFields(mid)))).toBe(1)
  })

  it('the tests compare a streamed response with the OpenAPI document', async () => {
    const partner = await newPartner(service.db, mid)
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       select $1, 'STREAM' || i, i, 'BRN' || i, 'SUCCESS', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'
         from generate_series(1, 3000) as i`,
      [mid],
    )
    const fields = { pid: partner.pid, mid, s_date: '01-01-2026', e_date: '02-01-2026' }
    const work = async () => expect((await post(service.app, LIST, fields, partner.key)).body.data).toHaveLength(3000)
    expect(await heldDuring(work)).toBe(1)
  })

  it('the tests compare a response over a connection, from any process, with the OpenAPI document', async () => {
    const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
    // Once where it is sent, once where it arrives.
    expect(await heldDuring(() => fetch(`${address}/livez?x=y`))).toBe(2)
  })
})

describe('the check of a response against the OpenAPI document', () => {
  it('the comparison with the OpenAPI document accepts a documented response', () => {
    expect(strangeness('POST', CREATE, seen(401, rejected))).toEqual([])
    const tooLarge = { ...challenge, 'x-error-code': 'headers_too_large' }
    expect(strangeness('POST', CREATE, seen(431, { ...rejected, statusCode: 431 }, tooLarge))).toEqual([])
  })

  it.each([
    ['a status', seen(418, { ...rejected, statusCode: 418 }), /statusCode must be equal to one of the allowed values/],
    ['a success with another status', seen(201, rejected), /not documented/],
    ['a field', seen(401, { ...rejected, data: {} }), /must NOT have additional properties/],
    ['a missing field', seen(401, { status: false, statusCode: 401 }), /must have required property 'msg'/],
    ['a statusCode that differs from the HTTP status', seen(401, { ...rejected, statusCode: 400 }), /allowed values/],
    [
      'a missing header',
      seen(401, rejected, { ...challenge, 'www-authenticate': undefined }),
      /www-authenticate is missing/,
    ],
    [
      'an error without a code',
      seen(401, rejected, { ...challenge, 'x-error-code': undefined }),
      /x-error-code is missing/,
    ],
    [
      'the code of another error',
      seen(401, rejected, { ...challenge, 'x-error-code': 'order_not_found' }),
      /x-error-code has the undocumented value order_not_found/,
    ],
    [
      'a content type',
      seen(401, 'no', { ...challenge, 'content-type': 'text/plain' }),
      /text\/plain is not documented/,
    ],
  ])('the comparison with the OpenAPI document reports an undocumented part: %s', (_name, response, fault) => {
    expect(strangeness('POST', CREATE, response)?.join()).toMatch(fault)
  })

  it('the comparison with the OpenAPI document reports an operation that the document does not contain', () => {
    expect(strangeness('POST', '/v1/payments/refund', seen(200, {}))).toEqual(['the operation is not documented'])
    expect(strangeness('POST', '/v1/payments/refund', seen(404, {}))).toBeUndefined()
    expect(strangeness('GET', '/metrics', seen(200, ''))).toBeUndefined()
  })
})
