import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient, type HttpRequest } from '../../src/platform/outbound/http-client.ts'
import { type Listener, listen, respondOk } from '../support/listener.ts'
import { freePort } from '../support/processes.ts'
import { trickle } from '../support/slow-sender.ts'
import { until } from '../support/wait.ts'
import { allow } from '../support/webhooks.ts'

const NOW = new Date('2026-11-21T10:00:00Z')
/** A call that must finish by itself may take as long as a busy machine needs; one that must time out does so soon. */
const LONG_WAIT_MS = 20_000
const SHORT_WAIT_MS = 200

async function callTo(
  receiver: Pick<Listener, 'host' | 'port'>,
  call: Partial<HttpRequest> = {},
  responseMs = LONG_WAIT_MS,
) {
  const limits = { ...LIMITS.outbound, merchantMs: responseMs }
  const { request: send } = createOutboundClient({ allowedNetworks: allow('127.0.0.1/32'), limits, now: () => NOW })
  const url = `http://${receiver.host}:${receiver.port}/hook`
  return send({
    kind: 'webhook',
    url,
    headers: { 'content-type': 'application/json' },
    body: '{}',
    ...call,
  })
}

const serving = async (response: string, responseMs?: number) =>
  callTo(await listen((socket) => void socket.end(response)), {}, responseMs)

/** Writes `start`, and then `bytes` as fast as they are read, until the connection is closed. */
function writeForEver(socket: Socket, bytes: string, start = ''): void {
  socket.write(start)
  const more = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on('drain', more)
  more()
}

const TIMED_OUT = { failure: 'timed out', text: 'No complete response within 0.2 s' }
const HEADERS = 'HTTP/1.1 200 OK\r\n'
const TOO_LARGE = 'The response is not valid HTTP (Headers Overflow Error)'
const CHUNKED = `${HEADERS}transfer-encoding: chunked\r\n\r\n`

const untilClosed = ({ sockets }: Listener) =>
  until('the connections were closed', () => sockets.every((socket) => socket.destroyed))

