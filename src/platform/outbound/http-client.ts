import type { IncomingHttpHeaders } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import type { Limits } from '../../limits.ts'
import { readUrl } from '../fields.ts'
import { printableLine } from '../printable.ts'
import { createAddressJudge } from './addresses.ts'
import { type Resolve, resolve as resolveByDns } from './resolve.ts'

/** A webhook is a POST to a merchant's endpoint; a return-URL callback is a GET of an order's redirect_url. */
export type CallKind = 'webhook' | 'return call'

/** Networks (address/prefix) that the operator allows in addition to public addresses. */
type AllowedNetworks = Readonly<Record<CallKind, readonly string[]>>

export type HttpRequest = {
  /**
   * The operator configures an acquirer's URL, so the service does not check the address, and one connection serves
   * several calls.
   */
  kind: CallKind | 'acquirer'
  url: string
  /** The default is POST for a webhook and GET for any other call. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  headers?: Readonly<Record<string, string>>
  body?: string
  /** Limits for an acquirer's response that is longer than usual. */
  limit?: { ms: number; bytes: number }
  /** Aborting this signal cancels the call. */
  signal?: AbortSignal | undefined
}

/**
 * A response whose body is cut at a limit. A redirect is returned like any other response instead of being followed.
 */
export type HttpResponse = {
  /** The HTTP status, 200 to 999, because a merchant's server may send numbers that HTTP does not define. */
  status: number
  /** The Retry-After header, converted to seconds and limited to a day; undefined without a valid header. */
  retryAfterSeconds: number | undefined
  /** The first characters of the body, as one line of printable characters. */
  text: string
  /** Headers and body are returned for calls to acquirers only. */
  headers?: IncomingHttpHeaders
  body?: Buffer
}

/**
 * `not allowed` means that no connection was opened, because the URL or its address is not allowed. Any other failed
 * call may have reached the receiver.
 */
type HttpFailure = {
  failure: 'not allowed' | 'connection failed' | 'timed out' | 'broken answer'
  /** The service's own text, without the receiver's IP address and without text from the response. */
  text: string
  /** True for a call to an acquirer if certainly no byte of the body was sent, so the call changed nothing. */
  isUnsent?: true
}

export type HttpClient = ReturnType<typeof createOutboundClient>

/**
 * Time after which the next address of the same name is tried. Node.js' default of 250 ms is too short for a server on
 * another continent.
 */
const CONNECT_ATTEMPT_MS = 2_000
/**
 * Longest headers of a response. A merchant's web page responds to return-URL callbacks, with headers as large as any
 * website's.
 */
const HEADERS_BYTES = 16 * 1024
/**
 * Longest body that is read from a merchant. A longer body is cut by closing the connection, and the status is still
 * valid.
 */
const MERCHANT_BYTES = 8 * 1024
/**
 * Largest number of bytes that are read from one connection to a merchant. The limit is twice the longest response that
 * the other limits allow, including interim responses and a body in chunks of one byte. undici limits neither the
 * reason phrase nor the extension of a chunk.
 */
const CONNECTION_BYTES = 512 * 1024
/** Longest body that is read from an acquirer; a usual body has 2 kB. A longer body is cut and is then invalid JSON. */
const ACQUIRER_BYTES = 64 * 1024
/** Largest number of interim responses (status 1xx) to one call. A usual server sends at most one interim response. */
const INTERIM_RESPONSES = 10

type Dependencies = {
  allowedNetworks: AllowedNetworks
  limits: Limits['outbound']
  now: () => Date
  resolve?: Resolve
}

/**
 * Sends every outbound call. Merchants choose addresses, but must not reach private servers through the service: a call
 * to a merchant resolves the name, checks every address, and connects only to the checked addresses, over its own
 * connection. No call follows a redirect or uses a proxy from the environment variables.
 */
