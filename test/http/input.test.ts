import { beforeAll, describe, expect, it } from 'vitest'
import {
  type Answer,
  CREATE,
  form,
  intentFields,
  type Key,
  newMerchant,
  post,
  postJson,
  refusal,
  startService,
  type TestService,
} from '../support/service.ts'

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  service = await startService()
  ;({ mid, key } = await newMerchant(service.db))
})

const send = (body: string | Buffer, type = 'application/x-www-form-urlencoded'): Promise<Answer> =>
  post(service.app, CREATE, body, key, { 'content-type': type })

const MALFORMED_FORM = refusal(
  400,
  'The body must be fields joined by &, each value percent-encoded UTF-8 (a literal % is %25)',
)
const MALFORMED_JSON = refusal(400, 'The body must be one JSON object in UTF-8')

describe('bodies', () => {
  it('takes a form, with a charset or none, and JSON with the same fields', async () => {
    for (const type of ['application/x-www-form-urlencoded', 'application/x-www-form-urlencoded; charset=UTF-8']) {
      expect((await send(form(intentFields(mid)), type)).status).toBe(200)
    }
    expect((await postJson(service.app, CREATE, intentFields(mid), key)).status).toBe(200)
  })

  it('refuses a field that is sent twice, by its name', async () => {
    const { status, body } = await send(`${form(intentFields(mid))}&mid=${mid}&note=again`)
    expect([status, body]).toEqual([400, refusal(400, 'mid must be sent once; note must be sent once')])
  })

  it('refuses an unknown field that is sent twice without echoing its name', async () => {
    expect((await send(`${form(intentFields(mid))}&SENT=1&SENT=2`)).body).toEqual(
      refusal(400, 'every field must be sent once'),
    )
  })

  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'udf1', 'amount[]', ''])(
    'ignores the unknown field %j in a form and in JSON',
    async (name) => {
      expect((await send(`${form(intentFields(mid))}&${encodeURIComponent(name)}=x`)).status).toBe(200)
      const json = JSON.stringify(intentFields(mid)).replace('{', `{${JSON.stringify(name)}:{"mid":"evil"},`)
      expect((await send(json, 'application/json')).status).toBe(200)
    },
  )

  it('does not take fields from the prototype', async () => {
    const json = `{"__proto__":${JSON.stringify(intentFields(mid))}}`
    expect((await send(json, 'application/json')).body.msg).toMatch(/^mid is required; amount is required/)
    expect((await send(`__proto__=x&constructor=y`)).body.msg).toMatch(/^mid is required; amount is required/)
  })

  it('trims leading and trailing blanks', async () => {
    const fields = intentFields(mid, { mid: `  ${mid} `, amount: ' 200', customer_mobile: '0123456789\u00a0' })
    expect((await send(form(fields))).status).toBe(200)
  })

  it.each([
    ['a broken percent-encoding', 'mid=%zz'],
    ['a cut percent-encoding', 'mid=%E0%A4'],
    ['percent-encoded bytes that are not UTF-8', 'mid=%FF%FE'],
    ['an encoded half of a surrogate pair', 'note=%ED%A0%80'],
    ['raw bytes that are not UTF-8', Buffer.from([0x6d, 0x69, 0x64, 0x3d, 0xff, 0xfe])],
  ])('refuses %s', async (_name, body) => {
    const { status, body: answer } = await send(body)
    expect([status, answer]).toEqual([400, MALFORMED_FORM])
  })

  it.each([
    ['text that is not JSON', '{'],
    ['nothing', ''],
    ['an array', '[]'],
    ['a string', '"mid"'],
    ['null', 'null'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a nest 5,000 deep', '['.repeat(5_000)],
  ])('refuses JSON that is %s', async (_name, body) => {
    const { status, body: answer } = await send(body, 'application/json')
    expect([status, answer]).toEqual([400, MALFORMED_JSON])
  })

  it.each([
    ['a NUL', 'a\u0000b'],
    ['an escape', 'a\u001bb'],
    ['half a surrogate pair', 'a\ud800b'],
  ])('refuses %s in JSON, and stores nothing', async (_name, note) => {
    const order_id = `never-${_name.length}`
    const { body } = await postJson(service.app, CREATE, { ...intentFields(mid, { order_id }), note }, key)
    expect(body).toEqual(refusal(400, 'note must be text of 1 to 255 characters, without control characters'))
    const { rowCount } = await service.db.query('select 1 from payment_intents where merchant_order_id = $1', [
      order_id,
    ])
    expect(rowCount).toBe(0)
  })

  it('refuses more than 100 fields', async () => {
    const many = Array.from({ length: 101 }, (_, i) => `f${i}=`).join('&')
    expect((await send(many)).body).toEqual(refusal(400, 'The body must have at most 100 fields'))
  })

  it('refuses values of another type than text by the rule of the field', async () => {
    const { body } = await postJson(service.app, CREATE, { ...intentFields(mid), mid: 5, note: ['x'] }, key)
    expect(body.msg).toBe('mid must be 1 to 64 characters of A-Z a-z 0-9 _ -; note must be text of 1 to 255 characters')
  })

  it('takes null in JSON for an absent field', async () => {
    const { status } = await postJson(service.app, CREATE, { ...intentFields(mid), order_id: null }, key)
    expect(status).toBe(200)
  })
})
