// A bare Fastify that reads the form and returns a constant: the status, headers and body of RESPONSE. It checks and
// stores nothing, and with LOG=on writes one log line a request.
import { parse } from 'node:querystring'
import fastify from 'fastify'
import { pino } from 'pino'

const response = JSON.parse(process.env.RESPONSE)
/** Node.js writes these headers itself. */
const WRITTEN = new Set(['content-length', 'Date', 'Connection', 'Keep-Alive'])
const headers = Object.fromEntries(Object.entries(response.headers).filter(([name]) => !WRITTEN.has(name)))

const app = fastify({ keepAliveTimeout: 75_000 })
app.removeContentTypeParser('application/json')
app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) =>
  done(null, JSON.parse(body)),
)
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
  done(null, parse(body))
})
if (process.env.LOG === 'on') {
  const log = pino({ level: 'info' })
  app.addHook('onResponse', async ({ id, method, url }, { statusCode, elapsedTime }) => {
    log.info({ id, method, url, status: statusCode, durationMs: elapsedTime }, 'request')
  })
}
const respond = (_request, reply) => {
  reply.code(response.status).headers(headers).send(response.body)
}
app.get('/ready', async () => ({}))
for (const path of [
  '/v1/payments/createPaymentIntent',
  '/v1/payments/checkPaymentStatus',
  '/v1/partner/fetchSettlementList',
  '/acquirer/paymentNotification',
]) {
  app.post(path, respond)
}
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
