import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { CANCEL, CREATE, createRequest, FORM, formRequest, listRequest, statusRequest } from '../support/requests.ts'
import { longList } from '../support/settlements.ts'
import { trickle } from '../support/slow-sender.ts'
import { basic } from '../support/tenants.ts'
import { connectionsOf, mostConnections, newResponses, open, pace, spread, stillOpen, tally, wire } from './sockets.ts'
import type { Attacker, Target } from './target.ts'

const OPENING_SECONDS = 7
const CLOSING_SECONDS = 2
/** The maximum number of pages of an instance, and of one order. */
const PAGES = 10_000
const PAGES_OF_AN_ORDER = 20
/** The maximum number of different characters in a 16 KiB body: each needs a lookup in the Unicode tables. */
const LONG_HOST = String.fromCharCode(...Array.from({ length: 5_300 }, (_, i) => 0x4e00 + i))
/** Node.js rejects these fields in a trailer after it has passed the request on. */
const BROKEN_TRAILER = '0\r\nContent-Length: 5\r\n\r\n'
/** Values that must be rejected with 400 by RFC 9112, section 3.2. */
const BROKEN_HOSTS = ['a\r\nHost: b', '', 'x@y', 'x/y', 'x, y']
/** Above the limits for the number and for the bytes of headers. */
const MANY_HEADERS = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`x${i}`, '']))
const LARGE_HEADERS = { 'x-large': 'x'.repeat(17 * 1024) }
const NOTIFY_HEADERS = { 'content-type': 'application/json', 'content-length': '9000' }

/** Each attacker's traffic, by name; attacks.ts sets duration and entrance. */
export const ATTACKERS = {
  // Attackers without credentials.
  pipelining: oneConnectionAtATime(10_000, ({ url }) => wire(url, 'GET', `/pay/${randomBytes(16).toString('hex')}`)),
  trailers: badTrailers,
  silent: manyConnections(4_200, () => ''),
  unsent: manyConnections(14_000, ({ url }) => wire(url, 'POST', '/acquirer/paymentNotification', NOTIFY_HEADERS)),
  'broken-hosts': onNewConnections(200, (_target, i) => {
    return `GET /livez HTTP/1.1\r\nHost: ${BROKEN_HOSTS[i % BROKEN_HOSTS.length]}\r\n\r\n`
  }),
  headers: onNewConnections(200, ({ url }, i) => wire(url, 'GET', '/livez', i % 2 ? MANY_HEADERS : LARGE_HEADERS)),
  paths: paced(300, 50, ({ url }) => wire(url, 'GET', '/'.repeat(15_800))),
  keys: paced(300, 50, ({ url }) => {
    const authorization = basic({ publicKey: `pk_${randomBytes(12).toString('hex')}`, secretKey: 'sk_0' })
    return wire(url, 'POST', CREATE, { authorization, 'content-type': FORM }, 'mid=M1')
  }),
  // Attackers who know the URLs of orders.
  pages: manyConnections(PAGES, ({ url, orderIds }, i) =>
    wire(url, 'GET', `/pay/${orderIds[Math.floor(i / PAGES_OF_AN_ORDER) % orderIds.length]}/events`),
  ),
  qr: paced(3_000, 300, ({ url, orderIds }) => wire(url, 'GET', `/pay/${orderIds[0]}/qr.png`)),
  qrs: paced(2_000, 300, ({ url, orderIds }, i) =>
    wire(url, 'GET', `/pay/${orderIds[(i >> 1) % orderIds.length]}/qr.${i % 2 ? 'png' : 'svg'}`),
  ),
  // Attackers with a valid key of their own.
  'slow-senders': slowSenders,
  hosts: paced(20, 20, ({ url, tenant: { merchant } }) => {
    const headers = { authorization: basic(merchant.key), 'content-type': FORM }
    return wire(url, 'POST', CREATE, headers, `mid=${merchant.mid}&redirect_url=https://${LONG_HOST}`)
  }),
  lists: slowLists,
  'many-lists': paced(200, 64, ({ url, tenant: { merchant, partner } }, i) =>
    // Each list ends on another day, so that no two are the same.
    posted(url, listRequest(partner, merchant.mid, '01-02-2026', `31-12-${2026 + i}`)),
  ),
  'good-key': floodingKey,
} satisfies Record<string, Attacker>

export type AttackerName = keyof typeof ATTACKERS

/** Formats request number `i`. */
type Text = (target: Target, i: number) => string

const posted = (url: string, { path, headers, body }: ReturnType<typeof formRequest>) =>
  wire(url, 'POST', path, headers, body)

/** Sends requests at a steady rate on persistent connections. */
function paced(perSecond: number, connections: number, text: Text): Attacker {
  return async (target) => {
    const responses = newResponses()
    const free = connectionsOf(target.url, connections, responses)
    let i = 0
    await pace(perSecond, target.seconds, () => void free.next()?.write(text(target, i++)))
    free.close()
    return `${perSecond}/s on ${connections} connections: ${tally(responses)}`
  }
}

