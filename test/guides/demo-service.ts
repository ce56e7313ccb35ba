import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ensureDemo } from '../../src/dev/demo.ts'
import { stopAtEnd } from '../support/at-end.ts'
import { type Key, startService, type TestService } from '../support/service.ts'

/** A fault of the network; with `unavailable` and `too many` the request does not reach the service. */
export type Fault = 'lost' | 'half' | 'unavailable' | 'too many' | 'none'

export type Step = 'SUCCESS' | 'FAIL' | 'leaves'

/** Time until an unpaid order is final: 15 minutes to expiry, and 10 more for the bank's report. */
const UNTIL_FINAL_SECONDS = 25 * 60

export type DemoService = {
  service: TestService
  /** URL of a proxy before the service, which injects the faults. */
  url: string
  merchantKey: Key
  partnerKey: Key
  /** Number of requests of each operation, with and without a response. */
  calls: Map<string, number>
}

/**
 * Starts a service with the demo data of `npm start`. The requests of an operation meet its `faults` in order, then none.
 * `customer` lists the customer's steps, one after each PENDING response: an attempt to pay, or leaving until the
 * order is final.
 */
export async function startDemoService(
  options: { faults?: Record<string, Fault[]>; customer?: Step[]; signedNow?: boolean } = {},
): Promise<DemoService> {
  const calls = new Map<string, number>()
  const steps = [...(options.customer ?? [])]
  let target: string
  const front = createServer(async (request, response) => {
    const operation = request.url?.split('/').at(-1) ?? ''
    const faults = options.faults?.[operation] ?? []
    const fault = faults[calls.get(operation) ?? 0] ?? 'none'
    calls.set(operation, (calls.get(operation) ?? 0) + 1)
    const body = await text(request)
    if (fault === 'unavailable') return reject(response, 503)
    if (fault === 'too many') return reject(response, 429)
    const upstream = await fetch(`${target}${request.url}`, {
      method: 'POST',
      headers: withoutHopByHop(request.headers),
      body,
    })
    const bytes = Buffer.from(await upstream.arrayBuffer())
    if (operation === 'checkPaymentStatus' && bytes.includes('PENDING')) await perform(steps.shift())
    if (fault === 'lost') return response.destroy()
    const code = upstream.headers.get('x-error-code')
    response.writeHead(upstream.status, {
      'content-type': 'application/json',
      'content-length': bytes.length,
      ...(code !== null && { 'x-error-code': code }),
    })
    if (fault === 'none') return response.end(bytes)
    response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy())
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  stopAtEnd(() => {
    front.closeAllConnections()
    front.close()
  })
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
  const service = await startService({ sandbox: true, publicUrl: url })
  // Clients in other processes sign with the real clock.
  if (options.signedNow) service.clock.set(new Date().toISOString())
  target = await service.app.listen({ host: '127.0.0.1', port: 0 })

  // Each service has its own database, so its file of keys is temporary.
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
  stopAtEnd(() => rmSync(directory, { recursive: true, force: true }))
  const { merchantKey, partnerKey } = await ensureDemo({ databaseUrl: service.databaseUrl, directory, now: new Date() })
  return { service, url, merchantKey, partnerKey, calls }

  /** Performs the step for every unpaid order. */
  async function perform(step: Step | undefined) {
    if (step === undefined) return
    if (step === 'leaves') return service.clock.advance(UNTIL_FINAL_SECONDS)
    const { rows } = await service.db.query("select order_id from payment_intents where status <> 'SUCCESS'")
    for (const { order_id } of rows) await simulate(service, order_id, step)
  }
}

export async function simulate({ app }: TestService, orderId: string, status: 'SUCCESS' | 'FAIL'): Promise<void> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { statusCode } = await app.inject({
    method: 'POST',
    url: `/pay/${orderId}/simulate`,
    headers,
    // The reason is ignored for a success.
    payload: `status=${status}&reason=wrong_pin`,
  })
  if (statusCode !== 303) throw new Error(`the simulation returned ${statusCode}`)
}

/** Responds as load balancers and an overloaded service do. */
function reject(response: ServerResponse, statusCode: 429 | 503) {
  const body = JSON.stringify({ status: false, statusCode, msg: 'try again' })
  response.writeHead(statusCode, { 'content-type': 'application/json', 'retry-after': '1' }).end(body)
}

function withoutHopByHop(headers: IncomingHttpHeaders): Record<string, string> {
  const forwarded = ['accept', 'authorization', 'content-type', 'idempotency-key', 'x-signature']
  const entries = forwarded.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]]))
  return Object.fromEntries(entries)
}
