import { createSocket } from 'node:dgram'
import { once } from 'node:events'

const ADDRESS_RECORD = 1
/**
 * An address record: name, type, class, a time to live of 60 s, and 127.0.0.1. The name points to that of the
 * question.
 */
const LOCAL_ADDRESS = Buffer.from([0xc0, 12, 0, ADDRESS_RECORD, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1])

/** How a name server treats queries for one name. `silent for IPv6` responds to IPv4 queries only. */
type Treatment = 'answered' | 'silent for IPv6'

/** A name server on port 53 of `address`, which returns 127.0.0.1 for `names` and never responds to other queries. */
export async function startNameServer(address: string, names: Readonly<Record<string, Treatment>>) {
  const server = createSocket('udp4')
  server.on('message', (query, caller) => {
    const { name, type, end } = readQuestion(query)
    const treatment = names[name]
    const isAddress = type === ADDRESS_RECORD
    if (treatment === undefined || (treatment === 'silent for IPv6' && !isAddress)) return
    const response = Buffer.concat([query.subarray(0, end), ...(isAddress ? [LOCAL_ADDRESS] : [])])
    // Header flags of a response without error; one question, zero or one answer, nothing else.
    response.set([0x81, 0x80, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0], 2)
    server.send(response, caller.port, caller.address)
  })
  server.bind(53, address)
  await once(server, 'listening')
  return { close: () => server.close() }
}

/** A question starts after the 12-byte header; each label of its name starts with its length. */
function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}
