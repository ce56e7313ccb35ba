import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { CREATE, FORM } from '../../support/requests.ts'
import { trickle } from '../../support/slow-sender.ts'
import { basic } from '../../support/tenants.ts'
import type { Attacker } from '../target.ts'
import { newAnswers, open, stillOpen, tally, wire } from './sockets.ts'

const SENDERS = 500

/** Half of them send headers, half a body, a few bytes at a time. */
export const slowSenders: Attacker = async ({ url, seconds, tenant: { merchant } }) => {
  const answers = newAnswers()
  const headers = { authorization: basic(merchant.key), 'content-type': FORM, 'content-length': '4000' }
  const request = wire(url, 'POST', CREATE, headers)
  const sockets = Array.from({ length: SENDERS }, (_, i): Socket => {
    const socket = open(url, answers)
    if (i % 2 === 0) trickle(socket, request.slice(0, -2), 'x-slow: 1\r\n')
    else trickle(socket, request, 'x')
    return socket
  })
  await sleep(seconds * 1_000)
  return `${SENDERS} slow senders of headers and bodies: ${tally(answers)}, ${stillOpen(sockets)} connections left`
}
