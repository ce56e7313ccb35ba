import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importSettlements } from '../../src/settlements/import.ts'
import { intentFields, type Key, post } from '../support/service.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { has, runIn } from './interpreters.ts'
import { blocks, blockWith, MERCHANT, PARTNER } from './readme.ts'

const SETTLEMENTS = `mid,amount,utr,bank_reference_number,status,initiation_date
DEMO_MERCHANT,1999.00,523504870405,BRN0001,SUCCESS,2026-11-01 00:00:00
`

describe.runIf(has('curl', { mustHave: true }))('the answers that the README shows', () => {
  let demo: DemoService
  const real: unknown[] = []

  beforeAll(async () => {
    demo = await startDemoService()
    const { service, merchantKey, partnerKey } = demo
    await importSettlements(service.db, Readable.from([SETTLEMENTS]), { now: new Date() })
    const create = blockWith(MERCHANT, 'sh', '/v1/payments/createPaymentIntent')
    const check = blockWith(MERCHANT, 'sh', '"$BASE_URL/v1/payments/checkPaymentStatus"')
    const list = blockWith(PARTNER, 'sh', 'curl -u ')
    const created = await paste(create, merchantKey)
    real.push(created, await paste(create, merchantKey), await paste(check, merchantKey))
    await simulate(service, created.data.orderId, 'SUCCESS')
    real.push(await paste(check, merchantKey), await paste(list, partnerKey))
    const fields = intentFields('DEMO_MERCHANT', { order_id: '1002' })
    const ordered = await post(service.app, '/v1/payments/createOrderRequest', fields, merchantKey)
    await simulate(service, ordered.body.data.orderId, 'FAIL')
    const askAgain = check.replace('order_id=1001', 'order_id=1002')
    real.push(ordered.body, await paste(askAgain, merchantKey))
    service.clock.advance(25 * 60)
    real.push(await paste(askAgain, merchantKey))
  })

  async function paste(commands: string, key: Key) {
    const { code, stdout } = await runIn({ 'pasted.sh': commands }, ['sh', 'pasted.sh'], { baseUrl: demo.url, key })
    expect(code).toBe(0)
    return JSON.parse(stdout)
  }

  const shown = blocks.filter(({ language, text }) => language === 'json' && text.includes('"statusCode"'))

  it('are those of every call and outcome that its commands have', () => {
    expect(
      shown
        .map(({ text }) => JSON.parse(text))
        .map(outcome)
        .sort(),
    ).toEqual(real.map(outcome).sort())
  })

  it.each(shown.map(({ text }) => JSON.parse(text)).map((answer) => [outcome(answer), answer]))(
    '"%s" is what the service answers, field by field',
    (name, answer) => {
      expect(shapeOf(answer)).toEqual(shapeOf(real.find((one) => outcome(one) === name)))
    },
  )
})

const outcome = (answer: unknown) => (answer as { msg: string }).msg

/** What must be alike: names, kinds and order of fields, and how a value is written, though not the value. */
function shapeOf(value: unknown, name = ''): unknown {
  if (['status', 'statusCode', 'txnStatus', 'msg'].includes(name)) return value
  if (Array.isArray(value)) return value.slice(0, 1).map((element) => shapeOf(element))
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).map(([key, field]) => [key, shapeOf(field, key)])
  }
  if (typeof value !== 'string') return typeof value
  // The README leaves out parts of links and of identifiers.
  if (value.includes('://')) return value.split(/[?\d]|localhost|pay\//)[0]
  if (/^[0-9a-f]{8}(…|[0-9a-f]{24})$/.test(value)) return 'orderId'
  return value.replaceAll(/\d/g, '0')
}
