import { Resolver } from 'node:dns/promises'
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Limits } from '../limits.ts'
import { readUrl } from '../url.ts'
import { createAddressJudge } from './addresses.ts'

/** A webhook is a POST to an endpoint of a merchant, a return call a GET of an order's redirect_url. */
export type CallKind = 'webhook' | 'return call'

/** For each kind, the operator's exceptions from public addresses: networks as address/prefix. */
export type AllowedNetworks = Readonly<Record<CallKind, readonly string[]>>

export type Call = {
  kind: CallKind
  url: string
  headers?: Readonly<Record<string, string>>
  body?: string
  /** Gives the call up. */
  signal?: AbortSignal
}

/** A whole answer, or as much of it as is read. A redirect is one like any other: it is not followed. */
export type Answer = {
  /** 200 to 599. */
  status: number
  /** Retry-After, whichever way it was spelled, at most a day. */
  retryAfterSeconds: number | undefined
  /** The beginning of the body: one line of printable characters. */
  text: string
}

/** `not allowed`: no connection was made, because of the URL or its address. In all others the event may have arrived. */
export type Failure = {
  failure: 'not allowed' | 'connection failed' | 'timed out' | 'broken answer'
  /** What happened, in our words. Holds no address that a name resolved to, and nothing that was answered. */
  text: string
}

/** The addresses of a name. Rejects with an error with a `code`, such as ENOTFOUND. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<string[]>

type CallerOptions = {
  allowedNetworks: AllowedNetworks
  limits: Limits['webhooks']
  now: () => Date
  resolve?: Resolve
}

/**
 * Calls addresses that merchants choose, and gives them no way to what only this machine can reach. Each call resolves the
 * name, judges every address, and connects to the very addresses that were judged. Resolves to what came back; it does not
 * reject, whatever the other end does.
 */
