// A bare Fastify that reads the form and returns a constant. It checks and stores nothing, and writes a log only with
// LOG=on.
import { parse } from 'node:querystring'
import fastify from 'fastify'

const response = process.env.ANSWER ?? '{}'

const app = fastify({ logger: process.env.LOG === 'on' })
app.removeContentTypeParser('application/json')
app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) =>
  done(null, JSON.parse(body)),
)
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
  done(null, parse(body))
})
const respond = (_request, reply) => {
  reply.type('application/json; charset=utf-8').send(response)
}
app.get('/livez', respond)
for (const path of [
  '/v1/payments/createPaymentIntent',
  '/v1/payments/checkPaymentStatus',
  '/v1/partner/fetchSettlementList',
  '/acquirer/paymentNotification',
]) {
  app.post(path, respond)
}
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