describe('outbound calls', () => {
  it('an outbound call sends method, headers and body as given, names the service in a header, and leaves no connection open', async () => {
    const receiver = await listen(respondOk)
    await callTo(receiver, {
      headers: { 'content-type': 'application/json', 'webhook-id': 'msg_1' },
      body: '{"a":"é"}',
    })
    const [head = '', body] = receiver.received.split('\r\n\r\n')
    const [line, ...headers] = head.toLowerCase().split('\r\n')
    expect(line).toBe('post /hook http/1.1')
    expect(headers.sort()).toEqual([
      'connection: close',
      'content-length: 10',
      'content-type: application/json',
      `host: 127.0.0.1:${receiver.port}`,
      'user-agent: upi-payments',
      'webhook-id: msg_1',
    ])
    expect(Buffer.from(body ?? '', 'utf8').toString()).toBe('{"a":"é"}')
    await untilClosed(receiver)
  })

  it('an outbound call to a merchant opens a new connection instead of reusing a connection that the receiver may have closed', async () => {
    const receiver = await listen((socket) => void socket.write(`${HEADERS}content-length: 2\r\n\r\nok`))
    const { request: send } = createOutboundClient({
      allowedNetworks: allow('127.0.0.1/32'),
      limits: LIMITS.outbound,
      now: () => NOW,
    })
    const call: HttpRequest = { kind: 'return call', url: `http://127.0.0.1:${receiver.port}/` }
    for (let i = 0; i < 3; i += 1) expect(await send(call)).toMatchObject({ status: 200, text: 'ok' })
    expect(receiver.connections).toBe(3)
    await untilClosed(receiver)
  })

  it('a call to an acquirer reuses the connection of the previous call, and returns a response of up to 64 KiB completely', async () => {
    const body = 'x'.repeat(65_000)
    const receiver = await listen((socket) => {
      socket.on('data', () => socket.write(`${HEADERS}requestid: r1\r\ncontent-length: 65000\r\n\r\n${body}`))
      socket.write(`${HEADERS}requestid: r1\r\ncontent-length: 65000\r\n\r\n${body}`)
    })
    const { request: send } = createOutboundClient({
      allowedNetworks: allow(),
      limits: LIMITS.outbound,
      now: () => NOW,
    })
    const call: HttpRequest = { kind: 'acquirer', url: `http://127.0.0.1:${receiver.port}/` }
    for (let i = 0; i < 3; i += 1) {
      // Its connection is then free for the next call.
      await setImmediate()
      expect(await send(call)).toMatchObject({ status: 200, headers: { requestid: 'r1' }, body: Buffer.from(body) })
    }
    expect(receiver.connections).toBe(1)
  })

  it.each([200, 204, 301, 599])('an outbound call returns the status %i and the start of the body', async (status) => {
    const body = status === 204 ? '' : 'word'
    const length = status === 204 ? '' : `content-length: ${body.length}\r\n`
    expect(await serving(`HTTP/1.1 ${status} x\r\n${length}\r\n${body}`)).toEqual({
      status,
      retryAfterSeconds: undefined,
      text: body,
    })
  })

  it.each([
    ['120', 120],
    [' 7 ', 7],
    ['86401', 86_400],
    ['Sat, 21 Nov 2026 10:02:00 GMT', 120],
    ['Sat, 21 Nov 2026 09:00:00 GMT', 0],
    ['Sun, 21 Nov 2027 10:00:00 GMT', 86_400],
    ['soon', undefined],
    ['', undefined],
    ['-5', undefined],
  ])('an outbound call reads the Retry-After header: %s', async (header, seconds) => {
    const response = `HTTP/1.1 503 x\r\nretry-after: ${header}\r\ncontent-length: 0\r\n\r\n`
    expect(await serving(response)).toEqual({ status: 503, retryAfterSeconds: seconds, text: '' })
  })

  it('an outbound call reads a response delimited by the end of its connection, and a response in chunks', async () => {
    expect(await serving(`${HEADERS}\r\nto the end`)).toMatchObject({ status: 200, text: 'to the end' })
    const chunks = `${CHUNKED}3\r\nyes\r\n0\r\n\r\n`
    expect(await serving(chunks)).toMatchObject({ status: 200, text: 'yes' })
  })

  it('an outbound call returns the response that follows interim responses', async () => {
    const hints = 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
    expect(await serving(`${hints}HTTP/1.1 202 x\r\ncontent-length: 0\r\n\r\n`)).toMatchObject({ status: 202 })
  })

  it('an outbound call returns at most 200 printable characters of a response, in one line', async () => {
    const shown = async (body: string | Buffer) => {
      const receiver = await listen((socket) => {
        socket.write(`${HEADERS}content-length: ${Buffer.byteLength(body)}\r\n\r\n`)
        socket.end(body)
      })
      return ((await callTo(receiver)) as { text: string }).text
    }
    expect(await shown('₹'.repeat(500))).toBe('₹'.repeat(200))
    expect(await shown('😀'.repeat(300))).toBe('😀'.repeat(200))
    expect(await shown('  one\r\n\ttwo\u0000\u001b[31mred\u202etxt\u200b \u2028three ')).toBe(
      'one two [31mred txt three',
    )
    expect(await shown(Buffer.from([0xff, 0xfe, 0x61, 0xc3]))).toBe('a')
    expect(await shown('नमस्ते')).toBe('नमस्ते')
  })
})

