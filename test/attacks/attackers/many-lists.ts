import { listRequest } from '../../support/requests.ts'
import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const CONNECTIONS = 64
const PER_SECOND = 200

/** One partner asks for a long list again and again, each time until another day, so that no two are the same. */
export const manyLists: Attacker = async ({ url, seconds, tenant: { merchant, partner } }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  let asked = 0
  await pace(PER_SECOND, seconds, () => {
    const { path, headers, body } = listRequest(partner, merchant.mid, '01-02-2026', `31-12-${2026 + asked++}`)
    connections.next()?.write(wire(url, 'POST', path, headers, body))
  })
  connections.close()
  return `${PER_SECOND}/s of one partner's lists, each until another day: ${tally(answers)}`
}
