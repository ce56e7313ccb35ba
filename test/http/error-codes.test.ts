import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commonErrors, ERRORS_OF_ALL } from '../../src/docs/common-errors.ts'
import { ERROR_CODES, type ErrorCode, type Failure } from '../../src/errors.ts'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { HAPROXY_CONFIG } from '../support/haproxy.ts'
import { DOCUMENT } from '../support/openapi.ts'
import { basic, CREATE, intentFields, newMerchant, newPartner, post, startService } from '../support/service.ts'

const operations = Object.values(OPERATIONS).flat()
const documented: readonly Failure[] = [
  ...operations.flatMap(({ access, errors }) => [...errors, ...commonErrors(access)]),
  ...ERRORS_OF_ALL,
]

describe('the error codes', () => {
  // A client decides by these codes: none of them may be renamed, removed or moved to another status.
  it('the codes and their statuses never change', () => {
    expect(ERROR_CODES).toEqual({
      invalid_fields: 400,
      invalid_body: 400,
      invalid_idempotency_key: 400,
      invalid_host: 400,
      invalid_url: 400,
      invalid_http: 400,
      invalid_credentials: 401,
      invalid_signature: 401,
      merchant_not_allowed: 403,
      key_lacks_right: 403,
      url_not_found: 404,
      order_not_found: 404,
      refund_not_found: 404,
      logo_not_found: 404,
      method_not_allowed: 405,
      request_timeout: 408,
      order_id_exists: 409,
      refund_id_exists: 409,
      payment_already_successful: 409,
      payment_not_successful: 409,
      payment_disputed: 409,
      refund_exceeds_payment: 409,
      too_many_refunds: 409,
      amount_mismatch: 409,
      utr_already_used: 409,
      refund_mismatch: 409,
      payment_closed: 410,
      body_too_large: 413,
      unsupported_content_type: 415,
      unsupported_content_encoding: 415,
      unsupported_expectation: 417,
      idempotency_key_reused: 422,
      rate_limited: 429,
      too_many_invalid_credentials: 429,
      too_many_concurrent_requests: 429,
      long_list_in_progress: 429,
      headers_too_large: 431,
      too_many_headers: 431,
      internal_error: 500,
      response_lost: 502,
      unavailable: 503,
      response_timeout: 504,
    })
  })

  it('the codes are snake_case', () => {
    expect(Object.keys(ERROR_CODES).filter((code) => !/^[a-z]+(?:_[a-z]+)*$/.test(code))).toEqual([])
  })

  it('one text has one code, and a code has several texts only where the texts name details of one meaning', () => {
    const pairs = [...new Set(documented.map(({ code, message }) => `${code}: ${message}`))]
    const repeated = (values: string[]) => values.filter((value, index) => values.indexOf(value) !== index)
    expect(repeated(pairs.map((pair) => pair.slice(pair.indexOf(': '))))).toEqual([])
    const severalTexts = new Set(repeated(pairs.map((pair) => pair.slice(0, pair.indexOf(': ')))))
    expect([...severalTexts].sort()).toEqual(['invalid_fields', 'key_lacks_right', 'order_not_found', 'unavailable'])
  })

  it('the OpenAPI document lists the codes of every error response of every operation', () => {
    type Described = { headers?: Record<string, { required: boolean; schema: { enum: ErrorCode[] } }> }
    const documentOf = ({ path, method }: (typeof operations)[number]) => {
      const item = DOCUMENT.paths[path.replace(/:(\w+)/g, '{$1}')] as unknown as Record<
        string,
        { responses: Record<string, Described> }
      >
      return item[method.toLowerCase()]?.responses ?? {}
    }
    for (const operation of operations) {
      const responses = documentOf(operation)
      const codesOf = (status: string) => responses[status]?.headers?.['x-error-code']?.schema.enum ?? []
      for (const { code, statusCode } of [...operation.errors, ...commonErrors(operation.access)]) {
        expect(codesOf(String(statusCode)), `${operation.name} ${statusCode}`).toContain(code)
      }
      for (const [status, { headers }] of Object.entries(responses).filter(([status]) => status >= '400')) {
        expect(headers?.['x-error-code'], `${operation.name} ${status}`).toMatchObject({ required: true })
        const others = codesOf(status).filter((code) => status !== '4XX' && ERROR_CODES[code] !== Number(status))
        expect(others, `${operation.name} ${status}`).toEqual([])
      }
    }
  })

  it('HAProxy’s own errors have the code of their status in the header and no code in the body', () => {
    const lines = readFileSync(HAPROXY_CONFIG, 'utf8').match(/^ *http-error status .*$/gm) ?? []
    const errors = lines.map((line) => {
      const [, status, body = '', code] =
        /^ *http-error status (\d+) content-type application\/json string '(.*)' hdr x-error-code (\w+)(?: |$)/.exec(
          line,
        ) ?? []
      return { line, status: Number(status), code: code as ErrorCode, body: JSON.parse(body || '{}') }
    })
    expect(errors.map(({ status }) => status).sort()).toEqual([400, 408, 429, 500, 502, 503, 504])
    for (const { line, status, code, body } of errors) {
      expect([ERROR_CODES[code], body], line).toEqual([
        status,
        { status: false, statusCode: status, msg: expect.any(String) },
      ])
    }
    const ofHaproxyOnly = ['too_many_concurrent_requests', 'response_lost', 'response_timeout']
    const explained = ERRORS_OF_ALL.filter(({ code }) => ofHaproxyOnly.includes(code))
    expect(explained).toHaveLength(ofHaproxyOnly.length)
    for (const { code, message, statusCode } of explained) {
      expect(errors).toContainEqual(
        expect.objectContaining({ code, body: { status: false, statusCode, msg: message } }),
      )
    }
  })
})

