import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { Simulation } from '../../src/gateway/checkout/simulate.ts'
import { notification, notify } from '../support/acquirer.ts'
import { intentFields, type Key, post } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { blocks, blockWith, filledIn, guideText, ROOT } from './guides.ts'
import { has, runIn } from './interpreters.ts'

describe.runIf(has('curl', { mustHave: true }))('the responses in the guides', () => {
  let demo: DemoService
  const real: Body[] = []

  const merchantBlock = (part: string) => blockWith('merchant', 'sh', part)
  const order = merchantBlock('# Your order number.\nORDER=')
  const intent = merchantBlock('SECOND=$(uuidgen')
  const check = merchantBlock('checkPaymentStatus" -d "mid=$MID" -d "order_id=$ORDER"')
  const cancel = merchantBlock('/v1/payments/cancelPayment')
  const ownSettlements = merchantBlock('/v1/payments/fetchSettlementList')
  const refund = merchantBlock('/v1/payments/refundPayment')
  const transactions = '-w \'\\n\' -u "$PUBLIC_KEY:$SECRET_KEY" \\\n  "$BASE_URL/v1/payments/fetchTransactionList"'
  const settlements = blockWith(
    'partner',
    'sh',
    `-w '\\n' -u "$PUBLIC_KEY:$SECRET_KEY" \\\n  "$BASE_URL/v1/partner/fetchSettlementList"`,
  )

  beforeAll(async () => {
    demo = await startDemoService()
    const { variables, orderId, secondId, paymentUrl } = await createOrders()
    await simulateBy('SUCCESS', paymentUrl)
    const paid = await paste(variables + check, demo.merchantKey)
    await readPaidOrder(paid, orderId)
    await readLists(orderId)
    await repeatNotification(paid, orderId)
    await refundOrder(variables, orderId)
    await failOrder(variables, secondId)
    real.push(await paste(cancel, demo.merchantKey))
    await repeatRequest()
  })

  async function createOrders() {
    const { merchantKey } = demo
    const created = await paste(order, merchantKey)
    const intended = await paste(intent, merchantKey)
    const { orderId, payment_url: paymentUrl } = created.data as { orderId: string; payment_url: string }
    const secondId = (intended.data as { orderId: string }).orderId
    // The variables of the reader's terminal.
    const variables = `ORDER=${await numberOf(orderId)} SECOND=${await numberOf(secondId)}\n`
    expect(variables).toMatch(/^ORDER=[0-9a-f-]{36} SECOND=[0-9a-f-]{36}\n$/)
    real.push(created, intended)
    const repeat = variables + order.replace(/^ORDER=.*\n/m, '')
    expect(await paste(repeat, merchantKey)).toEqual(created)
    real.push(await paste(repeat.replace('-H "Idempotency-Key: $ORDER" ', ''), merchantKey))
    real.push(await paste(variables + check, merchantKey))
    return { variables, orderId, secondId, paymentUrl }
  }

  async function readPaidOrder(paid: Body, orderId: string) {
    const { service, merchantKey, partnerKey } = demo
    real.push(paid, await paste(settlements, partnerKey))
    // The settlement of a payment, beside the settlements of payouts in the demo.
    const paidOut = [
      '197.64',
      UTR_IN_GUIDE,
      'AXISCN0123456789',
      'SUCCESS',
      '2026-11-23 10:00:00',
      '2026-11-23 11:00:00',
    ]
    const file = `mid,amount,utr,bank_reference_number,status,initiation_date,created_at\nDEMO_MERCHANT,${paidOut}\n`
    await importFile(service.db, Readable.from([file]), { now: service.clock.now() })
    real.push(await paste(ownSettlements, merchantKey))
    const cancelPaid = `ORDER=${await numberOf(orderId)}\n${cancel.split('\n\n').at(-1)?.replace('$OPEN', '$ORDER')}`
    real.push(await paste(cancelPaid, merchantKey))
    // The order of the demo, which is paid.
    const authenticated = await paste(merchantBlock('order_id=DEMO-1'), merchantKey)
    expect(authenticated.txnStatus).toBe('SUCCESS')
  }

  async function readLists(orderId: string) {
    const { merchantKey, partnerKey } = demo
    real.push(await paste(merchantBlock('e_date=31-12-2029 -d status=SUCCESS'), merchantKey))
    real.push(await paste(blockWith('partner', 'sh', '/v1/partner/fetchMerchantList'), partnerKey))
    const listed = await paste(merchantBlock(transactions), merchantKey)
    real.push(listed)
    const data = listed.data as object[]
    expect(data.map((row) => (row as { orderId: string }).orderId)).toContain(orderId)
    expect(data).toHaveLength(2)
    expect((await paste(blockWith('partner', 'sh', '/v1/partner/fetchTransactionList'), partnerKey)).data).toEqual(data)
    const csv = await type(merchantBlock('-o paid.csv').replace('-o paid.csv', ''), merchantKey)
    const lines = [Object.keys(data[0] as object), ...data.map(Object.values)]
    expect(csv).toBe(lines.map((values) => `${values}\r\n`).join(''))
    real.push(await paste(settlements.replace('s_date=01', 's_date=32'), partnerKey))
  }

  async function repeatNotification(paid: Body, orderId: string) {
    const { UTR } = paid.data as { UTR: string }
    real.push((await notify(demo.service, notification(orderId, { UTR }))).body)
  }

  async function refundOrder(variables: string, orderId: string) {
    const { merchantKey } = demo
    real.push(await paste(variables + refund, merchantKey))
    real.push(
      await paste(
        variables + refund.replace('ORDER-R1', 'ORDER-R2').replace('-d "mid', '-d amount=1 -d "mid'),
        merchantKey,
      ),
    )
    const { data: refunded } = await paste(variables + merchantBlock('/v1/payments/checkRefundStatus'), merchantKey)
    expect(refunded).toMatchObject({ orderId, txnStatus: 'PENDING' })
  }

  async function failOrder(variables: string, secondId: string) {
    const { service, merchantKey } = demo
    const checkSecond = variables + check.replace('$ORDER', '$SECOND')
    await simulate(service, secondId, 'FAIL')
    real.push(await paste(checkSecond, merchantKey))
    service.clock.advance(25 * 60)
    real.push(await paste(checkSecond, merchantKey))
  }

  async function repeatRequest() {
    // The sample of a repeated request prints the response twice.
    const [first, second] = (await type(merchantBlock('for attempt in 1 2'), demo.merchantKey)).trim().split('\n')
    expect(second).toBe(first)
    expect(first).toContain('payment_url')
  }

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

  it('the merchant guide lists every outcome of a simulated payment', () => {
    expect(Simulation.shape.status.options).toEqual(outcomes.map(({ status }) => status))
  })

  it.each(outcomes)(
    'the service returns the guide’s msg and exception for the simulated outcome $status',
    async ({ status, msg, exception }) => {
      const { service, merchantKey: key } = demo
      const fields = intentFields('DEMO_MERCHANT')
      const { orderId, payment_url } = (await post(service.app, '/v1/payments/createOrderRequest', fields, key)).body
        .data
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
    },
  )

  it.each([
    ['SUCCESS', 'refund_id'],
    ['FAIL', 'refundId'],
  ] as const)('the simulation sample in the guide sets a refund to %s by its %s', async (status, name) => {
    const { service, merchantKey: key } = demo
    const fields = { ...intentFields('DEMO_MERCHANT'), order_id: `refund-${status}` }
    const { payment_url } = (await post(service.app, '/v1/payments/createOrderRequest', fields, key)).body.data
    await simulateBy('SUCCESS', payment_url)
    const refund = { mid: 'DEMO_MERCHANT', refund_id: `R-${status}`, order_id: fields.order_id, note: 'Cold tea' }
    const { data } = (await post(service.app, '/v1/payments/refundPayment', refund, key)).body
    const sample = blockWith('merchant', 'sh', 'curl -d refund_id=1001-R1')
    const command = sample.replace('1001-R1', data[name]).replace('SUCCESS', status)
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
    // Otherwise the terminal's prompt follows the response on the same line.
    expect(stdout).toMatch(/\n$/)
    return stdout
  }

  const paste = async (commands: string, key: Key): Promise<Body> => JSON.parse(await type(commands, key))

  const inGuides: Body[] = blocks
    .filter(({ language, text }) => language === 'json' && text.includes('"statusCode"'))
    .map(({ text }) => JSON.parse(text))
  const messagesOf = (bodies: Body[]) => [...new Set(bodies.map(({ msg }) => msg))].sort()

  it('the guides show exactly the kinds of responses that the guides’ commands return', () => {
    expect(messagesOf(inGuides)).toEqual(messagesOf(real))
  })

  it.each(inGuides.map((body) => [body.msg, body] as const))(
    'the response "%s" in the guides has the fields of the real response',
    (msg, body) => {
      expect(real.filter((one) => one.msg === msg).map((one) => shapeOf(one))).toContainEqual(shapeOf(body))
    },
  )

  it('the README shows real responses to its requests, and only commands that tests run', async () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
    const inReadme = (language: string) =>
      [...readme.matchAll(/^```(\S+)\n([\s\S]*?)^```$/gm)]
        .filter(([, name]) => name === language)
        .map(([, , text = '']) => text)
    const [start, create, list, test, ...others] = inReadme('sh')
    // `npm start` is run by npm-start.slow.test.ts, and `npm test` by .ci/run.
    expect([start, test, others]).toEqual(['npm start\n', 'npm test\n', []])
    const { url, merchantKey, partnerKey } = demo
    const send = async (command = '', key: Key) => {
      const local = command.replaceAll('http://localhost:3000', url)
      const { code, stdout } = await runIn({}, ['sh', '-c', local], { baseUrl: url, key })
      expect(code).toBe(0)
      return JSON.parse(stdout)
    }
    const real = [await send(create, merchantKey), await send(list, partnerKey)]
    const shown = inReadme('json').map((text) => JSON.parse(text.replaceAll('http://localhost:3000', url)))
    expect(shown.map((one) => shapeOf(one))).toEqual(real.map((one) => shapeOf(one)))
  })
})

/** The UTR of the samples, whose format is that of real UTRs. */
const UTR_IN_GUIDE = '523504870405'

type Body = { msg: string; txnStatus?: string; data?: unknown }

/** Names, types and order of fields, and the format of each value. */
function shapeOf(value: unknown, name = ''): unknown {
  if (['status', 'statusCode', 'txnStatus', 'msg'].includes(name)) return value
  if (Array.isArray(value)) return value.slice(0, 1).map((element) => shapeOf(element))
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).map(([key, field]) => [key, shapeOf(field, key)])
  }
  if (typeof value !== 'string') return typeof value
  // The guides shorten links and identifiers.
  if (/:\/\/|^\{PUBLIC_URL\}/.test(value)) return value.replace('{PUBLIC_URL}', 'http://0').split(/[?\d]|pay\//)[0]
  if (/^[0-9a-f]{8}(…|[0-9a-f]{24})$/.test(value)) return 'orderId'
  return value.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/i, 'order_id').replaceAll(/\d/g, '0')
}
