// node load-generator.mjs OPTIONS: drives one address with autocannon and prints what it saw, both as JSON. Of the requests in the
// file `once` each is sent once.
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'

const { once, ...options } = JSON.parse(process.argv[2])
if (once !== undefined) {
  const requests = JSON.parse(readFileSync(once, 'utf8')).values()
  const next = (address) => {
    const { value, done } = requests.next()
    if (done) throw new Error(`${once} has fewer requests than were answered`)
    return { ...address, ...value }
  }
  options.requests = [{ setupRequest: next }]
}

const times = []
let lastAnswerAt = 0
const startedAt = performance.now()
const load = autocannon(options)
// autocannon's own percentiles are whole milliseconds, too coarse for an answer that takes less than one.
load.on('response', (_client, _status, _bytes, milliseconds) => {
  times.push(milliseconds)
  lastAnswerAt = performance.now()
})
const { errors, non2xx, statusCodeStats } = await load

const sorted = Float64Array.from(times).sort()
const quantile = (share) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0
const result = {
  requests: times.length,
  requestsPerSecond: (times.length / (lastAnswerAt - startedAt)) * 1000,
  p50Ms: quantile(0.5),
  p99Ms: quantile(0.99),
  errors,
  non2xx,
  statusCodeStats,
}
console.log(JSON.stringify(result))
