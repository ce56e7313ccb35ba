import { beforeAll, describe, expect, it } from 'vitest'
import { Simulation } from '../../src/gateway/checkout/simulate.ts'
import { notification, notify } from '../support/acquirer.ts'
import { intentFields, type Key, post } from '../support/service.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { blocks, blockWith, filledIn, guideText } from './guides.ts'
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
    const list = blockWith('partner', 'sh', `"$PUBLIC_KEY:$SECRET_KEY" "$BASE_URL/v1/partner/fetchSettlementList"`)
    const paid = blockWith('partner', 'sh', '/v1/partner/fetchTransactionList')
    const ownPaid = blockWith(
      'merchant',
      'sh',
      `"$PUBLIC_KEY:$SECRET_KEY" "$BASE_URL/v1/payments/fetchTransactionList"`,
    )
    const created = await paste(order, merchantKey)
    const intended = await paste(intent, merchantKey)
    const { orderId, payment_url: paymentUrl } = created.data
    // What the reader's terminal remembers.
    const remembered = `ORDER=${await numberOf(orderId)} SECOND=${await numberOf(intended.data.orderId)}\n`
    expect(remembered).toMatch(/^ORDER=shop-\d+ SECOND=shop-\d+-2\n$/)
    real.push(created, intended)
    real.push(await paste(remembered + order.replace(/^ORDER=.*\n/, ''), merchantKey))
    expect((await paste(remembered + check, merchantKey)).msg).toBe('Payment pending')
    await simulateBy('SUCCESS', paymentUrl)
    real.push(await paste(remembered + check, merchantKey), await paste(list, partnerKey))
    const { data } = await paste(paid, partnerKey)
    expect(data.map(({ orderId }: { orderId: string }) => orderId)).toContain(orderId)
    expect(data).toHaveLength(2)
    expect((await paste(ownPaid, merchantKey)).data).toEqual(data)
    const csv = await type(blockWith('merchant', 'sh', '-o paid.csv').replace('-o paid.csv', ''), merchantKey)
    const lines = [Object.keys(data[0]), ...data.map(Object.values)]
    expect(csv).toBe(lines.map((values) => `${values}\r\n`).join(''))
    real.push(await paste(list.replace('s_date=01', 's_date=32'), partnerKey))
    real.push((await notify(service, notification(orderId, { UTR: (real[3] as Paid).data.UTR }))).body)
    const askFailed = remembered + check.replace('$ORDER', '$SECOND')
    await simulate(service, intended.data.orderId, 'FAIL')
    real.push(await paste(askFailed, merchantKey))
    service.clock.advance(25 * 60)
    real.push(await paste(askFailed, merchantKey))
  })

  async function numberOf(orderId: string): Promise<string> {
    const { rows } = await demo.service.db.query('select merchant_order_id from payment_intents where order_id = $1', [
      orderId,
    ])
    return rows[0].merchant_order_id
  }

  async function simulateBy(status: string, paymentUrl: string) {
    const command = blockWith('merchant', 'sh', 'curl -d status=SUCCESS').replace('SUCCESS', status)
    const credentials = { baseUrl: demo.url, key: demo.merchantKey }
    const { code } = await runIn({}, ['sh', '-c', `PAYMENT_URL=${paymentUrl}; ${command}`], credentials)
    expect(code).toBe(0)
  }

  const outcomes = [
    ...guideText('merchant').matchAll(/^\| `([A-Z_]+)` \| [^|]+ \| `([^`]+)`[^|]*\| (?:`([^`]+)` )?\|$/gm),
  ].map(([, status = '', msg = '', exception]) => ({ status, msg, exception }))

  it('every outcome of a sandbox payment has a line in the merchant’s guide', () => {
    expect(Simulation.shape.status.options).toEqual(outcomes.map(({ status }) => status))
  })

  it.each(outcomes)('the simulated outcome $status has the msg of the guide', async ({ status, msg, exception }) => {
    const { service, merchantKey: key } = demo
    const fields = intentFields('DEMO_MERCHANT')
    const { orderId, payment_url } = (await post(service.app, '/v1/payments/createOrderRequest', fields, key)).body.data
    await simulateBy(status, payment_url)
    const check = () =>
      post(service.app, '/v1/payments/checkPaymentStatus', { mid: 'DEMO_MERCHANT', order_id: orderId }, key)
    expect((await check()).body.msg).toBe(msg)
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows.map(({ kind }) => kind)).toEqual(exception === undefined ? [] : [exception])
    if (status !== 'EXPIRE') return
    service.clock.advance(10 * 60 - 1)
    expect((await check()).body.msg).toBe(msg)
    service.clock.advance(1)
    expect((await check()).body.msg).toBe('Payment intent expired')
  })

  it.each(['SUCCESS', 'FAIL'])('a refund ends as %s by the request that the guide shows', async (status) => {
    const { service, merchantKey: key } = demo
    const fields = { ...intentFields('DEMO_MERCHANT'), order_id: `refund-${status}` }
    const { payment_url } = (await post(service.app, '/v1/payments/createOrderRequest', fields, key)).body.data
    await simulateBy('SUCCESS', payment_url)
    const refund = { mid: 'DEMO_MERCHANT', refund_id: `R-${status}`, order_id: fields.order_id, note: 'Cold tea' }
    expect((await post(service.app, '/v1/payments/refundPayment', refund, key)).status).toBe(200)
    const shown = blockWith('merchant', 'sh', 'curl -d refund_id=1001-R1')
    const command = shown.replace('1001-R1', refund.refund_id).replace('SUCCESS', status)
    const credentials = { baseUrl: demo.url, key }
    expect((await runIn({}, ['sh', '-c', `PAYMENT_URL=${payment_url}; ${command}`], credentials)).code).toBe(0)
    const { body } = await post(service.app, '/v1/payments/checkRefundStatus', refund, key)
    expect(body.data).toMatchObject({
      txnStatus: status,
      reference: expect.stringMatching(status === 'FAIL' ? /^$/ : /./),
    })
  })

  async function type(commands: string, key: Key): Promise<string> {
    const { code, stdout } = await runIn({ 'pasted.sh': filledIn(commands, demo.url) }, ['sh', 'pasted.sh'], {
      baseUrl: demo.url,
      key,
    })
    expect(code).toBe(0)
    // Or the next prompt of a terminal stands behind the answer.
    expect(stdout).toMatch(/\n$/)
    return stdout
  }

  const paste = async (commands: string, key: Key) => JSON.parse(await type(commands, key))

  const shown = blocks.filter(({ language, text }) => language === 'json' && text.includes('"statusCode"'))

  it('the guides show an answer for every call and outcome of their commands, and no other', () => {
    expect(
      shown
        .map(({ text }) => JSON.parse(text))
        .map(outcome)
        .sort(),
    ).toEqual(real.map(outcome).sort())
  })

  it.each(shown.map(({ text }) => JSON.parse(text)).map((answer) => [outcome(answer), answer]))(
    'the guide’s answer "%s" is what the service answers, field by field',
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
