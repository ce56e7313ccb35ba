import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const CONNECTIONS = 300
const PER_SECOND = 2_000

/** The QRs of more orders than the service remembers, in turn: each has to be drawn. */
export const manyQrs: Attacker = async ({ url, seconds, orderIds }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  const requests = orderIds.flatMap((orderId) =>
    ['png', 'svg'].map((type) => wire(url, 'GET', `/pay/${orderId}/qr.${type}`)),
  )
  let asked = 0
  await pace(PER_SECOND, seconds, () => {
    connections.next()?.write(requests[asked++ % requests.length] as string)
  })
  connections.close()
  return `${PER_SECOND.toLocaleString('en')}/s of the QRs of ${orderIds.length} orders in turn: ${tally(answers)}`
}