export function createCaller({ allowedNetworks, limits, now, resolve = createResolve(limits) }: CallerOptions) {
  const judges = {
    webhook: createAddressJudge(allowedNetworks.webhook),
    'return call': createAddressJudge(allowedNetworks['return call']),
  }
  // A connection for each call: none is reused for another name, or after its other end has closed it. Both agents ignore
  // HTTP_PROXY and the like.
  const options = { keepAlive: false, autoSelectFamily: true, autoSelectFamilyAttemptTimeout: limits.connectAttemptMs }
  const agents = { 'http:': new http.Agent(options), 'https:': new https.Agent({ ...options, maxCachedSessions: 0 }) }

  return async (call: Call): Promise<Answer | Failure> => {
    const deadline = new AbortController()
    const end = () => deadline.abort()
    const timer = setTimeout(end, limits.answerMs)
    call.signal?.addEventListener('abort', end)
    if (call.signal?.aborted) end()
    try {
      const url = parseUrl(call.url)
      const addresses = await addressesOf(url, deadline.signal)
      refuseUnlessAllowed(addresses, url, call.kind)
      return await exchange(call, url, addresses, deadline.signal)
    } catch (error) {
      if (deadline.signal.aborted) {
        return { failure: 'timed out', text: `No whole answer came within ${limits.answerMs / 1000} s` }
      }
      return failureOf(error)
    } finally {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', end)
    }
  }

  async function addressesOf({ hostname }: URL, signal: AbortSignal): Promise<string[]> {
    // The URL parser has turned 2130706433, 0x7f.1 and １２７.0.0.1 into 127.0.0.1.
    const host = hostname.replace(/^\[|\]$/g, '')
    if (isIP(host) !== 0) return [host]
    const addresses = await orAborted(resolve(host, signal), signal).catch((error) => {
      throw new CallFault('connection failed', `The name cannot be resolved${codeOf(error)}`)
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

  async function exchange(call: Call, url: URL, addresses: string[], signal: AbortSignal): Promise<Answer> {
    const protocol = url.protocol === 'https:' ? 'https:' : 'http:'
    const request = (protocol === 'https:' ? https : http).request(url, {
      method: call.kind === 'webhook' ? 'POST' : 'GET',
      headers: { 'user-agent': 'upi-payments', ...call.headers },
      agent: agents[protocol],
      // Node.js does not ask it for an address that is written in the URL, which was judged as well.
      lookup: lookupOf(addresses),
      // NODE_TLS_REJECT_UNAUTHORIZED=0 must not reach payments.
      rejectUnauthorized: true,
      maxHeaderSize: limits.answerHeadersBytes,
      signal,
    })
    try {
      request.end(call.body)
      const answer = await firstAnswer(request, limits.interimAnswers)
      const { statusCode: status = 0 } = answer
      if (status < 200 || status > 599) throw new CallFault('broken answer', 'The status is none of HTTP')
      const body = await readAtMost(answer, limits.answerBytes)
      const retryAfterSeconds = secondsUntil(answer.headers['retry-after'], now(), limits.retryAfterSeconds)
      return { status, retryAfterSeconds, text: printable(body, limits.shownCharacters) }
    } finally {
      request.destroy()
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
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'HPE_HEADER_OVERFLOW') return { failure: 'broken answer', text: 'The headers are too large' }
  if (code.startsWith('HPE_'))
    return { failure: 'broken answer', text: `What was answered is not HTTP${codeOf(error)}` }
  return { failure: 'connection failed', text: `The connection failed or broke off${codeOf(error)}` }
}

/** Such as ` (ECONNREFUSED)`: a word of Node.js, which the operator can search for. Its message would hold the address. */
function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  return code === undefined ? '' : ` (${code})`
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

/**
 * Asks the DNS directly. getaddrinfo has two threads for the whole process: two names whose servers did not answer kept
 * each look-up behind them, such as that of the database's name, waiting for 10 s. It does not read /etc/hosts.
 */
function createResolve({ resolveTryMs }: Limits['webhooks']): Resolve {
  return async (name, signal) => {
    // No server needs to be asked for it (RFC 6761). It is called where both addresses are allowed.
    if (/(^|\.)localhost\.?$/.test(name)) return ['127.0.0.1', '::1']
    // Reads /etc/resolv.conf, in 0.03 ms. Each with its own can be given up without the others.
    const resolver = new Resolver({ timeout: resolveTryMs, tries: 2 })
    signal.addEventListener('abort', () => resolver.cancel())
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = [ipv4, ipv6].flatMap((found) => (found.status === 'fulfilled' ? found.value : []))
    if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
    return addresses
  }
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    promise.then(resolve, reject)
  })
}

/** Hands the connection the addresses that were judged, so that a name which has changed since gains nothing. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const judged = addresses.map((address) => ({ address, family: isIP(address) }))
  // With autoSelectFamily Node.js asks for all of them.
  return (_name, _options, done) => done(null, judged)
}

/** The answer to `request`, after the interim ones (status 1xx). */
function firstAnswer(request: ClientRequest, interimAnswers: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let interim = 0
    request.on('error', reject)
    request.on('response', (answer) => {
      // Of what breaks the body the answer itself would only say that it was cut.
      request.on('error', (error) => answer.destroy(error))
      resolve(answer)
    })
    request.on('information', () => {
      interim += 1
      if (interim > interimAnswers) request.destroy(new CallFault('broken answer', 'Interim answers without an end'))
    })
    request.on('upgrade', (_answer, socket) => {
      // Node.js has let go of the connection: nobody else listens to its errors, and request.destroy() does not close it.
      socket.on('error', () => undefined).destroy()
      reject(new CallFault('broken answer', 'Another protocol than HTTP was answered'))
    })
  })
}

async function readAtMost(answer: IncomingMessage, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= bytes) break
  }
  return Buffer.concat(chunks).subarray(0, bytes)
}

/** Retry-After is a number of seconds or a date (RFC 9110, 10.2.3). */
function secondsUntil(retryAfter: string | undefined, now: Date, most: number): number | undefined {
  const text = retryAfter?.trim() ?? ''
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
