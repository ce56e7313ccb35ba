import type { IncomingHttpHeaders } from 'node:http'
import { isIP, type LookupFunction } from 'node:net'
import type { Agent, Client, Dispatcher } from 'undici'
import type { Limits } from '../limits.ts'
import { readUrl } from '../url.ts'
import { createAddressJudge } from './addresses.ts'
import { type Resolve, resolve as resolveByDns } from './resolve.ts'

/** A webhook is a POST to an endpoint of a merchant, a return call a GET of an order's redirect_url. */
export type CallKind = 'webhook' | 'return call'

/** For each kind, the operator's exceptions from public addresses: networks as address/prefix. */
export type AllowedNetworks = Readonly<Record<CallKind, readonly string[]>>

export type Call = {
  /** An acquirer's address is the operator's own choice: it is not judged, and its connection serves further calls. */
  kind: CallKind | 'acquirer'
  url: string
  /** POST for a webhook, GET for others, unless it is given. */
  method?: 'GET' | 'POST' | 'PUT'
  headers?: Readonly<Record<string, string>>
  body?: string
  /** Gives the call up. */
  signal?: AbortSignal
}

/** A whole answer, or as much of it as is read. A redirect is one like any other: it is not followed. */
export type Answer = {
  /** 200 to 999: a stranger may say what is none of HTTP. */
  status: number
  /** Retry-After, whichever way it was spelled, at most a day. */
  retryAfterSeconds: number | undefined
  /** The beginning of the body: one line of printable characters. */
  text: string
  /** Of an acquirer only. */
  headers?: IncomingHttpHeaders
  body?: Buffer
}

/** `not allowed`: no connection was made, because of the URL or its address. In all others the event may have arrived. */
export type Failure = {
  failure: 'not allowed' | 'connection failed' | 'timed out' | 'broken answer'
  /** What happened, in our words. Holds no address that a name resolved to, and nothing that was answered. */
  text: string
}

/** Calls once. Resolves to what came back; it does not reject, whatever the other end does. */
export type Caller = (call: Call) => Promise<Answer | Failure>

/** A name's next address is tried after this long. Node.js would take 250 ms, in which no call of another continent ends. */
const CONNECT_ATTEMPT_MS = 2_000
/** A shop's own page answers return calls, so that these are the headers of any website. */
const HEADERS_BYTES = 16 * 1024
/** Read of a merchant's body: then the connection is closed, and the status counts. */
const MERCHANT_BYTES = 8 * 1024
/** Usual answers of acquirers have 2 kB. What is longer is cut, and then no JSON. */
const ACQUIRER_BYTES = 64 * 1024
/** Answers with status 1xx before the one that counts. A usual server sends one at most. */
const INTERIM_ANSWERS = 10

type CallerOptions = {
  allowedNetworks: AllowedNetworks
  limits: Limits['outside']
  now: () => Date
  resolve?: Resolve
}

/**
 * The one way out. Addresses that merchants choose give them no way to what only this machine can reach: each such call
 * resolves the name, judges every address, and connects to the very addresses that were judged, by a connection of its own.
 * No call is redirected, and none uses a proxy of the environment.
 */
