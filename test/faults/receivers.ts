import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'

/**
 * Duration of the service's longest call, which may start when the last event has arrived, plus 2 s to close its
 * connection.
 */
const SETTLE_MS = 17_000

/**
 * How an endpoint responds. `call` counts the calls with this webhook-id from 1; `isHealed` is true once the merchant
 * has fixed it.
 */
export type Conduct = (response: ServerResponse, call: number, isHealed: boolean) => void

/** A merchant's endpoint with the events that it received. */
export type Receiver = {
  name: string
  url: string
  /** The merchant's secrets, newest first. */
  secrets: string[]
  /** Body and number of calls, by webhook-id. */
  events: Map<string, { body: string; calls: number }>
  calls: number
  underWay: number
  mostUnderWay: number
  /** Calls that the verifying library rejects, and repeats that differ from the first call. */
  faults: string[]
  isHealed: boolean
}

/** Starts the endpoints of many merchants on one port of 127.0.0.1. */
export async function startReceivers(conducts: Record<string, Conduct>) {
  const receivers = new Map<string, Receiver>()
  const strays: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const receiver = receivers.get(path)
    const conduct = conducts[receiver?.name ?? '']
    if (!receiver || !conduct) {
      strays.push(path)
      response.writeHead(404).end()
      return
    }
    receiver.mostUnderWay = Math.max(receiver.mostUnderWay, ++receiver.underWay)
    response.on('close', () => receiver.underWay--)
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('error', () => undefined)
    request.on('end', () => conduct(response, remember(receiver, request.headers, body), receiver.isHealed))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    /** Calls to unknown paths, which prove that a redirect was followed. */
    strays,
    add(name: string): Receiver {
      const path = `/${encodeURIComponent(name)}`
      const received = { events: new Map(), calls: 0, underWay: 0, mostUnderWay: 0, faults: [], isHealed: false }
      const receiver: Receiver = { name, url: origin + path, secrets: [], ...received }
      receivers.set(path, receiver)
      return receiver
    },
    /** Returns the connections that the service has not closed after its last call. */
    async openConnections(): Promise<number> {
      await sleep(SETTLE_MS)
      return promisify(server.getConnections.bind(server))()
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Checks a call like a merchant's server, and returns how often its webhook-id has arrived. */
function remember(receiver: Receiver, headers: IncomingHttpHeaders, body: string): number {
  const { events, faults, secrets } = receiver
  const id = String(headers['webhook-id'])
  receiver.calls++
  if (!secrets.some((secret) => isSignedBy(secret, headers, body))) faults.push(`${id} has an invalid signature`)
  const event = events.get(id) ?? { body, calls: 0 }
  if (event.body !== body) faults.push(`${id} arrived with another body`)
  event.calls++
  events.set(id, event)
  return event.calls
}

/** The library also compares the timestamp with its own clock, with a tolerance of 5 minutes. */
function isSignedBy(secret: string, headers: IncomingHttpHeaders, body: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