export function createOutboundClient({ allowedNetworks, limits, now, resolve = resolveByDns }: Dependencies) {
  const judges = {
    webhook: createAddressJudge(allowedNetworks.webhook),
    'return call': createAddressJudge(allowedNetworks['return call']),
  }
  let acquirers: Agent | undefined

  return { request: send }

  /** Sends a request once. Never rejects, whatever the receiver does. */
  async function send(request: HttpRequest): Promise<HttpResponse | HttpFailure> {
    const ms = request.limit?.ms ?? (request.kind === 'acquirer' ? limits.acquirerMs : limits.merchantMs)
    // A single deadline limits the whole call, because undici's time-outs restart with each byte.
    const end = new AbortController()
    const endLate = () => end.abort(new RequestError('timed out', `No complete response within ${ms / 1000} s`))
    const timer = setTimeout(endLate, ms)
    request.signal?.addEventListener('abort', endLate)
    if (request.signal?.aborted) endLate()
    let isSent = request.kind !== 'acquirer' || request.body === undefined
    const onSend = () => {
      isSent = true
    }
    try {
      const url = parseUrl(request.url)
      return request.kind === 'acquirer'
        ? await callAcquirer(request, url, end, onSend)
        : await callMerchant(request, request.kind, url, end)
    } catch (error) {
      return { ...failureOf(end.signal.aborted ? end.signal.reason : error), ...(!isSent && { isUnsent: true }) }
    } finally {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', endLate)
    }
  }

  async function callAcquirer(request: HttpRequest, url: URL, end: AbortController, onSend: () => void) {
    const { Agent } = await loadUndici()
    const connectMs = Math.min(limits.acquirerConnectMs, limits.acquirerMs)
    // The DNS look-up gets half of the time, so that the other half remains to connect.
    const lookup: LookupFunction = (host, _options, done) =>
      void addressesOf(host, AbortSignal.timeout(connectMs / 2)).then(
        (addresses) => done(null, addresses.map(withFamily)),
        (error) => done(error, []),
      )
    acquirers ??= new Agent(connectionOptions(connectMs, lookup))
    const { body } = request
    if (body === undefined) return exchange(acquirers, request, url, end)
    const headers = { ...request.headers, 'content-length': String(Buffer.byteLength(body)) }
    return exchange(acquirers, { ...request, headers, body: sentBy(body, onSend) }, url, end)
  }

  async function callMerchant(request: HttpRequest, kind: CallKind, url: URL, end: AbortController) {
    const { buildConnector, Client } = await loadUndici()
    // The URL parser has already turned 2130706433, 0x7f.1 and １２７.0.0.1 into 127.0.0.1.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const addresses = isIP(host) === 0 ? await addressesOf(host, end.signal) : [host]
    rejectUnlessAllowed(addresses, url, kind)
    // undici calls `lookup` for host names only. The code above has also checked an IP address in the URL.
    const lookup: LookupFunction = (_name, _options, done) => done(null, addresses.map(withFamily))
    const options = connectionOptions(limits.merchantMs, lookup)
    const open = buildConnector(options.connect)
    const endLong = () => end.abort(new RequestError('broken answer', 'The response is too long'))
    const connect: typeof open = (target, done) =>
      open(target, (...opened) => {
        const [, socket] = opened
        socket?.on('readable', () => socket.bytesRead > CONNECTION_BYTES && endLong())
        done(...opened)
      })
    const ownConnection = new Client(url.origin, { ...options, connect, pipelining: 0 })
    try {
      return await exchange(ownConnection, request, url, end)
    } finally {
      void ownConnection.destroy()
    }
  }

  function connectionOptions(ms: number, lookup: LookupFunction) {
    return {
      connect: {
        lookup,
        autoSelectFamily: true,
        // If the time limit is short, half of the time remains for a name's second address.
        autoSelectFamilyAttemptTimeout: Math.min(CONNECT_ATTEMPT_MS, ms / 2),
        // Certificates are verified even if the environment sets NODE_TLS_REJECT_UNAUTHORIZED=0.
        rejectUnauthorized: true,
        timeout: ms,
      },
      maxHeaderSize: HEADERS_BYTES,
      headersTimeout: 0,
      bodyTimeout: 0,
    }
  }

  async function addressesOf(host: string, signal: AbortSignal): Promise<string[]> {
    const fail = (why = ''): never => {
      const text = `The DNS returned no address for ${host}${why}; /etc/hosts and search domains are not used`
      throw new RequestError('connection failed', text)
    }
    const addresses = await resolve(host, signal).catch((error) => fail(signal.aborted ? ' in time' : wordOf(error)))
    return addresses.length > 0 ? addresses : fail()
  }

  /** Throws if any of the addresses is not allowed, because the network decides which address is used. */
  function rejectUnlessAllowed(addresses: readonly string[], { protocol }: URL, kind: CallKind): void {
    const verdicts = addresses.map(judges[kind])
    if (verdicts.includes('refused')) {
      throw new RequestError('not allowed', `The address is neither public nor in ${SETTINGS[kind]}`)
    }
    // Only webhooks must use https. A return-URL callback goes to the merchant's redirect_url, which browsers open by http too.
    if (protocol === 'http:' && kind === 'webhook' && verdicts.includes('public')) {
      throw new RequestError('not allowed', 'The URL must be https: http is allowed only in WEBHOOK_ALLOWED_NETWORKS')
    }
  }

  async function exchange(
    through: Dispatcher,
    { kind, method, headers, body, limit }: Omit<HttpRequest, 'body'> & { body?: string | Readable },
    { origin, pathname, search }: URL,
    end: AbortController,
  ): Promise<HttpResponse> {
    let interim = 0
    const response = await through.request({
      origin,
      path: `${pathname}${search}`,
      method: method ?? (kind === 'webhook' ? 'POST' : 'GET'),
      headers: { 'user-agent': 'upi-payments', ...headers },
      body: body ?? null,
      signal: end.signal,
      onInfo() {
        interim += 1
        if (interim > INTERIM_RESPONSES) end.abort(new RequestError('broken answer', 'Too many interim responses'))
      },
    })
    const bytes = limit?.bytes ?? (kind === 'acquirer' ? ACQUIRER_BYTES : MERCHANT_BYTES)
    const read = await readAtMost(response.body, bytes)
    return {
      status: response.statusCode,
      retryAfterSeconds: secondsUntil(`${response.headers['retry-after'] ?? ''}`, now(), limits.retryAfterSeconds),
      text: printableLine(String(read), limits.shownCharacters),
      ...(kind === 'acquirer' && { headers: response.headers, body: read }),
    }
  }
}

