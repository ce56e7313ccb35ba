import { setTimeout as sleep } from 'node:timers/promises'
import { CANCEL, createRequest, formRequest, statusRequest } from '../../support/requests.ts'
import type { Attacker } from '../target.ts'
import { newAnswers, open, stillOpen, tally, wire } from './sockets.ts'

const CONNECTIONS = 1_500

/** A merchant who cancels, asks and creates on many connections, each time as soon as the answer before has come. */
export const floodingKey: Attacker = async ({ url, seconds, tenant: { merchant }, orderIds }) => {
  const { mid, key } = merchant
  const requests = orderIds.flatMap((orderId) => [
    formRequest(CANCEL, key, { mid, order_id: orderId }),
    statusRequest(merchant, orderId),
    createRequest(merchant),
  ])
  const texts = requests.map(({ path, headers, body }) => wire(url, 'POST', path, headers, body))
  const answers = newAnswers()
  let sent = 0
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const send = () => void socket.write(texts[sent++ % texts.length] as string)
    const socket = open(url, answers, send)
    send()
    return socket
  })
  await sleep(seconds * 1_000)
  const survivors = stillOpen(sockets)
  for (const socket of sockets) socket.destroy()
  return `${sent.toLocaleString('en')} cancellations, statuses and creates of one good key on ${CONNECTIONS.toLocaleString('en')} connections, ${survivors.toLocaleString('en')} still open at the end: ${tally(answers)}`
}