/** Sends requests at a steady rate, each on a new connection, because an error response closes it. */
function onNewConnections(perSecond: number, text: Text): Attacker {
  return async (target) => {
    const responses = newResponses()
    let i = 0
    await pace(perSecond, target.seconds, () => {
      const socket = open(target.url, responses, () => socket.destroy())
      socket.write(text(target, i++))
    })
    return `${perSecond}/s on a new connection each: ${tally(responses)}`
  }
}

/** Opens connections that send the text of `text` and stay open. */
function manyConnections(count: number, text: Text): Attacker {
  return async (target) => {
    const { url, seconds } = target
    const responses = newResponses()
    const sockets: Socket[] = []
    const deadline = performance.now() + seconds * 1_000
    await spread(Math.min(count, mostConnections()), OPENING_SECONDS, () => {
      const socket = open(url, responses)
      socket.write(text(target, sockets.length))
      sockets.push(socket)
    })
    await sleep(deadline - performance.now() - CLOSING_SECONDS * 1_000)
    const left = stillOpen(sockets)
    // Closing 5,000 connections at once, as on exit, would block the service for 0.5 s.
    await spread(sockets.length, CLOSING_SECONDS, () => sockets.pop()?.destroy())
    return `${count} connections: ${tally(responses)}, ${left} still open`
  }
}

/** Pipelines all requests on one connection at a time, without waiting for responses. */
function oneConnectionAtATime(requests: number, text: Text): Attacker {
  return async (target) => {
    const responses = newResponses()
    const deadline = performance.now() + target.seconds * 1_000
    let connections = 0
    for (; performance.now() < deadline; connections++) {
      const socket = open(target.url, responses)
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.write(Array.from({ length: requests }, (_, i) => text(target, i)).join(''))
      await Promise.race([closed, sleep(deadline - performance.now())])
      socket.destroy()
    }
    return `${requests} pipelined requests on each of ${connections} consecutive connections: ${tally(responses)}`
  }
}

/** Sends chunked requests that get a response before their body, and then an invalid trailer. */
async function badTrailers({ url, seconds }: Target): Promise<string> {
  const responses = newResponses()
  const head = wire(url, 'GET', '/nowhere', { 'transfer-encoding': 'chunked' })
  await pace(200, seconds, () => {
    const socket = open(url, responses, () => void socket.write(BROKEN_TRAILER))
    socket.write(head)
    // A proxy may first wait for the whole request.
    setTimeout(() => socket.end(BROKEN_TRAILER), 20)
  })
  return `200/s chunked GET requests of an unknown path with an invalid trailer: ${tally(responses)}`
}

/** Half of the connections send headers, half a body, a few bytes at a time. */
async function slowSenders({ url, seconds, tenant: { merchant } }: Target): Promise<string> {
  const responses = newResponses()
  const headers = { authorization: basic(merchant.key), 'content-type': FORM, 'content-length': '4000' }
  const request = wire(url, 'POST', CREATE, headers)
  const sockets = Array.from({ length: 500 }, (_, i): Socket => {
    const socket = open(url, responses)
    if (i % 2 === 0) trickle(socket, request.slice(0, -2), 'x-slow: 1\r\n')
    else trickle(socket, request, 'x')
    return socket
  })
  await sleep(seconds * 1_000)
  return `${sockets.length} slow senders of headers and bodies: ${tally(responses)}, ${stillOpen(sockets)} connections still open`
}

/** One partner reads four long lists concurrently, each as slowly as possible without being cut off. */
async function slowLists({ url, seconds, tenant: { merchant, partner } }: Target): Promise<string> {
  const responses = newResponses()
  const sockets = Array.from({ length: 4 }, () => {
    const socket = open(url, responses)
    socket.write(posted(url, longList(partner, merchant.mid)))
    socket.on('data', () => {
      socket.pause()
      setTimeout(() => socket.resume(), 500)
    })
    return socket
  })
  await sleep(seconds * 1_000)
  return `4 long lists of one partner, 64 KiB per 0.5 s each: ${tally(responses)}, ${stillOpen(sockets)} connections still open`
}

/** A merchant cancels, checks and creates on 1,500 connections, each time immediately after a response. */
async function floodingKey({ url, seconds, tenant: { merchant }, orderIds }: Target): Promise<string> {
  const texts = orderIds.flatMap((order_id) =>
    [
      formRequest(CANCEL, merchant.key, { mid: merchant.mid, order_id }),
      statusRequest(merchant, order_id),
      createRequest(merchant),
    ].map((request) => posted(url, request)),
  )
  const responses = newResponses()
  const deadline = performance.now() + seconds * 1_000
  let sent = 0
  const sockets = new Set<Socket>()
  const add = () => {
    const send = () => void socket.write(texts[sent++ % texts.length] as string)
    const socket = open(url, responses, send)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      if (performance.now() < deadline) setTimeout(add, 1_000)
    })
    send()
  }
  for (let i = 0; i < 1_500; i++) add()
  await sleep(seconds * 1_000)
  for (const socket of sockets) socket.destroy()
  return `${sent} cancels, status checks and creates with one valid key on 1,500 connections: ${tally(responses)}`
}