/**
 * undici is loaded at the first call, because loading undici would delay startup. In the bundle, undici has only a
 * default export.
 */
const loadUndici = async () => (await import('undici')).default

const withFamily = (address: string) => ({ address, family: isIP(address) })

/**
 * Returns a body that calls `onSend` when the body is read: after the connection is opened and before the first byte is
 * sent.
 */
function sentBy(body: string, onSend: () => void): Readable {
  return Readable.from(
    (function* () {
      onSend()
      yield Buffer.from(body)
    })(),
  )
}

const SETTINGS = { webhook: 'WEBHOOK_ALLOWED_NETWORKS', 'return call': 'RETURN_CALL_ALLOWED_NETWORKS' }

class RequestError extends Error {
  readonly failure: HttpFailure['failure']
  constructor(failure: HttpFailure['failure'], text: string) {
    super(text)
    this.failure = failure
  }
}

function failureOf(error: unknown): HttpFailure {
  if (error instanceof RequestError) return { failure: error.failure, text: error.message }
  return OF_NO_HTTP.includes((error as Error).name)
    ? { failure: 'broken answer', text: `The response is not valid HTTP${wordOf(error)}` }
    : { failure: 'connection failed', text: `The connection failed or was interrupted${wordOf(error)}` }
}

/** Names of undici's errors for a response that is not HTTP. */
const OF_NO_HTTP = ['HTTPParserError', 'HeadersOverflowError']

/**
 * Returns the error's code, such as ` (ECONNREFUSED)`, for which the operator can search. Error messages may contain
 * the receiver's address, except the messages of undici's parser and of SocketError.
 */
function wordOf(error: unknown): string {
  const { name, code, message } = error as NodeJS.ErrnoException
  return ` (${[...OF_NO_HTTP, 'SocketError'].includes(name) ? message : (code ?? name)})`
}

/**
 * Returns the error in a URL's text; undefined if the text is valid. Each call checks separately whether http and the
 * address are allowed.
 */
export function urlError(text: string): string | undefined {
  const url = readUrl(text)
  if (url === undefined) return 'must be a URL, such as https://shop.example/webhooks'
  const { protocol, username, password } = url
  if (protocol !== 'https:' && protocol !== 'http:') return 'must be an https URL'
  return username || password ? 'must not contain a user name or password' : undefined
}

function parseUrl(text: string): URL {
  const problem = urlError(text)
  if (problem !== undefined) throw new RequestError('not allowed', `The URL ${problem}`)
  return new URL(text)
}

async function readAtMost(body: AsyncIterable<Buffer>, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= bytes) break
  }
  return Buffer.concat(chunks).subarray(0, bytes)
}

/**
 * Converts a Retry-After header, which contains a number of seconds or a date (RFC 9110, section 10.2.3), to seconds.
 */
function secondsUntil(retryAfter: string, now: Date, most: number): number | undefined {
  const text = retryAfter.trim()
  // The pattern is checked first, because Date.parse reads even -5 as a date.
  const isDate = /^[A-Z].* GMT$/.test(text)
  const seconds = isDate ? Math.ceil((Date.parse(text) - now.getTime()) / 1000) : Number(/^\d+$/.exec(text)?.[0])
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), most)
}