describe('codes of the responses', async () => {
  const service = await startService()
  const { mid, key } = await newMerchant(service.db)
  const send = async (...request: Parameters<typeof post> extends [unknown, ...infer Rest] ? Rest : never) => {
    const { status, headers } = await post(service.app, ...request)
    return [status, headers['x-error-code']]
  }

  it('a success has no code', async () => {
    expect(await send(CREATE, intentFields(mid), key)).toEqual([200, undefined])
  })

  it('one code covers every reason for which a credential is rejected', async () => {
    const revoked = await newMerchant(service.db)
    await createAccessKeys(service.db).revoke(revoked.key.publicKey, service.clock.now())
    const rejected: Record<string, string>[] = [
      {},
      { authorization: 'Bearer x' },
      { authorization: 'Basic !' },
      { authorization: basic({ ...key, secretKey: 'sk_wrong' }) },
      { authorization: basic({ publicKey: 'pk_000000000000000000000000', secretKey: 'sk_unknown' }) },
      { authorization: basic(revoked.key) },
    ]
    for (const headers of rejected) {
      expect(await send(CREATE, intentFields(mid), undefined, headers)).toEqual([401, 'invalid_credentials'])
    }
  })

  it('one code covers another merchant, an unknown one, a disabled one, and a key of the other kind', async () => {
    const [other, disabled] = [await newMerchant(service.db), await newMerchant(service.db)]
    await createMerchants(service.db).disable(disabled.mid, service.clock.now())
    const partner = await newPartner(service.db, mid)
    for (const [name, caller] of [
      [other.mid, key],
      ['UNKNOWN', key],
      [disabled.mid, disabled.key],
      [mid, partner.key],
    ] as const) {
      expect(await send(CREATE, intentFields(name), caller), name).toEqual([403, 'merchant_not_allowed'])
    }
  })

  it('a rejected create uses up no Idempotency-Key, and its error is not stored', async () => {
    const retry = { 'idempotency-key': 'one' }
    await send(CREATE, intentFields(mid, { order_id: 'taken' }), key)
    expect(await send(CREATE, intentFields(mid, { order_id: 'taken' }), key, retry)).toEqual([409, 'order_id_exists'])
    expect(await send(CREATE, intentFields(mid, { amount: '0' }), key, retry)).toEqual([400, 'invalid_fields'])
    const fields = intentFields(mid, { order_id: 'free' })
    expect(await send(CREATE, fields, key, retry)).toEqual([200, undefined])
    expect(await send(CREATE, { ...fields, note: 'Other' }, key, retry)).toEqual([422, 'idempotency_key_reused'])
    expect(await send(CREATE, fields, key, { 'idempotency-key': 'é' })).toEqual([400, 'invalid_idempotency_key'])
  })

  it.each<[number, ErrorCode, string, string, Record<string, string>]>([
    [400, 'invalid_body', 'a form with invalid percent-encoding', 'mid=%zz', {}],
    [400, 'invalid_body', 'invalid JSON', '{', { 'content-type': 'application/json' }],
    [400, 'invalid_body', 'too many fields', 'a=b&'.repeat(101), {}],
    [400, 'invalid_fields', 'a missing field', 'mid=M1', {}],
    [415, 'unsupported_content_encoding', 'a compressed body', 'mid=M1', { 'content-encoding': 'gzip' }],
  ])('returns %i with the code %s for %s', async (status, code, _name, body, headers) => {
    expect(await send(CREATE, body, key, headers)).toEqual([status, code])
  })
})
