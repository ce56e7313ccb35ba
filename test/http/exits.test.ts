import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { NOTIFY } from '../support/acquirer.ts'
import {
  basic,
  CREATE,
  errorResponse,
  form,
  intentFields,
  type Key,
  LIST,
  newMerchant,
  post,
  responseOf,
  startService,
} from '../support/service.ts'

/** Payment to a typed UPI ID, which the Android SDK requests and this service does not offer. */
const UPI_ID = '/v1/payments/paymentRequestForOrder'
const FORM = 'application/x-www-form-urlencoded'

const service = await startService()
const { mid, key } = await newMerchant(service.db)
await service.app.listen({ host: '127.0.0.1', port: 0 })

async function request(method: string, url: string, headers: Record<string, string> = {}) {
  return responseOf(await service.app.inject({ method: method as 'GET', url, headers }))
}

/** Sends bytes unchanged and returns all bytes received until the server closes the connection. */
function raw(bytes: string | Buffer, { server } = service.app): Promise<{ head: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setTimeout(15_000, () => socket.destroy(new Error(`still open after: ${text}`)))
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => {
      const [head = '', body = ''] = text.split('\r\n\r\n')
      resolve({ head, body })
    })
  })
}

const envelope = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }

describe('envelope of every error response', () => {
  it.each(['/v1', '/v2/payments/createPaymentIntent', `${CREATE}/`, '/livez/', UPI_ID, '/pay', '/pay/x/qr.gif'])(
    'returns 404 to a caller without credentials for the unknown path %s',
    async (url) => {
      for (const method of ['GET', 'POST', 'PROPFIND']) {
        const { status, body, headers } = await request(method, url)
        expect([status, body]).toEqual([404, errorResponse(404, 'This URL does not exist. Check its path.')])
        expect(headers).toMatchObject({
          ...envelope,
          'x-request-id': expect.any(String),
          'x-error-code': 'url_not_found',
        })
      }
    },
  )

  it.each([
    ['GET', CREATE, 'POST'],
    ['PUT', CREATE, 'POST'],
    ['OPTIONS', LIST, 'POST'],
    ['PROPFIND', LIST, 'POST'],
    ['DELETE', '/pay/abc/qr.png', 'GET, HEAD'],
    ['POST', '/livez', 'GET, HEAD'],
    ['GET', `${NOTIFY}/`, 'POST'],
    ['POST', '/', 'GET, HEAD'],
  ])('returns 405 with Allow to a caller without credentials for %s %s', async (method, url, allow) => {
    const { status, body, headers } = await request(method, `${url}?a=b`)
    expect([status, body]).toEqual([
      405,
      errorResponse(405, `This URL does not allow this method. Use ${allow.replaceAll(', ', ' or ')}.`),
    ])
    expect(headers).toMatchObject({ ...envelope, allow, 'x-error-code': 'method_not_allowed' })
  })

  it('returns 413 for a body over 16 KiB, but not for a body of exactly 16 KiB', async () => {
    const fields = form(intentFields(mid))
    const exact = await post(service.app, CREATE, `${fields}&x=${'x'.repeat(16_384 - fields.length - 3)}`, key)
    expect(exact.status).toBe(200)
    const over = await post(service.app, CREATE, `${fields}&x=${'x'.repeat(16_385 - fields.length - 3)}`, key)
    expect([over.status, over.headers['x-error-code'], over.body]).toEqual([
      413,
      'body_too_large',
      errorResponse(413, 'The body is too large. Send at most 16384 bytes.'),
    ])
  })

  it.each(['text/plain', 'multipart/form-data; boundary=x', 'application/xml', 'nonsense', 'application/json5'])(
    'returns 415 for Content-Type %s',
    async (type) => {
      const { status, body, headers } = await post(service.app, CREATE, 'mid=M1', key, { 'content-type': type })
      expect([status, headers['x-error-code'], body]).toEqual([
        415,
        'unsupported_content_type',
        errorResponse(
          415,
          'This content type is not supported. Send the body as application/x-www-form-urlencoded or application/json.',
        ),
      ])
    },
  )

  it('returns 400 for invalid percent-encoding in the URL', async () => {
    const { status, body, headers } = await request('GET', '/pay/%zz/qr.png')
    expect([status, body]).toEqual([
      400,
      errorResponse(400, 'The URL contains invalid percent-encoding. Encode a literal % as %25.'),
    ])
    expect(headers).toMatchObject({
      ...envelope,
      'x-request-id': expect.any(String),
      'x-error-code': 'invalid_url',
    })
  })

  it('returns a fixed text with 500, logs the cause, and exposes the database row in neither text nor log', async () => {
    const { mid, key } = await newMerchant(service.db)
    await service.db.query(`alter table payment_intents add constraint trap check (note <> 'trap-row-text')`)
    const fields = intentFields(mid, { note: 'trap-row-text' })
    const { status, body, text, headers } = await post(service.app, CREATE, fields, key)
    await service.db.query('alter table payment_intents drop constraint trap')
    expect([status, body.statusCode, Object.keys(body)]).toEqual([500, 500, ['status', 'statusCode', 'msg']])
    expect(headers['x-error-code']).toBe('internal_error')
    expect(text).not.toMatch(/trap|constraint|payment_intents/)
    const logged = service.log.join('')
    expect(logged).toContain('violates check constraint')
    expect(logged).not.toContain('trap-row-text')
  })
})

