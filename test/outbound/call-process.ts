import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'

// Calls the URLs of its arguments, whose names all resolve to this machine, and prints the results. A separate process,
// because Node.js reads its trusted certificates at the start.
const networks = ['127.0.0.1/32']
const { request: call } = createOutboundClient({
  allowedNetworks: { webhook: networks, 'return call': networks },
  limits: LIMITS.outbound,
  now: () => new Date(),
  resolve: async () => ['127.0.0.1'],
})
const outcomes = process.argv.slice(2).map((url) => call({ kind: 'webhook', url }))
console.log(JSON.stringify(await Promise.all(outcomes)))
