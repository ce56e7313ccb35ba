import { connect } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FORM } from '../support/requests.ts'
import { basic, CREATE, errorResponse, form, intentFields, unique } from '../support/service.ts'
import { expectEnvelope, startTarget, type WireResponse } from './target.ts'

const target = startTarget()

/**
 * A client that disconnects without an immediate response: many random bytes are the start of a request that never
 * arrives.
 */
const LEAVING = { waitMs: 150 }
const CONCURRENCY = 25
/** A client whose bytes must have been received before it disconnects, on a busy machine too. */
const BREAKING_OFF = { waitMs: 1_000, reset: true }

function good(order_id = unique('o'), connection = 'keep-alive'): string {
  const body = form(intentFields(target.mid, { order_id }))
  return `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(target.key)}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

async function isStored(order_id: string): Promise<boolean> {
  const { rowCount } = await target.db.query('select 1 from payment_intents where merchant_order_id = $1', [order_id])
  return rowCount === 1
}

/**
 * Checks that every response is a whole envelope, or a redirect from `/` to the documents, which `*` requests as well.
 */
function expectEnvelopes(responses: WireResponse[]): void {
  for (const response of responses) if (response.headers.location !== '/docs') expectEnvelope(response)
}

/** `bytes` in pieces, cut at positions that `cuts` gives as fractions of the length. */
function inPieces(bytes: Buffer | string, cuts: number[]): Buffer[] {
  const all = Buffer.from(bytes as Buffer)
  const places = [...cuts.map((part) => Math.floor(part * all.length)), all.length].sort((a, b) => a - b)
  return places.map((end, i) => all.subarray(places[i - 1] ?? 0, end)).filter(({ length }) => length > 0)
}

const someCuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 })

async function expectStillServing(): Promise<void> {
  const [response] = await target.raw(good(unique('o'), 'close'))
  expect(response?.status).toBe(200)
}

describe('bytes on a socket', () => {
  it('returns a JSON envelope or closes the connection for random or almost valid HTTP, and serves the next client', async () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
    const methods = fc.constantFrom('GET', 'POST', 'PUT', 'QUERY', 'TRACE', 'CONNECT', 'get', 'GET ', '\r\nGET', '')
    const address = fc.oneof(
      fc.constantFrom(
        '/',
        '*',
        '//',
        '/%',
        '/pay/%zz/qr.png',
        CREATE,
        'http://x/livez',
        '/livez?%00',
        `/${'a'.repeat(300)}`,
      ),
      fc.string({ unit: 'binary' }),
    )
    const version = fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'HTTP/1.1 x', 'http/1.1', '')
    const header = fc.oneof(
      fc.constantFrom('Host: x', 'Host: x\r\nHost: y', 'Connection: close', 'Connection: upgrade\r\nUpgrade: h2c'),
      fc.constantFrom('Content-Length: 5', 'Content-Length: -1', 'Content-Length: 1e3', 'Content-Length: 5, 5'),
      fc.constantFrom('Transfer-Encoding: chunked', 'Transfer-Encoding: x', 'Transfer-Encoding : chunked', ' folded'),
      fc.constantFrom('Expect: 100-continue', 'Expect: x', 'Trailer: mid', 'TE: trailers', 'Range: bytes=0-'),
      fc.string({ unit: 'binary' }),
    )
    const lineBreak = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r')
    const requestLike = fc
      .tuple(methods, address, version, fc.array(header, { maxLength: 5 }), lineBreak, bytes)
      .map(([method, url, http, headers, eol, body]) =>
        Buffer.concat([Buffer.from([`${method} ${url} ${http}`, ...headers, '', ''].join(eol)), body]),
      )
    const several = fc
      .array(fc.oneof(requestLike, bytes), { minLength: 1, maxLength: 3 })
      .map((all) => Buffer.concat(all))
    // A valid request that is cut off, or has one byte changed.
    const nearlyGood = fc.tuple(fc.nat({ max: 700 }), fc.option(fc.nat({ max: 255 }))).map(([at, byte]) => {
      const request = Buffer.from(good(unique('o'), 'close'))
      const place = at % request.length
      if (byte === null) return request.subarray(0, place)
      request[place] = byte
      return request
    })
    const sent = fc.record({
      pieces: fc.tuple(fc.oneof(several, nearlyGood), someCuts).map(([all, cuts]) => inPieces(all, cuts)),
      reset: fc.boolean(),
    })
    const seen = { responses: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(sent, { minLength: CONCURRENCY, maxLength: CONCURRENCY }), async (all) => {
        const exchanges = await Promise.all(all.map(({ pieces, reset }) => target.raw(pieces, { ...LEAVING, reset })))
        for (const [i, responses] of exchanges.entries()) {
          expectEnvelopes(responses)
          // One for each request line, and one for bytes that begin no request.
          const lines =
            Buffer.concat(all[i]?.pieces ?? [])
              .toString('latin1')
              .split('HTTP/').length - 1
          expect(responses.length).toBeLessThanOrEqual(lines + 1)
        }
        seen.responses += exchanges.flat().length
      }),
      { numRuns: 26, endOnFailure: true },
    )
    expect(seen.responses).toBeGreaterThan(50)
    await expectStillServing()
  })
})

describe('pipelined requests, sent in pieces, of which any may break off', () => {
  type Sent = { text: string; statuses: number[] }
  const starts: [string, number][] = [
    ['POST /nowhere', 404],
    ['GET /nowhere', 404],
    [`PUT ${CREATE}`, 405],
    [`POST ${CREATE}`, 401],
    ['GET /livez', 200],
    ['GET /readyz', 200],
    ['CONNECT x:443', 405],
    ['POST /acquirer/paymentNotification', 401],
  ]
  const bodies: [string, boolean][] = [
    ['Content-Length: 5\r\n\r\nmid=x', true],
    ['Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\n0\r\n\r\n', true],
    ['Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\n0\r\nX-Sum: 1\r\n\r\n', true],
    ['Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\n0\r\nContent-Length: 5\r\n\r\n', false],
    ['Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n', false],
    ['Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\nzz\r\n', false],
    ['Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nmid=xyz\r\n', false],
    [`Transfer-Encoding: chunked\r\n\r\n5\r\nmid=x\r\n0\r\nX-Fill: ${'x'.repeat(20_000)}\r\n\r\n`, false],
  ]
  const request = fc
    .tuple(fc.constantFrom(...starts), fc.constantFrom(...bodies), fc.boolean())
    .map(([[start, status], [body, isWhole], expects]): Sent => {
      const headers = `Host: x\r\nContent-Type: ${FORM}\r\n${expects ? 'Expect: 100-continue\r\n' : ''}`
      // A malformed request may get an error response, unless it already got a response: never both.
      return { text: `${start} HTTP/1.1\r\n${headers}${body}`, statuses: isWhole ? [status] : [status, 400, 413, 431] }
    })
  const exchange = fc.tuple(fc.array(request, { minLength: 1, maxLength: 4 }), someCuts)

  it('returns at most one response per pipelined request, in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(exchange, { minLength: CONCURRENCY, maxLength: CONCURRENCY }), async (all) => {
        await Promise.all(
          all.map(async ([requests, cuts]) => {
            const responses = await target.raw(inPieces(requests.map(({ text }) => text).join(''), cuts), LEAVING)
            expectEnvelopes(responses)
            const got = responses.map(({ status }) => status)
            const isExpected = got.every((status, i) => requests[i]?.statuses.includes(status))
            if (!isExpected) throw new Error(`${got} to ${JSON.stringify([requests, cuts])}`)
          }),
        )
      }),
      { numRuns: 12, endOnFailure: true },
    )
    await expectStillServing()
  })

  const chunked = (text: string) => `Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n`

  it('keeps a connection open after a completely read request, and closes the connection after a response that precedes the last chunk of the request', async () => {
    const body = () => form(intentFields(target.mid, { order_id: unique('o') }))
    const head = `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(target.key)}\r\n`
    const requests = [
      `${head}${chunked(body())}0\r\n\r\n`,
      good(),
      // The response is sent early: a proxy would use the connection for another client before the error in the rest
      // closes it.
      `${head.replace(CREATE, '/nowhere')}${chunked(body())}`,
    ]
    const responses = await target.raw(requests, { pauseMs: 1_000 })
    const got = responses.map(({ status, headers }) => [status, headers.connection])
    expect(got).toEqual([
      [200, 'keep-alive'],
      [200, 'keep-alive'],
      [404, 'close'],
    ])
  })
})

describe('a second request hidden in the first', () => {
  const body = 'mid=x'
  const start = `POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\n`
  const chunked = 'Transfer-Encoding: chunked\r\n'

  it.each([
    ['behind two Content-Length headers', `Content-Length: 5\r\nContent-Length: 0\r\n\r\n${body}`],
    ['behind a list of lengths in Content-Length', `Content-Length: 5, 0\r\n\r\n${body}`],
    ['behind a length with a sign', `Content-Length: +5\r\n\r\n${body}`],
    ['behind a length and chunks', `Content-Length: 5\r\n${chunked}\r\n0\r\n\r\n`],
    ['behind chunks and a length', `${chunked}Content-Length: 5\r\n\r\n0\r\n\r\n`],
    ['behind two transfer codings, chunked first', 'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['behind an unknown transfer coding', `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['behind a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
    ['behind a folded header', 'Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n'],
    ['behind a vertical tab in a transfer coding', 'Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n'],
    ['behind a bare line feed', `X: y\nContent-Length: 5\r\n\r\n${body}`],
    ['behind a bare carriage return', `X: y\rContent-Length: 5\r\n\r\n${body}`],
    ['behind a chunk size that overflows', `${chunked}\r\n${'f'.repeat(17)}\r\n`],
    ['behind a negative chunk size', `${chunked}\r\n-1\r\n`],
    ['behind a chunk size with the prefix 0x', `${chunked}\r\n0x5\r\n${body}\r\n0\r\n\r\n`],
    ['behind a chunk that is longer than its size', `${chunked}\r\n1\r\nmid=x\r\n0\r\n\r\n`],
    ['behind a chunk extension of 20,000 bytes', `${chunked}\r\n5;${'x'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`],
    ['behind HTTP/1.0 and chunks', `${chunked}\r\n0\r\n\r\n`, start.replace('1.1', '1.0')],
    ['behind the preface of HTTP/2', 'SM\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\n'],
    ['behind a TLS handshake', '', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03'],
  ])('does not process a second request hidden in the first: %s', async (_name, trick, head = start) => {
    const order_id = unique('smuggled')
    const responses = await target.raw(head + trick + good(order_id, 'close'), LEAVING)
    expectEnvelopes(responses)
    expect(responses.map(({ status }) => status)).not.toContain(200)
    expect(await isStored(order_id)).toBe(false)
    await expectStillServing()
  })
})

