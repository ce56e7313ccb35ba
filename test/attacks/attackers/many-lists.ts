import { FORM } from '../../faults/operations.ts'
import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const CONNECTIONS = 64
const PER_SECOND = 200

/** One partner asks for a long list again and again, each time until another day, so that no two are the same. */
export const manyLists: Attacker = async ({ url, seconds, tenant }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  const headers = { 'content-type': FORM, authorization: tenant.partnerAuthorization }
  let asked = 0
  await pace(PER_SECOND, seconds, () => {
    const fields = { pid: tenant.pid, mid: tenant.mid, s_date: '02-01-2026', e_date: `02-01-${2026 + asked++}` }
    const body = new URLSearchParams(fields).toString()
    connections.next()?.write(wire(url, 'POST', '/v1/partner/fetchSettlementList', headers, body))
  })
  connections.close()
  return `${PER_SECOND}/s of one partner's lists, each until another day: ${tally(answers)}`
}
