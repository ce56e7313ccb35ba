import type { Attacker } from '../target.ts'
import { newAnswers, open, pace, tally, wire } from './sockets.ts'

const PER_SECOND = 200
/** Above the limit for their number, and above the one for their bytes. */
const MANY = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`x${i}`, '']))
const LARGE = { 'x-large': 'x'.repeat(17 * 1024) }

/** Requests with too many headers and with too long ones, on a connection each. No credentials. */
export const headerFloods: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const requests = [MANY, LARGE].map((headers) => wire(url, 'GET', '/livez', headers))
  let turn = 0
  await pace(PER_SECOND, seconds, () => {
    const socket = open(url, answers, () => socket.destroy())
    socket.write(requests[turn++ % requests.length] as string)
  })
  return `${PER_SECOND}/s with 2,000 headers, or 17 KiB of them: ${tally(answers)}`
}
