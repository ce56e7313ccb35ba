import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { compress } from '../../src/platform/http/compression.ts'
import { createOrder } from '../support/orders.ts'
import {
  basic,
  LIST,
  newMerchant,
  newPartner,
  startService,
  type TestService,
  UNAVAILABLE,
} from '../support/service.ts'
import { addSettlements } from '../support/settlements.ts'

const RESPONSE_MS = 500
const INTERNAL = 'Query read timeout of 10.0.0.7'

let service: TestService
let page: string
let url: string
let partner: Awaited<ReturnType<typeof newPartner>>
let mid: string

beforeAll(async () => {
  service = await startService({ limits: { response: { ms: RESPONSE_MS } } })
  const merchant = await newMerchant(service.db)
  mid = merchant.mid
  partner = await newPartner(service.db, mid)
  await addSettlements(service.db, mid)
  page = `/pay/${await createOrder(service, merchant)}`
  await service.app.listen({ host: '127.0.0.1', port: 0 })
  url = `http://127.0.0.1:${(service.app.server.address() as AddressInfo).port}`
})

const list = (accept: string) =>
  fetch(url + LIST, {
    method: 'POST',
    headers: { authorization: basic(partner.key), accept },
    body: new URLSearchParams({ pid: partner.pid, mid, s_date: '01-02-2026', e_date: '31-12-2026' }),
  })

describe('a response at its time limit', () => {
  it.each(['br', 'gzip'] as const)(
    'is decoded by the browser if the compression (%s) ends after the limit',
    async (coding) => {
      const { [coding]: real } = compress
      const slow = vi.spyOn(compress, coding).mockImplementation(async (body) => {
        await sleep(2 * RESPONSE_MS)
        return real(body)
      })
      const response = await fetch(url + page, { headers: { 'accept-encoding': coding } })
      expect([response.status, response.headers.get('content-encoding')]).toEqual([200, coding])
      expect(await response.text()).toContain('data-state="open"')
      slow.mockRestore()
    },
  )

  it('is one whole 503 if the handler fails later, whose error is only logged', async () => {
    const { pages } = service.pools
    const late = vi.spyOn(pages, 'query').mockImplementation(async () => {
      await sleep(2 * RESPONSE_MS)
      throw Object.assign(new Error(INTERNAL), { detail: 'customer@example' })
    })
    for (const coding of ['br', 'gzip', 'identity']) {
      const response = await fetch(url + page, { headers: { 'accept-encoding': coding } })
      const body = await response.text()
      expect([response.status, response.headers.get('content-encoding')]).toEqual([503, null])
      expect(body).toContain('The service is briefly unavailable')
      expect(body.trimEnd()).toMatch(/<\/html>$/)
      expect(body).not.toContain(INTERNAL)
    }
    await sleep(2 * RESPONSE_MS)
    late.mockRestore()
    const logged = service.log.map((line) => JSON.parse(line)).filter(({ msg }) => /after its response/.test(msg))
    expect(logged).toHaveLength(3)
    expect(logged[0].error.message).toBe(INTERNAL)
    expect(service.log.join('')).not.toContain('customer@example')
  })
})

describe('a list that fails before its first byte', () => {
  it.each(['text/csv', 'application/json'])(
    'returns the error envelope as JSON to a client that accepts %s',
    async (accept) => {
      const { query } = pg.Client.prototype
      const failing = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
        this: pg.Client,
        ...args: unknown[]
      ) {
        const [statement] = args as [string | { text: string }]
        const text = typeof statement === 'string' ? statement : statement.text
        const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
        return text?.includes('begin read only') ? Promise.reject(error) : query.apply(this, args as never)
      } as never)
      const response = await list(accept)
      failing.mockRestore()
      expect([response.status, response.headers.get('content-type'), response.headers.get('x-error-code')]).toEqual([
        503,
        'application/json; charset=utf-8',
        'unavailable',
      ])
      expect(await response.json()).toEqual(UNAVAILABLE)
    },
  )

  it('is 503 at the time limit, and its later error does not terminate the process', async () => {
    const { query } = pg.Client.prototype
    const silent = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(async function (
      this: pg.Client,
      ...args: unknown[]
    ) {
      const [statement] = args as [string | { text: string }]
      const text = typeof statement === 'string' ? statement : statement.text
      if (!text?.includes('begin read only')) return query.apply(this, args as never)
      await sleep(2 * RESPONSE_MS)
      throw new Error('Connection terminated')
    } as never)
    const uncaught = vi.fn()
    process.once('uncaughtException', uncaught)
    const response = await list('text/csv')
    expect([response.status, response.headers.get('content-type')]).toEqual([503, 'application/json; charset=utf-8'])
    await sleep(2 * RESPONSE_MS)
    silent.mockRestore()
    process.off('uncaughtException', uncaught)
    expect(uncaught).not.toHaveBeenCalled()
  })

  it('returns the whole list in the requested type once its first bytes can be read', async () => {
    const csv = await list('text/csv')
    expect([csv.status, csv.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8; header=present'])
    expect((await csv.text()).trimEnd().split('\r\n')).toHaveLength(3_001)
    const { data } = (await (await list('*/*')).json()) as { data: unknown[] }
    expect(data).toHaveLength(3_000)
  })
})