describe('memory of outbound calls', () => {
  it('an outbound call stops reading an endless body after 8 KiB and returns the status', async () => {
    const receiver = await listen((socket) => writeForEver(socket, 'x'.repeat(65_536), `${HEADERS}\r\n`))
    expect(await callTo(receiver)).toEqual({ status: 200, retryAfterSeconds: undefined, text: 'x'.repeat(200) })
    await untilClosed(receiver)
    // The size of the system's buffers, not a thousand times as much.
    expect(receiver.sockets[0]?.bytesWritten).toBeLessThan(32 * 1024 * 1024)
  })

  it.each([
    ['headers', HEADERS, `x-many: ${'y'.repeat(100)}\r\n`, TOO_LARGE],
    ['header bytes', `${HEADERS}x-long: `, 'y'.repeat(1_000), TOO_LARGE],
    ['trailers', `${CHUNKED}0\r\n`, 'x-many: y\r\n', TOO_LARGE],
    ['interim responses', '', 'HTTP/1.1 103 x\r\n\r\n', 'Too many interim responses'],
    ['reason phrase', 'HTTP/1.1 200 ', 'y'.repeat(1_000), 'The response is too long'],
    ['chunk extension', `${CHUNKED}2;`, 'y'.repeat(1_000), 'The response is too long'],
    ['garbage', '', '\u0000\u0001\u0002', expect.stringMatching(/^The response is not valid HTTP \(.*HTTP/)],
  ])('an outbound call fails if the receiver sends endless %s', async (_what, start, more, text) => {
    const receiver = await listen((socket) => writeForEver(socket, more.repeat(100), start))
    expect(await callTo(receiver)).toEqual({ failure: 'broken answer', text })
    await untilClosed(receiver)
    expect(receiver.sockets[0]?.bytesWritten).toBeLessThan(32 * 1024 * 1024)
  })

  it.each([
    ['nothing', (_socket: Socket) => {}],
    ['headers in small pieces', (socket: Socket) => trickle(socket, HEADERS, 'x: y\r\n')],
    ['a body in small pieces', (socket: Socket) => trickle(socket, `${HEADERS}content-length: 9000\r\n\r\n`, 'x')],
    ['chunks in small pieces', (socket: Socket) => trickle(socket, CHUNKED, '1\r\nx\r\n')],
    ['interim responses in small pieces', (socket: Socket) => trickle(socket, '', 'HTTP/1.1 102 x\r\n\r\n')],
    ['half a response', (socket: Socket) => void socket.write(`${HEADERS}content-length: 9\r\n\r\nhalf`)],
    ['half a status line', (socket: Socket) => void socket.write('HTTP/1.1 2')],
    ['only an interim response', (socket: Socket) => void socket.write('HTTP/1.1 103 x\r\n\r\n')],
  ])('an outbound call fails if the receiver sends %s', async (_what, response) => {
    const receiver = await listen(response)
    expect(await callTo(receiver, {}, SHORT_WAIT_MS)).toEqual(TIMED_OUT)
    await untilClosed(receiver)
  })

  it('an outbound call does not decompress a gzip response', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000, 'x'))
    const receiver = await listen((socket) => {
      socket.write(`${HEADERS}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
      socket.end(bomb)
    })
    const response = await callTo(receiver)
    expect(response).toMatchObject({ status: 200 })
    expect((response as { text: string }).text).not.toContain('xxx')
  })

  it.each([
    ['responds with HTTP/0.9', '<html>hello</html>'],
    ['uses TLS for an http URL', '\u0015\u0003\u0001\u0000\u0002\u0002\u0046'],
    ['responds with status 42', 'HTTP/1.1 42 x\r\ncontent-length: 0\r\n\r\n'],
  ])('an outbound call finishes if the receiver %s', async (_what, bytes) => {
    expect(await serving(bytes)).toMatchObject({ failure: 'broken answer' })
  })

  it.each([
    ['immediately', (socket: Socket) => socket.destroy()],
    ['with a reset', (socket: Socket) => socket.resetAndDestroy()],
    ['after closing only its own side', (socket: Socket) => socket.end()],
    ['within the headers', (socket: Socket) => socket.end(`${HEADERS}content-le`)],
    ['within the body', (socket: Socket) => socket.end(`${HEADERS}content-length: 9\r\n\r\nhalf`)],
    [
      'after two Content-Length headers',
      (socket: Socket) => socket.end(`${HEADERS}content-length: 2\r\ncontent-length: 3\r\n\r\nok!`),
    ],
    ['within the chunks', (socket: Socket) => socket.end(`${CHUNKED}5\r\nha`)],
    [
      'after an unannounced change of protocol',
      (socket: Socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
    ],
  ])('an outbound call finishes if the receiver closes the connection %s', async (_when, response) => {
    const receiver = await listen((socket) => void response(socket))
    expect(await callTo(receiver)).toEqual({
      failure: expect.stringMatching(/^(connection failed|broken answer)$/),
      text: expect.stringMatching(/./),
    })
  })

  it('an outbound call fails if no server listens at its address', async () => {
    const closed = await listen(respondOk)
    const { port } = closed
    const free = await listen(respondOk, '127.0.0.2', port)
    expect(free.port).toBe(port)
    const { request: send } = createOutboundClient({
      allowedNetworks: allow('127.0.0.0/8'),
      limits: LIMITS.outbound,
      now: () => NOW,
    })
    expect(await send({ kind: 'return call', url: `http://127.0.0.3:${port}/` })).toEqual({
      failure: 'connection failed',
      text: 'The connection failed or was interrupted (ECONNREFUSED)',
    })
  })
})

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'

