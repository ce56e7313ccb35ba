// node load-generator.mjs OPTIONS: sends requests to one address with autocannon. Options and results are JSON. Each
// request of the file `once` is sent once. The file `creates` has one create per merchant: each connection sends whole
// payments of the merchants in turn, signed with `secret`, and the results are payments. With `returnsResponses`, the
// results contain the responses.
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'

const { once, creates, secret, returnsResponses, ...options } = JSON.parse(process.argv[2])
if (once !== undefined) {
  const requests = JSON.parse(readFileSync(once, 'utf8')).values()
  const next = (address) => {
    const { value, done } = requests.next()
    if (done) throw new Error(`${once} ran out of requests. Prepare more for this duration.`)
    return { ...address, ...value }
  }
  options.requests = [{ setupRequest: next }]
}

if (creates !== undefined) options.requests = paymentRequests(JSON.parse(readFileSync(creates, 'utf8')))
const unit = creates === undefined ? 1 : options.requests.length

const responses = []
if (returnsResponses) {
  options.amount = options.requests.length
  options.requests = options.requests.map((request) => ({
    ...request,
    onResponse(status, body, context, headers) {
      request.onResponse?.(status, body, context)
      responses.push({ status, headers, body })
    },
  }))
}

const times = []
let lastResponseAt = 0
const startedAt = performance.now()
const load = autocannon(options)
// autocannon's own percentiles are whole milliseconds, too coarse for responses below 1 ms.
load.on('response', (_client, _status, _bytes, milliseconds) => {
  times.push(milliseconds)
  lastResponseAt = performance.now()
})
const { errors, non2xx, statusCodeStats } = await load

const sorted = Float64Array.from(times).sort()
const quantile = (share) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0
const result = {
  requests: times.length / unit,
  requestsPerSecond: (times.length / unit / (lastResponseAt - startedAt)) * 1000,
  p50Ms: quantile(0.5),
  p99Ms: quantile(0.99),
  errors,
  non2xx,
  statusCodeStats,
  ...(returnsResponses && { responses }),
}
console.log(JSON.stringify(result))

/** The requests of one payment: create, two status checks, notification, status check of the paid order. */
function paymentRequests(creates) {
  let next = 0
  const create = {
    setupRequest(address, context) {
      context.create = creates[next++ % creates.length]
      return { ...address, ...context.create }
    },
    onResponse(_status, body, context) {
      context.orderId = JSON.parse(body).data?.orderId
    },
  }
  const status = {
    setupRequest(address, { create, orderId }) {
      const mid = new URLSearchParams(create.body).get('mid')
      return {
        ...address,
        ...create,
        path: '/v1/payments/checkPaymentStatus',
        body: `mid=${mid}&order_id=${orderId}`,
      }
    },
  }
  const notification = {
    setupRequest(address, { orderId }) {
      const now = new Date()
      const paid = {
        orderId,
        status: 'SUCCESS',
        UTR: String(orderId).toUpperCase(),
        amount: 200,
        paidAt: now.toISOString(),
      }
      const body = JSON.stringify(paid)
      const t = Math.floor(now.getTime() / 1000)
      const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
      const headers = { 'content-type': 'application/json', 'x-signature': `t=${t},v1=${v1}` }
      return { ...address, method: 'POST', path: '/acquirer/paymentNotification', headers, body }
    },
  }
  return [create, status, status, notification, status]
}