describe('log line of a request without a normal response', () => {
  /** The only line of the request whose x-request-id is `id`. */
  async function lineOf(id: string) {
    const lines = () => target.server.log.map((line) => JSON.parse(line)).filter((line) => line.id === id)
    await expect.poll(() => lines().length, { timeout: 10_000 }).toBe(1)
    return lines()[0]
  }
  const withId = (id: string) => good(unique('o'), 'close').replace('Host: x', `Host: x\r\nX-Request-Id: ${id}`)

  it('logs the status 499 if the client resets the connection within the request body', async () => {
    const id = unique('reset-')
    expect(await target.raw(withId(id).slice(0, -10), BREAKING_OFF)).toEqual([])
    expect(await lineOf(id)).toMatchObject({ route: CREATE, status: 499, publicKey: target.key.publicKey })
  })

  it('logs the status 499 if the client disconnects before the response', async () => {
    const id = unique('left-')
    const lock = await target.db.connect()
    await lock.query('begin; lock table payment_intents in access exclusive mode')
    const client = connect(target.server.port, '127.0.0.1', () => client.write(withId(id)))
    try {
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
                         and query like '%insert into payment_intents%'`
      await expect.poll(async () => (await target.db.query(waiting)).rowCount, { interval: 20 }).toBe(1)
      client.resetAndDestroy()
      expect(await lineOf(id)).toMatchObject({ route: CREATE, status: 499, mid: target.mid })
    } finally {
      await lock.query('rollback')
      lock.release()
    }
    const metrics = await (await fetch(`http://127.0.0.1:${target.server.opsPort}/metrics`)).text()
    expect(metrics).toMatch(new RegExp(`http_request_duration_seconds_count\\{route="${CREATE}",status="499"\\} \\d`))
  })

  it('logs the id and status of the response if the rest of the request is malformed', async () => {
    const head = `POST ${CREATE} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\nAuthorization: ${basic(target.key)}\r\n`
    const [response] = await target.raw(`${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)
    expect(JSON.parse(response?.text ?? '')).toEqual(
      errorResponse(400, 'The request is not valid HTTP/1.1. Check the client or proxy that sent it.'),
    )
    expect(await lineOf(String(response?.headers['x-request-id']))).toMatchObject({ route: CREATE, status: 400 })
  })

  it.each([
    ['bytes that are not HTTP', 'garbage\r\n\r\n', 400],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    ['an address that cannot be read', 'GET /pay/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
  ])('logs the id of the response to a request with %s', async (_name, bytes, status) => {
    const [response] = await target.raw(bytes)
    expect(response?.status).toBe(status)
    expect(await lineOf(String(response?.headers['x-request-id']))).toMatchObject({ route: 'none', status })
  })
})