/** An error event without a listener terminates the process; Vitest reports it as a failure of the run. */
describe.each(['webhook', 'acquirer'] as const)('outbound call of kind %s to any receiver', (kind) => {
  it.each([
    ['keeps the connection open', (_socket: Socket) => {}],
    ['continues to write', (socket: Socket) => writeForEver(socket, 'x'.repeat(65_536))],
    ['closes the connection', (socket: Socket) => void socket.end()],
  ])(
    'an outbound call finishes and leaves no connection open if a receiver that %s responds with 101',
    async (_what, then) => {
      const receiver = await listen((socket) => {
        socket.write(UPGRADE)
        then(socket)
      })
      const text = 'The connection failed or was interrupted (bad upgrade)'
      expect(await callTo(receiver, { kind, method: 'POST' })).toEqual({ failure: 'connection failed', text })
      await untilClosed(receiver)
    },
  )

  it.each([
    ['a whole response', `${HEADERS}content-length: 2\r\n\r\nok`],
    ['interim responses', `HTTP/1.1 102 x\r\n\r\nHTTP/1.1 103 x\r\n\r\n${HEADERS}content-length: 0\r\n\r\n`],
    ['chunks and a trailer', `${CHUNKED}2\r\nok\r\n0\r\nx: y\r\n\r\n`],
    ['another protocol', `${UPGRADE}bytes of it`],
    ['bytes that are not HTTP', '\u0000\u0001HTTP/1.1 200 OK\r\n\r\n'],
  ])(
    'an outbound call finishes if the receiver resets the connection after any number of bytes of %s',
    async (_what, response) => {
      const receiver = await listen((socket) => {
        socket.write(response.slice(0, receiver.sockets.indexOf(socket)))
        // Together with a reset, the system would discard the written bytes.
        setTimeout(() => socket.resetAndDestroy(), 2)
      })
      const calls = Array.from({ length: response.length + 1 }, () => callTo(receiver, { kind, method: 'POST' }))
      for (const end of await Promise.all(calls)) {
        expect(end).toSatisfy((reported) => 'status' in reported || /failed|broken/.test(reported.failure))
      }
      expect(receiver.connections).toBe(response.length + 1)
    },
  )
})

describe('host name of an outbound call', () => {
  const limits = { ...LIMITS.outbound, merchantMs: SHORT_WAIT_MS }
  const call: HttpRequest = { kind: 'return call', url: 'http://shop.example/' }

  it.each([
    [
      'does not exist',
      async () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })),
      'The DNS returned no address for shop.example (ENOTFOUND); /etc/hosts and search domains are not used',
    ],
    [
      'has no address',
      async () => [],
      'The DNS returned no address for shop.example; /etc/hosts and search domains are not used',
    ],
  ])('an outbound call to a host name that %s fails', async (_what, resolve, text) => {
    const { request: send } = createOutboundClient({ allowedNetworks: allow(), limits, now: () => NOW, resolve })
    expect(await send(call)).toEqual({ failure: 'connection failed', text })
  })

  it('an outbound call times out if the DNS servers of the host name do not respond, and cancels the look-up', async () => {
    const resolve = (_name: string, signal: AbortSignal) =>
      new Promise<string[]>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(Object.assign(new Error(), { code: 'ECANCELLED' })))
      })
    const { request: send } = createOutboundClient({ allowedNetworks: allow(), limits, now: () => NOW, resolve })
    expect(await send(call)).toEqual(TIMED_OUT)
  })
})

