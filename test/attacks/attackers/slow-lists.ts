import { setTimeout as sleep } from 'node:timers/promises'
import { longList } from '../../support/settlements.ts'
import type { Attacker } from '../target.ts'
import { newAnswers, open, stillOpen, tally, wire } from './sockets.ts'

const LISTS = 4
/** The readers take a piece at a time: fast enough never to be called stalled. */
const PIECE_MS = 500

/** One partner reads several long lists at once, each as slowly as it can. */
export const slowLists: Attacker = async ({ url, seconds, tenant: { merchant, partner } }) => {
  const answers = newAnswers()
  const { path, headers, body } = longList(partner, merchant.mid)
  const request = wire(url, 'POST', path, headers, body)
  const sockets = Array.from({ length: LISTS }, () => {
    const socket = open(url, answers)
    socket.write(request)
    socket.on('data', () => {
      socket.pause()
      setTimeout(() => socket.resume(), PIECE_MS)
    })
    return socket
  })
  await sleep(seconds * 1_000)
  return `${LISTS} long lists of one partner, 64 KiB each ${PIECE_MS} ms: ${tally(answers)}, ${stillOpen(sockets)} connections left`
}
