import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  answerOf,
  basic,
  CREATE,
  form,
  intentFields,
  type Key,
  LIST,
  newMerchant,
  post,
  refusal,
  startService,
  type TestService,
} from '../support/service.ts'

const REQUEST_MS = 2_000

let service: TestService
let mid: string
let key: Key
let port: number
beforeAll(async () => {
  service = await startService({ limits: { connections: { requestMs: REQUEST_MS } } })
  ;({ mid, key } = await newMerchant(service.db))
  await service.app.listen({ host: '127.0.0.1', port: 0 })
  port = (service.app.server.address() as { port: number }).port
})

async function request(method: string, url: string, headers: Record<string, string> = {}) {
  return answerOf(await service.app.inject({ method: method as 'GET', url, headers }))
}

/** Sends bytes as they are and returns what came back until the server closed the connection. */
function raw(bytes: string | Buffer): Promise<{ head: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
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

describe('every answer is an envelope whose statusCode is the HTTP status', () => {
  it.each(['/v1', '/v2/payments/createPaymentIntent', `${CREATE}/`, '/v1/unknown', '/pay', '/pay/x/qr.gif'])(
    '404 for the unknown address %s, without credentials',
    async (url) => {
      for (const method of ['GET', 'POST', 'PROPFIND']) {
        const { status, body, headers } = await request(method, url)
        expect([status, body]).toEqual([404, refusal(404, 'There is nothing at this address')])
        expect(headers).toMatchObject({ ...envelope, 'x-request-id': expect.any(String) })
      }
    },
  )

  it('404 for an address of 15,000 slashes costs about what any other of that length costs', async () => {
    // Processor time, which a neighbour on the machine changes less than the clock.
    const costOf = async (url: string) => {
      const before = process.cpuUsage()
      for (let i = 0; i < 20; i++) expect((await request('GET', url)).status).toBe(404)
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const [slashes, letters] = ['/'.repeat(15_000), `/${'a'.repeat(15_000)}`]
    const least = { slashes: Number.POSITIVE_INFINITY, letters: Number.POSITIVE_INFINITY }
    for (let i = 0; i < 5; i++) {
      least.letters = Math.min(least.letters, await costOf(letters))
      least.slashes = Math.min(least.slashes, await costOf(slashes))
    }
    // Splitting all of them for every route costs 14 times as much.
    expect(least.slashes / least.letters).toBeLessThan(6)
  })

  it.each([
    ['GET', CREATE, 'POST'],
    ['PUT', CREATE, 'POST'],
    ['OPTIONS', LIST, 'POST'],
    ['PROPFIND', LIST, 'POST'],
    ['DELETE', '/pay/abc/qr.png', 'GET, HEAD'],
    ['POST', '/livez', 'GET, HEAD'],
    ['POST', '/', 'GET, HEAD'],
  ])('405 with Allow for %s %s, without credentials', async (method, url, allow) => {
    const { status, body, headers } = await request(method, `${url}?a=b`)
    expect([status, body]).toEqual([405, refusal(405, `This address answers ${allow} only`)])
    expect(headers).toMatchObject({ ...envelope, allow })
  })

  it('413 for a body over 16 KiB, and not for one of exactly 16 KiB', async () => {
    const fields = form(intentFields(mid))
    const exact = await post(service.app, CREATE, `${fields}&x=${'x'.repeat(16_384 - fields.length - 3)}`, key)
    expect(exact.status).toBe(200)
    const over = await post(service.app, CREATE, `${fields}&x=${'x'.repeat(16_385 - fields.length - 3)}`, key)
    expect([over.status, over.body]).toEqual([413, refusal(413, 'The body must be at most 16384 bytes')])
  })

  it('413 for a chunked body that grows over 16 KiB', async () => {
    const head = `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(key)}\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
    const { head: answer, body } = await raw(`${head}5000\r\n${'x'.repeat(0x5000)}\r\n0\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(JSON.parse(body)).toEqual(refusal(413, 'The body must be at most 16384 bytes'))
  })

  it.each(['text/plain', 'multipart/form-data; boundary=x', 'application/xml', 'nonsense', 'application/json5'])(
    '415 for Content-Type %s',
    async (type) => {
      const { status, body } = await post(service.app, CREATE, 'mid=M1', key, { 'content-type': type })
      expect([status, body]).toEqual([
        415,
        refusal(415, 'Send the body as Content-Type: application/x-www-form-urlencoded or application/json'),
      ])
    },
  )

  it('400 for broken percent-encoding in the address', async () => {
    const { status, body, headers } = await request('GET', '/pay/%zz/qr.png')
    expect([status, body]).toEqual([400, refusal(400, 'The address is not valid percent-encoding')])
    expect(headers).toMatchObject({ ...envelope, 'x-request-id': expect.any(String) })
  })

  it('500 with a fixed text for a fault of ours, its cause in the log only and never the row', async () => {
    const { mid, key } = await newMerchant(service.db)
    await service.db.query(`alter table payment_intents add constraint trap check (note <> 'trap-row-text')`)
    const { status, body, text } = await post(service.app, CREATE, intentFields(mid, { note: 'trap-row-text' }), key)
    await service.db.query('alter table payment_intents drop constraint trap')
    expect([status, body.statusCode, Object.keys(body)]).toEqual([500, 500, ['status', 'statusCode', 'msg']])
    expect(text).not.toMatch(/trap|constraint|payment_intents/)
    const logged = service.log.join('')
    expect(logged).toContain('violates check constraint')
    expect(logged).not.toContain('trap-row-text')
  })
})

describe('bytes that are not HTTP', () => {
  const NOT_HTTP = refusal(400, 'What arrived is not HTTP/1.1')

  it.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100a5010000a10303', 'hex')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a header without colon', 'GET /livez HTTP/1.1\r\nHost x\r\n\r\n'],
    ['two lengths', 'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'both framings',
      'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a header with a NUL', 'GET /livez HTTP/1.1\r\nHost: x\u0000y\r\n\r\n'],
  ])('400 in the envelope for %s, and the connection is closed', async (_name, bytes) => {
    const { head, body } = await raw(bytes)
    expect(head).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/)
    expect(head).toMatch(/connection: close/)
    expect(head).toMatch(/x-request-id: [0-9a-f-]{36}/)
    expect(head).toMatch(/cache-control: no-store/)
    expect(JSON.parse(body)).toEqual(NOT_HTTP)
  })

  it('431 for headers over 16 KiB', async () => {
    const { head, body } = await raw(`GET /livez HTTP/1.1\r\nHost: x\r\nX-Fill: ${'x'.repeat(20_000)}\r\n\r\n`)
    expect(head).toMatch(/^HTTP\/1.1 431 /)
    expect(JSON.parse(body)).toEqual(refusal(431, 'The request headers are too large; send at most 16 KiB of them'))
  })

  const BAD_HOST = refusal(
    400,
    'Send one Host header: a name or address, and a port if there is one, such as pay.example.in:8080',
  )

  it.each([
    ['none', ''],
    ['two', 'Host: x\r\nHost: y\r\n'],
    ['the same twice', 'Host: x\r\nhOST: x\r\n'],
    ['an empty one', 'Host:\r\n'],
    ['a user in it', 'Host: x@y\r\n'],
    ['a path in it', 'Host: x/y\r\n'],
    ['a list', 'Host: x, y\r\n'],
    ['a list without blanks', 'Host: x,y\r\n'],
    ['a blank in it', 'Host: x y\r\n'],
    ['a port that is not a number', 'Host: x:y\r\n'],
    ['two ports', 'Host: x:1:2\r\n'],
    ['an IPv6 address without brackets', 'Host: ::1\r\n'],
    ['a query', 'Host: x?y\r\n'],
    ['a port alone', 'Host: :80\r\n'],
    ['bytes that are not ASCII', 'Host: b\u00fccher.example\r\n'],
  ])('400 for a wrong Host: %s', async (_name, host) => {
    for (const path of ['/livez', '/nowhere']) {
      const { head, body } = await raw(
        Buffer.from(`GET ${path} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`, 'latin1'),
      )
      expect([head.slice(0, 13), JSON.parse(body)]).toEqual(['HTTP/1.1 400 ', BAD_HOST])
    }
  })

  it.each(['x@y', 'x,y'])('400 for an address in absolute form with a wrong host: "%s"', async (host) => {
    const { head, body } = await raw(`GET http://${host}/livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect([head.slice(0, 13), JSON.parse(body)]).toEqual(['HTTP/1.1 400 ', BAD_HOST])
  })

  it.each([
    'pay.example.in',
    'PAY.example.in.',
    'pay.example.in:8080',
    'pay.example.in:',
    'api_1',
    'payments_api-1.internal:3000',
    'xn--bcher-kva.example',
    '10.0.0.11:3000',
    '[::1]',
    '[::1]:3000',
    '[2001:db8::7%25eth0]:3000',
    '[::ffff:10.0.0.1]',
  ])('200 for what clients and proxies send as Host: %s', async (host) => {
    const { head } = await raw(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(head).toMatch(/^HTTP\/1.1 200 /)
  })

  it('200 for an address in absolute form, and for HTTP/1.0 without a Host, as balancers ask for health', async () => {
    const absolute = 'GET http://pay.example.in/livez HTTP/1.1\r\nHost: pay.example.in\r\nConnection: close\r\n\r\n'
    expect((await raw(absolute)).head).toMatch(/^HTTP\/1.1 200 /)
    expect((await raw('GET /readyz HTTP/1.0\r\n\r\n')).head).toMatch(/^HTTP\/1.1 200 /)
  })

  it('417 for an Expect that nobody knows', async () => {
    const { head, body } = await raw('GET /livez HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 417 /)
    expect(JSON.parse(body)).toEqual(refusal(417, 'The only Expect that is understood is 100-continue'))
  })

  it('405 for another method also where the whole address was sent, as to a proxy', async () => {
    const { head, body } = await raw(
      `GET http://example.in${CREATE}?a=b HTTP/1.1\r\nHost: example.in\r\nConnection: close\r\n\r\n`,
    )
    expect(head).toMatch(/^HTTP\/1.1 405 /)
    expect(JSON.parse(body)).toEqual(refusal(405, 'This address answers POST only'))
  })

  it('405 for CONNECT', async () => {
    const { head, body } = await raw('CONNECT example.in:443 HTTP/1.1\r\nHost: example.in\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 405 /)
    expect(head).toContain('allow: GET, POST')
    expect(JSON.parse(body)).toEqual(refusal(405, 'This address answers GET, POST only'))
  })

  it('417 in its turn for a pipelined Expect, whose response has no socket yet', async () => {
    const { head, body } = await raw(
      'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n',
    )
    expect([head, body].join()).toMatch(/^HTTP\/1.1 200 /)
    expect(body).toContain('HTTP/1.1 417 ')
  })

  it('survives a client that resets its connection right after CONNECT', async () => {
    for (let i = 0; i < 50; i++) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('connect', resolve))
      socket.write('CONNECT example.in:443 HTTP/1.1\r\nHost: example.in\r\n\r\n')
      socket.resetAndDestroy()
    }
    expect((await request('GET', '/livez')).status).toBe(200)
  })

  it('408 in time for a body that does not come, whatever the client sends meanwhile', async () => {
    const { head, body } = await raw(
      `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(key)}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 300\r\n\r\nmid=`,
    )
    expect(head).toMatch(/^HTTP\/1.1 408 /)
    expect(JSON.parse(body)).toEqual(
      refusal(408, 'The request did not arrive in time; send it again on a new connection'),
    )
  })

  it('400 for a body that is not as long as it says, and the request is not carried out', async () => {
    const order_id = 'cut-short'
    const fields = form(intentFields(mid, { order_id }))
    const socket = connect(port, '127.0.0.1')
    socket.end(
      `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic(key)}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${fields.length + 10}\r\n\r\n${fields}`,
    )
    await new Promise((resolve) => socket.resume().on('close', resolve))
    const { rowCount } = await service.db.query('select 1 from payment_intents where merchant_order_id = $1', [
      order_id,
    ])
    expect(rowCount).toBe(0)
  })

  it('serves on after all of it', async () => {
    expect((await request('GET', '/livez')).body).toMatchObject({ status: true, statusCode: 200 })
  })
})

