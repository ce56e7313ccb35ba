import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type BankResponse,
  type CallFault,
  type NotificationFaults,
  type ResponseFields,
  seeded,
  spoil,
} from './bank-faults.ts'

/*
 * Common base of the fakes of all acquirers: a server that responds to calls, sends notifications, and can inject
 * every fault of a bank, see bank-faults.ts. It stores everything in memory, no money moves, and its customer does not
 * exist.
 */

/** A request as received; `body` is undefined if it is neither JSON nor a form. */
export type BankRequest<Call extends string> = {
  call: Call
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export type BankOptions<Call extends string> = {
  now: () => Date
  port?: number
  /** Returns the violation of a request, which is then rejected and recorded. */
  check?: (request: BankRequest<Call>) => string | undefined
  /** The same seed produces the same faults. */
  seed?: number
}

/** The protocol of one acquirer. */
type Speech<Call extends string> = {
  routes: [Call, string, RegExp][]
  /** `names` are the groups that the route's pattern captured. */
  response: (request: BankRequest<Call>, ...names: string[]) => BankResponse
  reject: (status: number, code: string, detail: string) => BankResponse
  responseFields: ResponseFields
  /** Returns a notification signed with `secret` or with the acquirer's own secret. Text is sent unchanged. */
  encrypt: (event: object | string, secret?: string) => { body: string; headers: Record<string, string> }
}

/** A UPI address that belongs to no real customer. */
export const CUSTOMER_VPA = 'asha.made.up@thisisnobank'

/** Maximum attempts to send a notification. */
const NOTIFICATION_TRIES = 4

/** Starts a bank on 127.0.0.1, on a free port unless one is given. */
export async function startFakeBank<Call extends string>(options: BankOptions<Call>, speech: Speech<Call>) {
  const { check = () => undefined } = options
  const random = seeded(options.seed ?? 1)
  const happens = (chance = 0) => random() < chance
  const waiting: { event: object; triesLeft: number }[] = []
  const server = createServer((request, response) => {
    text(request)
      .then((body) => serve({ method: request.method ?? '', path: request.url ?? '', headers: request.headers }, body))
      .then((result) => (result ? send(response, result) : response.destroy()))
      // The caller has disconnected.
      .catch(() => response.destroy())
  })
  await listen(server, options.port ?? 0)
  const { port } = server.address() as AddressInfo

  const bank = {
    url: `http://127.0.0.1:${port}`,
    /** URL for notifications. Without it none is sent. */
    notifyUrl: undefined as string | undefined,
    /** The faults of the next calls, in sequence. */
    nextFaults: {} as Partial<Record<Call, CallFault[]>>,
    /** Faults of calls without one in `nextFaults`, with their probability and, if limited, a part of the path. */
    faults: [] as { call: Call; fault: CallFault; chance: number; path?: string }[],
    notificationFaults: {} as NotificationFaults,
    /** Whether a rejected notification waits to be sent again, up to three times. */
    retriesNotifications: false,
    /** Every request received, in sequence. */
    requests: [] as BankRequest<Call>[],
    /** Violations in these requests. */
    violations: [] as string[],
    countOf: (call: Call) => bank.requests.filter((request) => request.call === call).length,
    happens,
    encrypt: speech.encrypt,
    sendEvent,
    report,

    /** Sends a notification after the response to the call that caused it. */
    sendSoon: async (event: object) => deliver(await sleep(5, event)),

    /** Sends the notifications that are late or were rejected. */
    async sendWaiting(): Promise<void> {
      for (const { event, triesLeft } of waiting.splice(0)) await deliver(event, triesLeft)
    },
    waiting,

    /** Closes the port and all connections, until `comeBack`. */
    async goAway(): Promise<void> {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
    comeBack: () => listen(server, port),
  }
  return bank

  async function serve(request: Omit<BankRequest<Call>, 'call' | 'body'>, bodyText: string) {
    const route = speech.routes.find(([, method, pattern]) => method === request.method && pattern.test(request.path))
    if (!route) return speech.reject(404, 'not-found', 'there is no such call')
    const [call, , pattern] = route
    const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded'
    const body = isForm ? Object.fromEntries(new URLSearchParams(bodyText)) : parse(bodyText)
    const seen = { ...request, call, body }
    bank.requests.push(seen)
    const violation = check(seen)
    if (violation !== undefined) {
      bank.violations.push(`${call}: ${violation}`)
      return speech.reject(400, 'invalid-request', violation)
    }
    const fault =
      bank.nextFaults[call]?.shift() ??
      bank.faults.find(
        ({ call: of, chance, path = '' }) => of === call && request.path.includes(path) && random() < chance,
      )?.fault
    const result = () => speech.response(seen, ...(pattern.exec(request.path)?.slice(1) ?? []))
    if (fault === undefined) return result()
    if (fault === 'redirect') return { status: 307, body: '', headers: { location: request.path } }
    if (fault === 'sent twice') {
      result()
      return result()
    }
    if (fault === 'interim response') return { ...result(), isInterim: true }
    if (typeof fault === 'string') return spoil(result(), fault, speech.responseFields)
    if ('status' in fault) return speech.reject(fault.status, 'fault', 'as injected by the test')
    if ('arrivesAfterMs' in fault) {
      await sleep(fault.arrivesAfterMs)
      result()
      return undefined
    }
    const done = result()
    if ('change' in fault) return { ...done, body: JSON.stringify(fault.change(JSON.parse(done.body))) }
    await ('until' in fault ? fault.until : sleep(fault.afterMs))
    return done
  }

  /**
   * Sends the notifications of a payment. Resolves once they are sent or waiting, with the statuses of the responses;
   * undefined without a response. A forged notification comes last.
   */
  async function report(
    ofPayment: object[],
    faults: NotificationFaults,
    { contradiction, forgery }: { contradiction: () => object; forgery: () => object },
  ): Promise<(number | undefined)[]> {
    let events = ofPayment
    if (happens(faults.contradicted)) events = [...events, contradiction()]
    if (happens(faults.repeated)) events = [...events, ...events]
    if (happens(faults.reordered)) events = events.toReversed()
    const responses: (number | undefined)[] = []
    for (const event of events) {
      if (happens(faults.lost)) continue
      if (happens(faults.late)) waiting.push({ event, triesLeft: NOTIFICATION_TRIES })
      else responses.push(await deliver(event))
    }
    if (happens(faults.forged)) responses.push(await sendEvent(forgery(), { secret: 'of-somebody-else' }))
    return responses
  }

  async function deliver(event: object, triesLeft = NOTIFICATION_TRIES) {
    const status = await sendEvent(event)
    if (status !== 200 && bank.retriesNotifications && triesLeft > 1) waiting.push({ event, triesLeft: triesLeft - 1 })
    return status
  }

  /** Sends a notification once. Returns the status; undefined without a response. */
  async function sendEvent(event: object, { secret }: { secret?: string } = {}): Promise<number | undefined> {
    if (bank.notifyUrl === undefined) return undefined
    const { body, headers } = speech.encrypt(event, secret)
    try {
      const response = await fetch(bank.notifyUrl, { method: 'POST', headers, body })
      await response.arrayBuffer()
      return response.status
    } catch {
      return undefined
    }
  }
}

/** A JSON response. */
export const responded = (status: number, body: object): BankResponse => ({ status, body: JSON.stringify(body) })

function send(response: ServerResponse, { status, body, headers, isCut, isInterim }: BankResponse) {
  // A client that did not request another protocol must not continue as if it had.
  if (isInterim) response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    requestId: randomBytes(10).toString('hex'),
    ...headers,
  })
  if (isCut) response.write(body.slice(0, body.length / 2), () => response.destroy())
  else response.end(body)
}

async function listen(server: Server, port: number): Promise<void> {
  if (server.listening) return
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
