import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { newAnswers, open, pace, tally, wire } from './sockets.ts'

const PAGES_OF_AN_ORDER = 20
const OPENING_SECONDS = 8

/** Every place for an open page that the orders allow, from one address. */
export const livePages: Attacker = async ({ url, seconds, orderIds }) => {
  const answers = newAnswers()
  const paths = orderIds.flatMap((orderId) => Array(PAGES_OF_AN_ORDER).fill(`/pay/${orderId}/events`))
  const sockets: Socket[] = []
  await pace(paths.length / OPENING_SECONDS, OPENING_SECONDS, () => {
    const path = paths[sockets.length]
    if (path === undefined) return
    const socket = open(url, answers)
    socket.write(wire(url, 'GET', path))
    sockets.push(socket)
  })
  await sleep((seconds - OPENING_SECONDS) * 1_000)
  return `${sockets.length.toLocaleString('en')} open pages of ${orderIds.length} orders: ${tally(answers)}`
}