describe('host name of an acquirer', () => {
  /** The look-up of `silent.example` stops when it is aborted, that of `half.example` returns one address. */
  const resolve = async (name: string, signal: AbortSignal) => {
    if (name !== 'bank.example') await once(signal, 'abort')
    if (name === 'silent.example') throw Object.assign(new Error(), { code: 'ECANCELLED' })
    return ['127.0.0.1']
  }
  const callNamed = (port: number) => {
    const { request: send } = createOutboundClient({
      allowedNetworks: allow(),
      limits: { ...LIMITS.outbound, acquirerConnectMs: 3 * SHORT_WAIT_MS, acquirerMs: LONG_WAIT_MS },
      now: () => NOW,
      resolve,
    })
    return (name: string) => send({ kind: 'acquirer', url: `http://${name}:${port}/`, method: 'POST', body: '{}' })
  }

  it('reports a call as unsent and names the host if an acquirer’s name servers do not respond, while calls to another acquirer succeed', async () => {
    const call = callNamed((await listen(respondOk)).port)
    const silent = Array.from({ length: 8 }, () => call('silent.example'))
    expect(await call('bank.example')).toMatchObject({ status: 200 })
    for (const outcome of await Promise.all(silent)) {
      expect(outcome).toEqual({
        failure: 'connection failed',
        text: 'The DNS returned no address for silent.example in time; /etc/hosts and search domains are not used',
        isUnsent: true,
      })
    }
  })

  it('uses the addresses that have arrived if the look-up of an acquirer’s host name is aborted', async () => {
    expect(await callNamed((await listen(respondOk)).port)('half.example')).toMatchObject({ status: 200 })
  })

  it('needs no name server for an acquirer at localhost', async () => {
    const { request: send } = createOutboundClient({
      allowedNetworks: allow(),
      limits: LIMITS.outbound,
      now: () => NOW,
    })
    for (const host of ['127.0.0.1', '::1']) {
      const { port } = await listen(respondOk, host)
      expect(await send({ kind: 'acquirer', url: `http://localhost:${port}/` })).toMatchObject({ status: 200 })
    }
  })
})

describe('call to an acquirer with a body', () => {
  const request = (to: Pick<Listener, 'host' | 'port'>, acquirerMs = LONG_WAIT_MS) => {
    const limits = { ...LIMITS.outbound, acquirerMs }
    const { request: send } = createOutboundClient({ allowedNetworks: allow(), limits, now: () => NOW })
    return send({ kind: 'acquirer', method: 'POST', url: `http://${to.host}:${to.port}/refunds`, body: '{"a":"é"}' })
  }

  it('reports a call to an acquirer as unsent if the host rejects the connection or the host name is unknown', async () => {
    expect(await request({ host: '127.0.0.1', port: await freePort() })).toMatchObject({ isUnsent: true })
    expect(await request({ host: 'acquirer.invalid', port: 80 })).toMatchObject({ isUnsent: true })
  })

  it('does not report a call to an acquirer as unsent if the connection breaks off or no response arrives', async () => {
    const breaks = await listen((socket) => void socket.destroy())
    expect(await request(breaks)).toEqual(expect.not.objectContaining({ isUnsent: true }))
    expect(breaks.received).toContain('content-length: 10\r\n\r\n{"a":"é"}')
    expect(breaks.connections).toBe(1)
    const silent = await listen(() => undefined)
    expect(await request(silent, SHORT_WAIT_MS)).toEqual(TIMED_OUT)
    expect(await request(await listen(respondOk))).toMatchObject({ status: 200 })
  })
})
