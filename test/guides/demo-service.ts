import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ensureDemo } from '../../src/dev/demo.ts'
import { stopAtEnd } from '../support/at-end.ts'
import { type Key, startService, type TestService } from '../support/service.ts'

/** What happens to an answer on its way; `unavailable` and `too many` do not even reach the service. */
export type Fault = 'lost' | 'half' | 'unavailable' | 'too many' | 'none'

export type Step = 'SUCCESS' | 'FAIL' | 'leaves'

/** An intent is open for 15 minutes, and the bank has 10 more to tell of it. */
const UNTIL_OVER_SECONDS = 25 * 60

export type DemoService = {
  service: TestService
  /** Where the service is reached, over a network that does what it is told. */
  url: string
  merchantKey: Key
  partnerKey: Key
  /** How often each operation was called, answered or not. */
  calls: Map<string, number>
}

/**
 * A service with all that the demo of `npm start` has. Calls of an operation meet its `faults` in turn,
 * then none. `customer` is what the customer does, a step after each answer that the payment is pending: tries to pay, or
 * leaves until it is over.
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
    if (fault === 'unavailable') return refuse(response, 503)
    if (fault === 'too many') return refuse(response, 429)
    const answer = await fetch(`${target}${request.url}`, {
      method: 'POST',
      headers: withoutHopByHop(request.headers),
      body,
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (operation === 'checkPaymentStatus' && bytes.includes('PENDING')) await take(steps.shift())
    if (fault === 'lost') return response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json', 'content-length': bytes.length })
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
  // Clients of their own sign by the real clock.
  if (options.signedNow) service.clock.set(new Date().toISOString())
  target = await service.app.listen({ host: '127.0.0.1', port: 0 })

  // The file of the keys is of no use here: each service has a database of its own.
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
  stopAtEnd(() => rmSync(directory, { recursive: true, force: true }))
  const { merchantKey, partnerKey } = await ensureDemo({ databaseUrl: service.databaseUrl, directory, now: new Date() })
  return { service, url, merchantKey, partnerKey, calls }

  /** Presses the control of every order's pay page. */
  async function take(step: Step | undefined) {
    if (step === undefined) return
    if (step === 'leaves') return service.clock.advance(UNTIL_OVER_SECONDS)
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
    // A success ignores the reason.
    payload: `status=${status}&reason=wrong_pin`,
  })
  if (statusCode !== 303) throw new Error(`the control of the pay page answers ${statusCode}`)
}

/** What balancers and the service itself say when it is too much for the moment. */
function refuse(response: ServerResponse, statusCode: 429 | 503) {
  const body = JSON.stringify({ status: false, statusCode, msg: 'try again' })
  response.writeHead(statusCode, { 'content-type': 'application/json', 'retry-after': '1' }).end(body)
}

function withoutHopByHop(headers: IncomingHttpHeaders): Record<string, string> {
  const kept = ['accept', 'authorization', 'content-type', 'idempotency-key', 'x-signature']
  const entries = kept.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]]))
  return Object.fromEntries(entries)
}
