// WEBHOOK_SECRET=whsec_… PORT=3003 node src/dev/receive-webhooks.mjs
// Verifies the demo merchant's webhooks in the same way as a merchant's server, and prints them. `npm start` prints the
// command above.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

const { WEBHOOK_SECRET = '', PORT = '3003' } = process.env
if (!/^whsec_[A-Za-z0-9+/]{32,}=*$/.test(WEBHOOK_SECRET))
  fail('Set WEBHOOK_SECRET to the secret in the line that npm start prints')
const webhook = new Webhook(WEBHOOK_SECRET)

const server = createServer(async (request, response) => {
  const body = await text(request)
  try {
    const event = webhook.verify(body, request.headers)
    console.log(`\n${request.headers['webhook-id']} is valid:\n${JSON.stringify(event, null, 2)}`)
    response.writeHead(204).end()
  } catch (error) {
    console.log(`\nRejected: ${error.message}`)
    response.writeHead(401).end(error.message)
  }
})
server.on('error', (error) => fail(`Port ${PORT} cannot be used: ${error.message}`))
server.listen(Number(PORT), '127.0.0.1', () => console.log(`Waiting for webhooks on port ${PORT}. Stop with Ctrl-C.`))

function fail(reason) {
  console.error(reason)
  process.exit(1)
}