describe('malformed HTTP', () => {
  const start = (method: string, url: string) => `${method} ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`
  const create = () => `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(key)}\r\nContent-Type: ${FORM}\r\n`
  const NOT_HTTP = 'The request is not valid HTTP/1.1. Check the client or proxy that sent it.'
  const EXPECT = 'This Expect header is not supported. Send 100-continue or no Expect header.'

  it.each<[string, number, string, string, () => string | Buffer]>([
    ['garbage', 400, 'invalid_http', NOT_HTTP, () => 'garbage\r\n\r\n'],
    ['a TLS hello', 400, 'invalid_http', NOT_HTTP, () => Buffer.from('16030100a5010000a10303', 'hex')],
    ['the preface of HTTP/2', 400, 'invalid_http', NOT_HTTP, () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a header without colon', 400, 'invalid_http', NOT_HTTP, () => 'GET /livez HTTP/1.1\r\nHost x\r\n\r\n'],
    ['a header with a NUL', 400, 'invalid_http', NOT_HTTP, () => 'GET /livez HTTP/1.1\r\nHost: x\u0000y\r\n\r\n'],
    [
      'two Content-Length headers',
      400,
      'invalid_http',
      NOT_HTTP,
      () => `${start('POST', '/livez')}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    ],
    [
      'CONNECT',
      405,
      'method_not_allowed',
      'This URL does not allow this method. Use GET or POST.',
      () => 'CONNECT x.in:443 HTTP/1.1\r\nHost: x.in\r\n\r\n',
    ],
    [
      'a chunked body that grows over 16 KiB',
      413,
      'body_too_large',
      'The body is too large. Send at most 16384 bytes.',
      () =>
        `${create()}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5000\r\n${'x'.repeat(0x5000)}\r\n0\r\n\r\n`,
    ],
    [
      'an unknown Expect header',
      417,
      'unsupported_expectation',
      EXPECT,
      () => `${start('GET', '/livez')}Expect: a miracle\r\n\r\n`,
    ],
    [
      'headers over 16 KiB',
      431,
      'headers_too_large',
      'The request headers are too large. Send at most 16 KiB of headers.',
      () => `GET /livez HTTP/1.1\r\nHost: x\r\nX-Fill: ${'x'.repeat(20_000)}\r\n\r\n`,
    ],
    [
      'more than 100 headers',
      431,
      'too_many_headers',
      'The request has too many headers. Send at most 100 headers.',
      () => `${start('GET', '/livez')}${'X-Fill: x\r\n'.repeat(99)}\r\n`,
    ],
  ])('rejects malformed HTTP and closes the connection: %s returns %i', async (_name, status, code, msg, bytes) => {
    expectClosed(status, code, msg, await raw(bytes()))
  })

  it('returns 408 for a request whose body does not arrive, and closes the connection', async () => {
    const limits = { connections: { requestMs: 200 } }
    const { app } = await startService({ limits, replicated: { url: service.databaseUrl } })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const response = await raw(`${create()}Content-Length: 300\r\n\r\nmid=`, app)
    expectClosed(
      408,
      'request_timeout',
      'The request did not arrive in time. Send it again on a new connection.',
      response,
    )
  })

  function expectClosed(status: number, code: string, msg: string, { head, body }: Awaited<ReturnType<typeof raw>>) {
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(head).toMatch(/connection: close/i)
    expect(head).toMatch(/x-request-id: [0-9a-f-]{36}/)
    expect(head).toMatch(/cache-control: no-store/)
    expect(`${head}\r\n`).toContain(`\r\nx-error-code: ${code}\r\n`)
    if (status === 405) expect(head).toContain('allow: GET, POST')
    expect(JSON.parse(body)).toEqual(errorResponse(status, msg))
  }

  const BAD_HOST = errorResponse(
    400,
    'The Host header is missing, repeated or invalid. Send one Host header, such as pay.example.in:8080.',
  )

  it.each([
    ['no Host header', ''],
    ['two Host headers', 'Host: x\r\nhOST: x\r\n'],
    ['an empty Host header', 'Host:\r\n'],
    ['a Host header with a user', 'Host: x@y\r\n'],
    ['a Host header with a path', 'Host: x/y\r\n'],
    ['a list in the Host header', 'Host: x,y\r\n'],
    ['a Host header with a space', 'Host: x y\r\n'],
    ['a Host header with a port that is not a number', 'Host: x:y\r\n'],
    ['a Host header with an IPv6 address without brackets', 'Host: ::1\r\n'],
    ['a query in the Host header', 'Host: x?y\r\n'],
    ['a Host header with a port alone', 'Host: :80\r\n'],
    ['a Host header with bytes that are not ASCII', 'Host: b\u00fccher.example\r\n'],
    ['a Host header beside another host in an absolute-form target', 'Host: x\r\n', 'http://x@y'],
  ])('returns 400 for a request with %s', async (_name, host, origin = '') => {
    for (const path of ['/livez', '/nowhere']) {
      const { head, body } = await raw(
        Buffer.from(`GET ${origin}${path} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, 'latin1'),
      )
      expect([head.slice(0, 13), JSON.parse(body)]).toEqual(['HTTP/1.1 400 ', BAD_HOST])
      expect(head).toContain('x-error-code: invalid_host')
    }
  })

  it.each([
    'pay.example.in',
    'PAY.example.in.',
    'pay.example.in:',
    'payments_api-1.internal:3000',
    'xn--bcher-kva.example',
    '10.0.0.11:3000',
    '[::1]',
    '[::1]:3000',
    '[2001:db8::7%25eth0]:3000',
    '[::ffff:10.0.0.1]',
  ])('returns 200 for a request with the header Host: %s', async (host) => {
    const { head } = await raw(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(head).toMatch(/^HTTP\/1.1 200 /)
  })

  it('accepts health checks from load balancers with an absolute-form target, or with HTTP/1.0 and no Host', async () => {
    const absolute = (url: string) => raw(`${start('GET', `http://pay.example.in${url}`)}\r\n`)
    expect((await absolute('/livez')).head).toMatch(/^HTTP\/1.1 200 /)
    expect((await absolute(`${CREATE}?a=b`)).head).toMatch(/^HTTP\/1.1 405 /)
    expect((await raw('GET /readyz HTTP/1.0\r\n\r\n')).head).toMatch(/^HTTP\/1.1 200 /)
  })

  it('does not process a request whose body is shorter than its Content-Length', async () => {
    const order_id = 'cut-short'
    const fields = form(intentFields(mid, { order_id }))
    const { port } = service.app.server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    socket.end(`${create()}Content-Length: ${fields.length + 10}\r\n\r\n${fields}`)
    await new Promise((resolve) => socket.resume().on('close', resolve))
    const { rowCount } = await service.db.query('select 1 from payment_intents where merchant_order_id = $1', [
      order_id,
    ])
    expect(rowCount).toBe(0)
  })
})

describe('order of the checks of a request', () => {
  const unknownKey: Key = { publicKey: 'pk_000000000000000000000000', secretKey: 'sk_nobody' }

  const large = 'x'.repeat(20_000)

  it.each<[string, number, string, string, string, () => Key | undefined]>([
    ['the address before the size', 404, '/v1/unknown', large, FORM, () => undefined],
    ['credentials before the syntax', 401, CREATE, 'mid=%zz', FORM, () => unknownKey],
    ['credentials before the content type', 401, CREATE, 'x', 'text/plain', () => unknownKey],
    ['credentials before the size', 401, CREATE, large, FORM, () => unknownKey],
    ['the content type before the size', 415, CREATE, large, 'text/plain', () => key],
    ['the size before the syntax', 413, CREATE, `%zz${large}`, FORM, () => key],
  ])('the service checks %s', async (_name, status, url, body, type, caller) => {
    expect((await post(service.app, url, body, caller(), { 'content-type': type })).status).toBe(status)
  })

  it('checks the fields before the key’s merchant, and the merchant before a repeated order_id', async () => {
    const other = await newMerchant(service.db)
    await post(service.app, CREATE, intentFields(mid, { order_id: 'taken' }), key)
    expect((await post(service.app, CREATE, intentFields(mid, { amount: '0' }), other.key)).status).toBe(400)
    expect((await post(service.app, CREATE, intentFields(mid, { order_id: 'taken' }), other.key)).status).toBe(403)
  })

  it.each([
    ['POST /none', 404],
    [`PUT ${CREATE}`, 405],
    [`POST ${CREATE}`, 401],
    ['QUERY /none', 404],
    [`QUERY ${CREATE}`, 405],
  ])('checks path, method and credentials before the body has arrived: %s returns %i', async (line, status) => {
    const { head } = await raw(`${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\nConnection: close\r\n\r\n`)
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  })
})
