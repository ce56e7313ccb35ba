import { randomBytes } from 'node:crypto'
import { CREATE, FORM } from '../../support/requests.ts'
import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const PER_SECOND = 300
const CONNECTIONS = 50

/** Public keys that nobody has, each another one: each has to be looked up. */
export const randomKeys: Attacker = async ({ url, seconds }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  await pace(PER_SECOND, seconds, () => {
    const key = Buffer.from(`pk_${randomBytes(12).toString('hex')}:sk_0`).toString('base64')
    const headers = { authorization: `Basic ${key}`, 'content-type': FORM }
    connections.next()?.write(wire(url, 'POST', CREATE, headers, 'mid=M1'))
  })
  connections.close()
  return `${PER_SECOND}/s creates with a random public key each: ${tally(answers)}`
}
