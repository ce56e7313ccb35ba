import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attacker } from '../target.ts'
import { newAnswers, open, tally, wire } from './sockets.ts'

const REQUESTS = 100_000
const REQUESTS_A_WRITE = 500
/** Where the connection is closed, the next one is opened no sooner. */
const RECONNECT_MS = 50

/** One connection at a time, on which everything is sent at once and no answer is waited for. No credentials. */
export const pipelining: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const deadline = performance.now() + seconds * 1_000
  let sent = 0
  let connections = 0
  while (sent < REQUESTS && performance.now() < deadline) {
    connections++
    const socket = open(url, answers)
    // Not `once`, which fails when the service resets the connection.
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    while (sent < REQUESTS && !socket.destroyed && performance.now() < deadline) {
      sent += REQUESTS_A_WRITE
      if (!socket.write(requests(url))) await Promise.race([once(socket, 'drain').catch(() => undefined), closed])
    }
    if (sent >= REQUESTS) await Promise.race([closed, sleep(deadline - performance.now())])
    socket.destroy()
    await sleep(RECONNECT_MS)
  }
  return `${sent.toLocaleString('en')} pipelined GET /pay/<random> on ${connections} connection(s) in turn: ${tally(answers)}`
}

function requests(url: string): string {
  let text = ''
  for (let i = 0; i < REQUESTS_A_WRITE; i++) text += wire(url, 'GET', `/pay/${randomBytes(16).toString('hex')}`)
  return text
}
