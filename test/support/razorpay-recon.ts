import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stopAtEnd } from './at-end.ts'

/** A row of Razorpay's combined reconciliation. */
export type ReconRow = Record<string, unknown>

export const RAZORPAY_RECON = { clientId: 'rzp_test_recon', clientSecret: 'secret-of-recon' }

/**
 * A server with Razorpay's combined reconciliation. `rows` has the rows of each day, and `pageOf` may replace a page.
 * `requested` lists the query of each call.
 */
export async function startRecon() {
  const requested: string[] = []
  const recon = {
    requested,
    apiUrl: '',
    rows: new Map<string, ReconRow[]>(),
    pageOf: undefined as ((call: number) => { status?: number; body: unknown }) | undefined,
  }
  const { clientId, clientSecret } = RAZORPAY_RECON
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://localhost')
    if (request.method !== 'GET' || pathname !== '/v1/settlements/recon/combined') return response.destroy()
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const error = { code: 'BAD_REQUEST_ERROR', description: 'The api key provided is invalid' }
    if (request.headers.authorization !== authorization) return send(401, { error })
    const of = (name: string) => query.get(name) ?? ''
    const call = requested.push(`${of('year')}-${of('month')}-${of('day')} ${of('count')} ${of('skip')}`)
    const { status = 200, body } = recon.pageOf?.(call) ?? { body: undefined }
    if (body !== undefined) return send(status, body)
    const rows = recon.rows.get(`${of('year')}-${of('month')}-${of('day')}`) ?? []
    const items = rows.slice(Number(of('skip')), Number(of('skip')) + Number(of('count')))
    return send(200, { entity: 'collection', count: items.length, items })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stopAtEnd(() => new Promise((resolve) => server.close(resolve).closeAllConnections()))
  recon.apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return recon
}

export type Recon = Awaited<ReturnType<typeof startRecon>>

let lastRow = 0
const PREFIXES: Readonly<Record<string, string>> = {
  payment: 'pay',
  refund: 'rfnd',
  transfer: 'trf',
  adjustment: 'adj',
}

/** A row of ₹200 that was settled on 2026-01-15, with the fields of Razorpay's samples. */
export function reconRow(type: string, changes: ReconRow = {}): ReconRow {
  const isPayment = type === 'payment'
  const id = `${PREFIXES[type] ?? 'xyz'}_DEXrnipq${String(++lastRow).padStart(6, '0')}`
  const charges = isPayment
    ? { debit: 0, credit: 195_28, fee: 4_72, tax: 72 }
    : { debit: 200_00, credit: 0, fee: 0, tax: 0 }
  return {
    ...{ entity_id: id, type, amount: 200_00, currency: 'INR', ...charges, on_hold: false, settled: true },
    ...{ created_at: 1_768_370_400, settled_at: 1_768_449_600, settlement_id: 'setl_DGlQ1Rj8os78Ec', posted_at: null },
    ...{ credit_type: 'default', description: 'Tea for Asha Rao', notes: { name: 'Asha Rao' }, payment_id: null },
    ...{ settlement_utr: '1568176960vxp0rj', order_id: 'order_DEXrnRiR3SNDHA', order_receipt: 'somebody_elses_1' },
    ...{ method: 'upi', card_network: null, card_issuer: null, card_type: null, dispute_id: null, ...changes },
  }
}
