import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const PER_SECOND = 300
const CONNECTIONS = 50
/** As many as the headers' 16 KiB hold. */
const SLASHES = 15_800

/** Addresses of thousands of empty segments, which are nowhere. No credentials. */
export const longPaths: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  const request = wire(url, 'GET', '/'.repeat(SLASHES))
  await pace(PER_SECOND, seconds, () => void connections.next()?.write(request))
  connections.close()
  return `${PER_SECOND}/s GET of ${SLASHES.toLocaleString('en')} slashes: ${tally(answers)}`
}
