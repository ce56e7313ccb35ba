import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'

/** The longest call of the service, which may begin when the last event has arrived, and 2 s in which its connection is closed. */
const SETTLE_MS = 17_000

/** How an endpoint answers. `call` counts the calls of this webhook-id, from 1; `isHealed` once its shop has mended it. */
export type Conduct = (response: ServerResponse, call: number, isHealed: boolean) => void

/** An endpoint of a shop, as it remembers what it was sent. */
export type Receiver = {
  name: string
  url: string
  /** The secrets that its shop holds, newest first. */
  secrets: string[]
  /** By webhook-id: the body, and how often it came. */
  events: Map<string, { body: string; calls: number }>
  calls: number
  underWay: number
  mostUnderWay: number
  /** Calls that its library refuses, and repeats that differ from the first call. */
  faults: string[]
  isHealed: boolean
}

/** Endpoints of many shops on one port of 127.0.0.1. */
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
    /** Calls of addresses that no shop has given: a redirect that was followed. */
    strays,
    add(name: string): Receiver {
      const path = `/${encodeURIComponent(name)}`
      const heard = { events: new Map(), calls: 0, underWay: 0, mostUnderWay: 0, faults: [], isHealed: false }
      const receiver: Receiver = { name, url: origin + path, secrets: [], ...heard }
      receivers.set(path, receiver)
      return receiver
    },
    /** After the last call: connections that the service has not closed. */
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

/** Judges a call as a shop does, and returns how often its webhook-id has come by now. */
function remember(receiver: Receiver, headers: IncomingHttpHeaders, body: string): number {
  const { events, faults, secrets } = receiver
  const id = String(headers['webhook-id'])
  receiver.calls++
  if (!secrets.some((secret) => isSignedBy(secret, headers, body))) faults.push(`${id} is signed wrongly`)
  const event = events.get(id) ?? { body, calls: 0 }
  if (event.body !== body) faults.push(`${id} came with another body`)
  event.calls++
  events.set(id, event)
  return event.calls
}

/** The library compares the time with its own clock, too: it takes 5 minutes' difference. */
function isSignedBy(secret: string, headers: IncomingHttpHeaders, body: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
