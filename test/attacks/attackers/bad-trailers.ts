import type { Socket } from 'node:net'
import type { Attacker } from '../target.ts'
import { newAnswers, open, pace, tally, wire } from './sockets.ts'

const CONNECTIONS = 16
const PER_SECOND = 600
/** Node.js refuses these fields in a trailer, after it has handed the request on. */
const TRAILER = '0\r\nContent-Length: 5\r\n\r\n'

/**
 * Chunked requests to an address that is not there: each is answered before its body has come, and then ends in a trailer
 * that is not HTTP. No credentials.
 */
export const badTrailers: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const head = wire(url, 'GET', '/nowhere', { 'transfer-encoding': 'chunked' })
  const free: Socket[] = []
  let openCount = 0
  const add = () => {
    openCount++
    const socket = open(url, answers, () => {
      socket.write(TRAILER)
      free.push(socket)
    })
    socket.once('close', () => {
      openCount--
    })
    free.push(socket)
  }
  await pace(PER_SECOND, seconds, () => {
    if (free.length === 0 && openCount < CONNECTIONS) add()
    const socket = free.shift()
    if (socket && !socket.destroyed) socket.write(head)
  })
  return `${PER_SECOND}/s chunked GET of no address with a broken trailer: ${tally(answers)}`
}
