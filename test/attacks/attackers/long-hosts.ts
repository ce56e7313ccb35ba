import { CREATE, FORM } from '../../support/requests.ts'
import { basic } from '../../support/tenants.ts'
import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const PER_SECOND = 20
const CONNECTIONS = 20
/** As many different characters as a body of 16 KiB holds: each has to be looked up in the tables of Unicode. */
const CHARACTERS = 5_300
const FIRST_CJK = 0x4e00

/** Creates of a merchant with a good key, whose redirect_url has a host that is slow to judge. */
export const longHosts: Attacker = async ({ url, seconds, tenant: { merchant } }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  const host = String.fromCharCode(...Array.from({ length: CHARACTERS }, (_, i) => FIRST_CJK + i))
  const headers = { authorization: basic(merchant.key), 'content-type': FORM }
  const body = `mid=${merchant.mid}&redirect_url=https://${host}`
  const request = wire(url, 'POST', CREATE, headers, body)
  await pace(PER_SECOND, seconds, () => void connections.next()?.write(request))
  connections.close()
  return `${PER_SECOND}/s creates with a redirect_url of ${CHARACTERS.toLocaleString('en')} CJK characters: ${tally(answers)}`
}
