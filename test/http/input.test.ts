import { describe, expect, it } from 'vitest'
import {
  CREATE,
  errorResponse,
  form,
  type HttpResponse,
  intentFields,
  newMerchant,
  post,
  postJson,
  startService,
} from '../support/service.ts'

const service = await startService()
const { mid, key } = await newMerchant(service.db)

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

const send = (body: string | Buffer, type = FORM): Promise<HttpResponse> =>
  post(service.app, CREATE, body, key, { 'content-type': type })

const MALFORMED_FORM = 'The body must be fields joined by &, each value percent-encoded UTF-8 (a literal % is %25)'
const MALFORMED_JSON = 'The body must be one JSON object in UTF-8'

describe('request body', () => {
  it.each([FORM, `${FORM}; charset=UTF-8`, JSON_TYPE])(
    'accepts a request body with the content type %s',
    async (type) => {
      const fields = intentFields(mid)
      expect((await send(type === JSON_TYPE ? JSON.stringify(fields) : form(fields), type)).status).toBe(200)
    },
  )

  it.each([
    [['mid', 'note'], 'mid must be sent once; note must be sent once'],
    [['SENT'], 'every field must be sent once'],
  ])('rejects a body with the fields %j sent twice, and names only fields of the interface', async (names, msg) => {
    const twice = [...names, ...names].map((name) => `${name}=x`).join('&')
    expect((await send(`${form(intentFields(mid))}&${twice}`)).body).toEqual(errorResponse(400, msg))
    const members = [...names, ...names].map((name) => `"${name}":"x"`).join()
    const json = JSON.stringify(intentFields(mid)).replace('{', `{${members},`)
    expect((await send(json, JSON_TYPE)).body).toEqual(errorResponse(400, msg))
  })

  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'udf1', 'amount[]', ''])(
    'ignores the unknown field %j without setting any other field',
    async (name) => {
      expect((await send(`${form(intentFields(mid))}&${encodeURIComponent(name)}=x`)).status).toBe(200)
      const json = JSON.stringify(intentFields(mid)).replace('{', `{${JSON.stringify(name)}:{"mid":"evil"},`)
      expect((await send(json, JSON_TYPE)).status).toBe(200)
      const inner = `{${JSON.stringify(name)}:${JSON.stringify(intentFields(mid))}}`
      expect((await send(inner, JSON_TYPE)).body.msg).toMatch(/^mid is required; amount is required/)
    },
  )

  it('rejects a body with more than 100 fields', async () => {
    const names = Array.from({ length: 101 }, (_, i) => `f${i}`)
    const tooMany = errorResponse(400, 'The body must have at most 100 fields')
    expect((await send(names.join('=&'))).body).toEqual(tooMany)
    expect((await send(`{${names.map((name) => `"${name}":1`).join()}}`, JSON_TYPE)).body).toEqual(tooMany)
  })

  it.each([
    ['a broken percent-encoding', 'mid=%zz'],
    ['a cut percent-encoding', 'mid=%E0%A4'],
    ['percent-encoded bytes that are not UTF-8', 'mid=%FF%FE'],
    ['an encoded half of a surrogate pair', 'note=%ED%A0%80'],
    ['raw bytes that are not UTF-8', Buffer.from([0x6d, 0x69, 0x64, 0x3d, 0xff, 0xfe])],
  ])('rejects a form body with %s', async (_name, body) => {
    expect((await send(body)).body).toEqual(errorResponse(400, MALFORMED_FORM))
  })

  it.each([
    ['text that is not JSON', '{'],
    ['an empty body', ''],
    ['an array', '[]'],
    ['a string', '"mid"'],
    ['null', 'null'],
    ['two values', '{"mid":"M1"}{"mid":"M2"}'],
    ['an object with a comment', '{"mid":"M1"/**/}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['UTF-16', Buffer.from('{"mid":"M1"}', 'utf16le')],
    ['arrays nested 16,000 deep', '['.repeat(16_000)],
  ])('rejects a JSON body that is not one JSON object in UTF-8: %s', async (_name, body) => {
    expect((await send(body, JSON_TYPE)).body).toEqual(errorResponse(400, MALFORMED_JSON))
  })

  it('accepts a JSON body with a byte order mark, and treats null as an absent field', async () => {
    const json = JSON.stringify({ ...intentFields(mid), order_id: null })
    expect((await send(`\ufeff${json}`, JSON_TYPE)).status).toBe(200)
  })

  it('rejects JSON fields that are not text or cannot be stored, and names each field’s rule', async () => {
    const fields = { ...intentFields(mid), mid: 5, note: ['x'], customer_name: 'a\ud800b' }
    expect((await postJson(service.app, CREATE, fields, key)).body.msg.split('; ')).toEqual([
      'mid must be 1 to 64 characters of A-Z a-z 0-9 _ -, as text in quotes',
      'note must be text of 1 to 255 characters, without control characters',
      'customer_name must be text of 1 to 100 characters, without control characters',
    ])
  })
})
