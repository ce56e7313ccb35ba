import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import type { Key } from '../support/service.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { blocks, blockWith, filledIn } from './guides.ts'
import { has, runIn } from './interpreters.ts'

describe.runIf(has('curl', { mustHave: true }))('the answers that the guides show', () => {
  let demo: DemoService
  const real: unknown[] = []

  beforeAll(async () => {
    demo = await startDemoService()
    const { service, merchantKey, partnerKey } = demo
    const order = blockWith('merchant', 'sh', '/v1/payments/createOrderRequest')
    const intent = blockWith('merchant', 'sh', '/v1/payments/createPaymentIntent')
    const check = blockWith('merchant', 'sh', '"$BASE_URL/v1/payments/checkPaymentStatus"')
    const list = blockWith('partner', 'sh', 'curl -u ')
    const created = await paste(order, merchantKey)
    const intended = await paste(intent, merchantKey)
    real.push(created, intended)
    real.push(await paste(order, merchantKey), await paste(check, merchantKey))
    const { orderId, payment_url: paymentUrl } = created.data
    await runIn({}, ['sh', '-c', `PAYMENT_URL=${paymentUrl}; ${blockWith('merchant', 'sh', '/simulate')}`], {
      baseUrl: demo.url,
      key: merchantKey,
    })
    real.push(await paste(check, merchantKey), await paste(list, partnerKey))
    real.push(await paste(list.replace('s_date=01', 's_date=32'), partnerKey))
    real.push((await notify(service, notification(orderId, { UTR: (real[4] as Paid).data.UTR }))).body)
    const askFailed = check.replace('order_id=1001', 'order_id=1002')
    await simulate(service, intended.data.orderId, 'FAIL')
    real.push(await paste(askFailed, merchantKey))
    service.clock.advance(25 * 60)
    real.push(await paste(askFailed, merchantKey))
  })

  async function paste(commands: string, key: Key) {
    const { code, stdout } = await runIn({ 'pasted.sh': filledIn(commands, demo.url) }, ['sh', 'pasted.sh'], {
      baseUrl: demo.url,
      key,
    })
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

type Paid = { data: { UTR: string } }

const outcome = (answer: unknown) => (answer as { msg: string }).msg

/** What must be alike: names, kinds and order of fields, and how a value is written, though not the value. */
function shapeOf(value: unknown, name = ''): unknown {
  if (['status', 'statusCode', 'txnStatus', 'msg'].includes(name)) return value
  if (Array.isArray(value)) return value.slice(0, 1).map((element) => shapeOf(element))
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).map(([key, field]) => [key, shapeOf(field, key)])
  }
  if (typeof value !== 'string') return typeof value
  // The guides leave out parts of links and of identifiers.
  if (/:\/\/|^\{PUBLIC_URL\}/.test(value)) return value.replace('{PUBLIC_URL}', 'http://0').split(/[?\d]|pay\//)[0]
  if (/^[0-9a-f]{8}(…|[0-9a-f]{24})$/.test(value)) return 'orderId'
  return value.replaceAll(/\d/g, '0')
}