export function createCaller({ allowedNetworks, limits, now, resolve = resolveByDns }: CallerOptions): Caller {
  const judges = {
    webhook: createAddressJudge(allowedNetworks.webhook),
    'return call': createAddressJudge(allowedNetworks['return call']),
  }
  let acquirers: Agent | undefined

  return async (call) => {
    const ms = call.kind === 'acquirer' ? limits.acquirerMs : limits.merchantMs
    // One deadline for the whole call: the time-outs of undici start anew with each byte.
    const end = new AbortController()
    const endLate = () => end.abort(new CallFault('timed out', `No whole answer came within ${ms / 1000} s`))
    const timer = setTimeout(endLate, ms)
    call.signal?.addEventListener('abort', endLate)
    if (call.signal?.aborted) endLate()
    let ownConnection: Client | undefined
    try {
      const url = parseUrl(call.url)
      // Loaded by the first call, because it would make every start 30 ms longer. In the bundle it has its default export only.
      const { Agent, Client } = (await import('undici')).default
      if (call.kind === 'acquirer') {
        acquirers ??= new Agent(connectionOptions(ms))
        return await exchange(acquirers, call, url, end)
      }
      const addresses = await addressesOf(url, end.signal)
      refuseUnlessAllowed(addresses, url, call.kind)
      const judged = addresses.map((address) => ({ address, family: isIP(address) }))
      // Not asked for an address that is written in the URL, which was judged as well.
      const lookup: LookupFunction = (_name, _options, done) => done(null, judged)
      ownConnection = new Client(url.origin, { ...connectionOptions(ms, lookup), pipelining: 0 })
      return await exchange(ownConnection, call, url, end)
    } catch (error) {
      return failureOf(end.signal.aborted ? end.signal.reason : error)
    } finally {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', endLate)
      void ownConnection?.destroy()
    }
  }

  function connectionOptions(ms: number, lookup?: LookupFunction) {
    return {
      connect: {
        ...(lookup && { lookup }),
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: CONNECT_ATTEMPT_MS,
        // NODE_TLS_REJECT_UNAUTHORIZED=0 must not reach payments.
        rejectUnauthorized: true,
        timeout: ms,
      },
      maxHeaderSize: HEADERS_BYTES,
      headersTimeout: 0,
      bodyTimeout: 0,
    }
  }

  async function addressesOf({ hostname }: URL, signal: AbortSignal): Promise<string[]> {
    // The URL parser has turned 2130706433, 0x7f.1 and １２７.0.0.1 into 127.0.0.1.
    const host = hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0) return [host]
    const addresses = await resolve(host, signal).catch((error) => {
      throw new CallFault('connection failed', `The name cannot be resolved${wordOf(error)}`)
    })
    if (addresses.length === 0) throw new CallFault('connection failed', 'The name has no address')
    return addresses
  }

  /** One address that is not public is enough: which of them is used is decided by the network, and not by us. */
  function refuseUnlessAllowed(addresses: readonly string[], { protocol }: URL, kind: CallKind): void {
    const verdicts = addresses.map(judges[kind])
    if (verdicts.includes('refused')) {
      throw new CallFault('not allowed', `The address is not public, nor in ${SETTINGS[kind]}`)
    }
    // Customers' browsers open a redirect_url by http as well.
    if (protocol === 'http:' && kind === 'webhook' && verdicts.includes('public')) {
      throw new CallFault('not allowed', 'The URL must be https: http is only for WEBHOOK_ALLOWED_NETWORKS')
    }
  }

  async function exchange(
    through: Dispatcher,
    { kind, method = kind === 'webhook' ? 'POST' : 'GET', headers, body }: Call,
    { origin, pathname, search }: URL,
    end: AbortController,
  ): Promise<Answer> {
    let interim = 0
    const answer = await through.request({
      origin,
      path: `${pathname}${search}`,
      method,
      headers: { 'user-agent': 'upi-payments', ...headers },
      body: body ?? null,
      signal: end.signal,
      onInfo() {
        interim += 1
        if (interim > INTERIM_ANSWERS) end.abort(new CallFault('broken answer', 'Interim answers without an end'))
      },
    })
    const read = await readAtMost(answer.body, kind === 'acquirer' ? ACQUIRER_BYTES : MERCHANT_BYTES)
    return {
      status: answer.statusCode,
      retryAfterSeconds: secondsUntil(`${answer.headers['retry-after'] ?? ''}`, now(), limits.retryAfterSeconds),
      text: printable(read, limits.shownCharacters),
      ...(kind === 'acquirer' && { headers: answer.headers, body: read }),
    }
  }
}

const SETTINGS = { webhook: 'WEBHOOK_ALLOWED_NETWORKS', 'return call': 'RETURN_CALL_ALLOWED_NETWORKS' }

class CallFault extends Error {
  readonly failure: Failure['failure']
  constructor(failure: Failure['failure'], text: string) {
    super(text)
    this.failure = failure
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof CallFault) return { failure: error.failure, text: error.message }
  return OF_NO_HTTP.includes((error as Error).name)
    ? { failure: 'broken answer', text: `What was answered is not HTTP${wordOf(error)}` }
    : { failure: 'connection failed', text: `The connection failed or broke off${wordOf(error)}` }
}

/** Errors of undici. */
const OF_NO_HTTP = ['HTTPParserError', 'HeadersOverflowError']

/** Such as ` (ECONNREFUSED)`, for the operator to search for. Other messages than these of undici would hold the address. */
function wordOf(error: unknown): string {
  const { name, code, message } = error as NodeJS.ErrnoException
  return ` (${[...OF_NO_HTTP, 'SocketError'].includes(name) ? message : (code ?? name)})`
}

/**
 * What is wrong with the URL by itself, or undefined. Whether http is taken, and whether its address is, shows only when it
 * is called.
 */
export function faultOfUrl(text: string): string | undefined {
  const url = readUrl(text)
  if (url === undefined) return 'must be a URL, such as https://shop.example/webhooks'
  const { protocol, username, password } = url
  if (protocol !== 'https:' && protocol !== 'http:') return 'must be an https URL'
  return username || password ? 'must not hold a user or a password' : undefined
}

function parseUrl(text: string): URL {
  const fault = faultOfUrl(text)
  if (fault !== undefined) throw new CallFault('not allowed', `The URL ${fault}`)
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

/** Retry-After is a number of seconds or a date (RFC 9110, 10.2.3). */
function secondsUntil(retryAfter: string, now: Date, most: number): number | undefined {
  const text = retryAfter.trim()
  // Date.parse takes -5 for a date as well.
  const isDate = /^[A-Z].* GMT$/.test(text)
  const seconds = isDate ? Math.ceil((Date.parse(text) - now.getTime()) / 1000) : Number(/^\d+$/.exec(text)?.[0])
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), most)
}

/** Bytes of a stranger as one line that can be shown on a terminal: no control characters, and none that turn text around. */
function printable(bytes: Buffer, characters: number): string {
  const line = bytes.toString('utf8').replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+|\uFFFD+/gu, ' ')
  return [...line.trim()].slice(0, characters).join('')
}
