import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { newAnswers, open, spread, stillOpen } from './sockets.ts'

const CONNECTIONS = 4_200
const OPENING_SECONDS = 3

/** More connections than the service may have files, on which nothing is ever sent. No credentials. */
export const silentConnections: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const sockets: Socket[] = []
  const deadline = performance.now() + seconds * 1_000
  await spread(CONNECTIONS, OPENING_SECONDS, () => void sockets.push(open(url, answers)))
  await sleep(deadline - performance.now())
  return `${sockets.length.toLocaleString('en')} silent connections: ${stillOpen(sockets).toLocaleString('en')} left`
}
