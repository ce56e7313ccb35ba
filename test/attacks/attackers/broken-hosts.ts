import type { Attacker } from '../target.ts'
import { newAnswers, open, pace, tally } from './sockets.ts'

const PER_SECOND = 200
/** What RFC 9112, section 3.2, wants refused with 400. */
const HOSTS = ['a\r\nHost: b', '', 'x@y', 'x/y', 'x, y']

/** A connection for each request, since a refusal ends it. No credentials. */
export const brokenHosts: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  let turn = 0
  await pace(PER_SECOND, seconds, () => {
    const socket = open(url, answers, () => socket.destroy())
    socket.write(`GET /livez HTTP/1.1\r\nHost: ${HOSTS[turn++ % HOSTS.length]}\r\n\r\n`)
  })
  return `${PER_SECOND}/s with a broken Host: ${tally(answers)}`
}
