import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { mostConnections, newAnswers, open, spread, tally, wire } from './sockets.ts'

const PAGES = 10_000
const PAGES_OF_AN_ORDER = 20
const OPENING_SECONDS = 7
const CLOSING_SECONDS = 2

/** Every place for an open page that the orders allow, from one address. */
export const livePages: Attacker = async ({ url, seconds, orderIds }) => {
  const answers = newAnswers()
  const orders = orderIds.slice(0, Math.floor(Math.min(PAGES, mostConnections()) / PAGES_OF_AN_ORDER))
  const paths = orders.flatMap((orderId) => Array(PAGES_OF_AN_ORDER).fill(`/pay/${orderId}/events`))
  const sockets: Socket[] = []
  const deadline = performance.now() + seconds * 1_000
  await spread(paths.length, OPENING_SECONDS, () => {
    const socket = open(url, answers)
    socket.write(wire(url, 'GET', paths[sockets.length] as string))
    sockets.push(socket)
  })
  await sleep(deadline - performance.now() - CLOSING_SECONDS * 1_000)
  // 5,000 at once, as when this process ends, would hold the service up for 0.5 s.
  await spread(sockets.length, CLOSING_SECONDS, () => sockets.pop()?.destroy())
  return `${paths.length.toLocaleString('en')} open pages of ${orders.length} orders: ${tally(answers)}`
}
