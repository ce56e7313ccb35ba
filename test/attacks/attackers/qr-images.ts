import type { Attacker } from '../target.ts'
import { connectionsOf, newAnswers, pace, tally, wire } from './sockets.ts'

const CONNECTIONS = 300
const PER_SECOND = 3_000

/** Many connections that ask for the QR of one order again and again. */
export const qrImages: Attacker = async ({ url, seconds, orderIds: [orderId] }) => {
  const answers = newAnswers()
  const connections = connectionsOf(url, CONNECTIONS, answers)
  const request = wire(url, 'GET', `/pay/${orderId}/qr.png`)
  await pace(PER_SECOND, seconds, () => void connections.next()?.write(request))
  connections.close()
  return `${PER_SECOND.toLocaleString('en')}/s of one /qr.png on ${CONNECTIONS} connections: ${tally(answers)}`
}
