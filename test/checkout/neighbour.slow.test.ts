import { describe, expect, it, vi } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'

const CROWD = 100

/** Each image that was drawn takes 1 to 4 ms in which nothing else is served. */
const drawn: string[] = []
vi.mock('../../src/checkout/qr-image.ts', async (importOriginal) => {
  const { qrPng, qrSvg } = await importOriginal<typeof import('../../src/checkout/qr-image.ts')>()
  return {
    qrPng(text: string) {
      drawn.push('png')
      return qrPng(text)
    },
    qrSvg(text: string) {
      drawn.push('svg')
      return qrSvg(text)
    },
  }
})

const get = ({ app }: TestService, url: string) => app.inject({ method: 'GET', url })

async function newOrder(service: TestService) {
  const { mid, key } = await newMerchant(service.db)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  return { mid, key, orderId, page: `/pay/${orderId}` }
}

describe('payments beside the pay pages of another merchant', () => {
  it(`are not held up by the drawing of QRs: ${CROWD} requests for one draw it once, and none when it is paid`, async () => {
    const service = await startService()
    const order = await newOrder(service)
    const crowd = (file: string) =>
      Promise.all(Array.from({ length: CROWD }, () => get(service, `${order.page}/${file}`)))
    for (const file of ['qr.png', 'qr.svg']) {
      const shown = (await crowd(file)).filter(({ statusCode }) => statusCode === 200)
      expect(shown.length).toBeGreaterThan(1)
      expect(new Set(shown.map(({ rawPayload }) => rawPayload.toString('hex'))).size).toBe(1)
    }
    expect(drawn).toEqual(['png', 'svg'])
    await notify(service, notification(order.orderId))
    for (const file of ['qr.png', 'qr.svg']) expect((await get(service, `${order.page}/${file}`)).statusCode).toBe(410)
  }, 60_000)

  it('are still taken when pages, QRs, events and documents are refused already, in words for people', async () => {
    const tooLateForPages = { pagesMs: Number.NEGATIVE_INFINITY, operationsMs: Number.POSITIVE_INFINITY }
    const service = await startService({ limits: { lateness: tooLateForPages } })
    const { page, key, mid } = await newOrder(service)
    const [refused, ...others] = await Promise.all(
      [page, `${page}/qr.png`, `${page}/qr.svg`, `${page}/events`].map((url) => get(service, url)),
    )
    expect([refused, ...others].map((answer) => answer?.statusCode)).toEqual([503, 503, 503, 503])
    for (const file of ['/docs/openapi-explorer.min.js', '/docs/merchant', '/openapi.json']) {
      expect((await get(service, file)).statusCode).toBe(503)
    }
    expect((await post(service.app, CREATE, intentFields(mid), key)).status).toBe(200)
    expect(refused?.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'retry-after': '1',
      refresh: '5',
    })
    expect(refused?.payload).toContain('The service is briefly unavailable; try again in a moment')
  })
})