describe('the order of checks', () => {
  const unknownKey: Key = { publicKey: 'pk_000000000000000000000000', secretKey: 'sk_nobody' }

  it('looks at credentials before the content type, the size and the body', async () => {
    for (const [body, type] of [
      ['mid=%zz', 'application/x-www-form-urlencoded'],
      ['x', 'text/plain'],
      ['x'.repeat(20_000), 'application/x-www-form-urlencoded'],
    ] as const) {
      expect((await post(service.app, CREATE, body, unknownKey, { 'content-type': type })).status).toBe(401)
    }
  })

  it('looks at the content type before the size, at the size before the syntax', async () => {
    expect((await post(service.app, CREATE, 'x'.repeat(20_000), key, { 'content-type': 'text/plain' })).status).toBe(
      415,
    )
    expect((await post(service.app, CREATE, `%zz${'x'.repeat(20_000)}`, key)).status).toBe(413)
  })

  it('looks at the fields before the owner, at the owner before the order guard', async () => {
    const other = await newMerchant(service.db)
    await post(service.app, CREATE, intentFields(mid, { order_id: 'taken' }), key)
    expect((await post(service.app, CREATE, intentFields(mid, { amount: '0' }), other.key)).status).toBe(400)
    expect((await post(service.app, CREATE, intentFields(mid, { order_id: 'taken' }), other.key)).status).toBe(403)
  })

  it('looks at the address and the method before the size, the content type and a body that has not come', async () => {
    const large = 'x'.repeat(20_000)
    expect((await post(service.app, '/v1/unknown', large)).status).toBe(404)
    const put = await service.app.inject({
      method: 'PUT',
      url: CREATE,
      headers: { 'content-type': 'text/plain' },
      payload: large,
    })
    expect(put.statusCode).toBe(405)
    const head = 'POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\nConnection: close\r\n\r\n'
    expect((await raw(head)).head).toMatch(/^HTTP\/1.1 404 /)
    for (const [url, status] of [
      ['/none', 404],
      [CREATE, 405],
    ] as const) {
      const { head: answer } = await raw(`QUERY ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    }
  })

  it('refuses credentials before a byte of the body has come', async () => {
    const head = `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\nConnection: close\r\n\r\n`
    expect((await raw(head)).head).toMatch(/^HTTP\/1.1 401 /)
  })
})
