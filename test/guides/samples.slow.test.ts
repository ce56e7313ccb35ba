import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { ACQUIRER_SECRETS, CREATE, intentFields, post } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { blocksOf, blockWith, filledIn } from './guides.ts'
import { has, runIn } from './interpreters.ts'

type Sample = { name: string; file: string; command: [string, ...string[]]; text: string; isInstalled: boolean }

const SAMPLES: Sample[] = [
  {
    name: 'curl',
    file: 'quickstart.sh',
    command: ['sh', 'quickstart.sh'],
    text: blockWith('merchant', 'sh', 'call createOrderRequest'),
    isInstalled: has('curl', { mustHave: true }),
  },
  {
    name: 'Node.js',
    file: 'quickstart.mjs',
    command: [process.execPath, 'quickstart.mjs'],
    text: blockWith('merchant', 'js', '// quickstart.mjs'),
    isInstalled: true,
  },
]

const TIMEOUT_MS = 120_000

/** A random order number of 128 bits: a UUID, or its digits in PHP. */
const ORDER_NUMBER = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/i

const FULFILS = /^Ship: paid, UTR \d{12}$|"txnStatus":"SUCCESS"/m
const DOES_NOT_FULFIL = /^Do not ship: Payment failed$|"txnStatus":"FAIL"/m
const SENDS_TO = /^(?:Send the customer to |.*"payment_url":")(http:\/\/127\.0\.0\.1:\d+\/pay\/[0-9a-f]{32})\b/m

const orders = async ({ service }: DemoService) =>
  (await service.db.query("select order_id, idempotency_key from payment_intents where merchant_order_id <> 'DEMO-1'"))
    .rows

// Concurrent, because the samples mostly sleep between two requests.
describe.concurrent.each(SAMPLES)('the quickstart sample in $name', { timeout: TIMEOUT_MS }, (sample) => {
  const { file, text, command } = sample
  const start = (demo: DemoService, key = demo.merchantKey) =>
    runIn({ [file]: filledIn(text, demo.url) }, command, { baseUrl: demo.url, key })

  it.runIf(sample.isInstalled)(
    'the quickstart sample creates one order, although an attempt fails and responses are lost, incomplete, 429 or 503',
    async ({ expect }) => {
      const demo = await startDemoService({
        faults: {
          createOrderRequest: ['lost', 'half', 'unavailable'],
          checkPaymentStatus: ['too many', 'half'],
        },
        customer: ['FAIL', 'SUCCESS'],
      })
      const { code, stdout, stderr } = await start(demo)
      expect(code, stderr).toBe(0)
      expect(stdout).toMatch(FULFILS)
      expect(stdout).not.toMatch(DOES_NOT_FULFIL)
      const [order, ...others] = await orders(demo)
      expect(others).toEqual([])
      expect(order.idempotency_key).toMatch(ORDER_NUMBER)
      expect(stdout.match(SENDS_TO)?.[1]).toBe(`${demo.url}/pay/${order.order_id}`)
      expect(demo.calls.get('createOrderRequest')).toBe(4)
    },
  )

  it.runIf(sample.isInstalled)(
    'the quickstart sample does not fulfil an order whose payment failed',
    async ({ expect }) => {
      const demo = await startDemoService({ customer: ['FAIL', 'leaves'] })
      const { code, stdout } = await start(demo)
      expect(code).toBe(0)
      expect(stdout).toMatch(DOES_NOT_FULFIL)
      expect(stdout).not.toMatch(FULFILS)
    },
  )

  it.runIf(sample.isInstalled)(
    'the quickstart sample reports a rejected request and does not repeat the request',
    async ({ expect }) => {
      const demo = await startDemoService()
      const { code, stdout, stderr } = await start(demo, { ...demo.merchantKey, secretKey: 'wrong' })
      expect(code).toBe(1)
      expect(stdout + stderr).toContain('unknown, wrong, revoked or expired')
      expect([...demo.calls]).toEqual([['createOrderRequest', 1]])
      expect(await orders(demo)).toEqual([])
    },
  )
})

const CREATES: Sample[] = [
  {
    name: 'Python',
    file: 'quickstart.py',
    command: ['python3', 'quickstart.py'],
    text: blockWith('merchant', 'python', 'createOrderRequest'),
    isInstalled: has('python3', { mustHave: true }),
  },
  {
    name: 'PHP',
    file: 'quickstart.php',
    command: ['php', 'quickstart.php'],
    text: blockWith('merchant', 'php', 'createOrderRequest'),
    isInstalled: has('php', { mustHave: true }),
  },
  {
    name: 'Java',
    file: 'Quickstart.java',
    command: ['java', 'Quickstart.java'],
    text: blockWith('merchant', 'java', 'createOrderRequest'),
    isInstalled: has('java', { mustHave: false }),
  },
]

describe.concurrent.each(CREATES)('the create sample in $name', { timeout: TIMEOUT_MS }, (sample) => {
  it.runIf(sample.isInstalled)(
    'the create sample creates one order with its order number as Idempotency-Key, and prints an error response',
    async ({ expect }) => {
      const demo = await startDemoService()
      const start = (key: typeof demo.merchantKey) =>
        runIn({ [sample.file]: filledIn(sample.text, demo.url) }, sample.command, { baseUrl: demo.url, key })
      const { code, stdout, stderr } = await start(demo.merchantKey)
      expect(code, stderr).toBe(0)
      const [order, ...others] = await orders(demo)
      expect(others).toEqual([])
      expect(order.idempotency_key).toMatch(ORDER_NUMBER)
      const paymentUrl = `${demo.url}/pay/${order.order_id}`
      expect(JSON.parse(stdout).data).toEqual({ orderId: order.order_id, payment_url: paymentUrl })
      const rejected = await start({ ...demo.merchantKey, secretKey: 'wrong' })
      expect(JSON.parse(rejected.stdout)).toMatchObject({ status: false, statusCode: 401 })
    },
  )

  it.runIf(sample.isInstalled)('two concurrent runs of the create sample create two orders', async ({ expect }) => {
    const demo = await startDemoService()
    const run = () =>
      runIn({ [sample.file]: filledIn(sample.text, demo.url) }, sample.command, {
        baseUrl: demo.url,
        key: demo.merchantKey,
      })
    const runs = await Promise.all([run(), run()])
    expect(runs.map(({ stdout }) => JSON.parse(stdout).status)).toEqual([true, true])
    expect(await orders(demo)).toHaveLength(2)
  })
})

/** The guide's samples that call an operation of an existing order, by the quickstart's language. */
const LANGUAGE_OF: Record<string, string> = { mjs: 'js', py: 'python', php: 'php', java: 'java' }

/** The guide's call of `operation` in the language of a quickstart sample. */
function callOf(operation: string, { file }: Sample): string {
  const language = LANGUAGE_OF[file.split('.').at(-1) as string] as string
  const start = new RegExp(`^(?:await )?call\\(["']${operation}["']`)
  const calls = blocksOf('merchant', language).filter((text) => start.test(text))
  expect(calls, `${operation} in ${language}`).toHaveLength(1)
  return (calls[0] as string).replace(/^await /, '').trim()
}

/** A quickstart sample that calls `operation` for an existing order instead of createOrderRequest. */
const calling = (operation: string, sample: Sample, order: string) =>
  sample.text
    .replace(/\border = [^;\n]*/, `order = "${order}"`)
    .replace(/call\(["']createOrderRequest["'], \$?fields, \$?order\)/, () => callOf(operation, sample))

/** The quickstart sample in Node.js until its first request, followed by one request. */
const [, QUICKSTART_NODE] = SAMPLES as [Sample, Sample]
const NODE_CALL: Sample = {
  ...QUICKSTART_NODE,
  text: `${QUICKSTART_NODE.text.split('const order =')[0]}const order = ''\nconst [fields] = []
console.log(JSON.stringify(await call('createOrderRequest', fields, order)))`,
}

describe.concurrent('the samples for an existing order', { timeout: TIMEOUT_MS }, () => {
  const samples = [NODE_CALL, ...CREATES].filter(({ isInstalled }) => isInstalled)

  async function responsesTo(operation: string, { url, merchantKey: key }: DemoService) {
    const responses: unknown[] = []
    for (const sample of samples) {
      const files = { [sample.file]: filledIn(calling(operation, sample, '1001'), url) }
      const { code, stdout, stderr } = await runIn(files, sample.command, { baseUrl: url, key })
      expect(code, stderr).toBe(0)
      responses.push(JSON.parse(stdout))
    }
    return responses
  }

  async function createOrder({ service, merchantKey }: DemoService): Promise<string> {
    const fields = intentFields('DEMO_MERCHANT', { order_id: '1001' })
    return (await post(service.app, CREATE, fields, merchantKey)).body.data.orderId
  }

  it('the refund samples in all languages create one refund', async ({ expect }) => {
    const demo = await startDemoService()
    const orderId = await createOrder(demo)
    await simulate(demo.service, orderId, 'SUCCESS')
    const responses = await responsesTo('refundPayment', demo)
    expect(responses[0]).toMatchObject({ msg: 'Refund accepted', data: { orderId, refund_id: '1001-R1', amount: 200 } })
    expect(responses).toEqual(responses.map(() => responses[0]))
    expect((await demo.service.db.query('select from refunds')).rowCount).toBe(1)
  })

  it('the status check and cancellation samples in all languages return the status of the order', async ({
    expect,
  }) => {
    const demo = await startDemoService()
    await createOrder(demo)
    const pending = samples.map(() => expect.objectContaining({ txnStatus: 'PENDING' }))
    expect(await responsesTo('checkPaymentStatus', demo)).toEqual(pending)
    const cancelled = samples.map(() => expect.objectContaining({ txnStatus: 'FAIL', msg: 'Payment cancelled' }))
    expect(await responsesTo('cancelPayment', demo)).toEqual(cancelled)
  })
})

describe('the sample that decides by the error code', () => {
  it('the sample tells a paid order, an order that was never created and an open order apart', async () => {
    const demo = await startDemoService()
    const text = filledIn(blockWith('merchant', 'js', '// cancel.mjs'), demo.url)
    const cancel = (order: string, key = demo.merchantKey) =>
      runIn({ 'cancel.mjs': text }, [process.execPath, 'cancel.mjs', order], { baseUrl: demo.url, key })
    const create = async (order_id: string) => {
      const fields = intentFields('DEMO_MERCHANT', { order_id })
      return (await post(demo.service.app, CREATE, fields, demo.merchantKey)).body.data.orderId
    }
    await create('open')
    await simulate(demo.service, await create('paid'), 'SUCCESS')
    expect((await cancel('open')).stdout).toBe('Not paid: create the second order\n')
    expect((await cancel('paid')).stdout).toBe('Paid: ship\n')
    expect((await cancel('unknown')).stdout).toBe('Create the first order again\n')
    const rejected = await cancel('open', { ...demo.merchantKey, secretKey: 'wrong' })
    expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringContaining('401 invalid_credentials: {')])
  })
})

describe.concurrent('the reconciliation sample for merchants', { timeout: TIMEOUT_MS }, () => {
  it('the reconciliation sample checks only orders whose status differs, and prints the returned status', async ({
    expect,
  }) => {
    const { service, url: baseUrl, merchantKey: key, calls } = await startDemoService()
    const create = async (order_id: string) => {
      const { body } = await post(service.app, CREATE, intentFields('DEMO_MERCHANT', { order_id }), key)
      return body.data.orderId as string
    }
    await simulate(service, await create('missed'), 'SUCCESS')
    await simulate(service, await create('known'), 'SUCCESS')
    await create('expired')
    service.clock.advance(25 * 60)
    await create('open')
    await create('lost')
    const stored = { missed: 'PENDING', known: 'SUCCESS', expired: 'PENDING', open: 'PENDING', other: 'PENDING' }
    const files = {
      'reconcile.mjs': blockWith('merchant', 'js', '// reconcile.mjs'),
      'orders.json': JSON.stringify(stored),
    }
    const command = [process.execPath, 'reconcile.mjs', '31-03-2026', '01-04-2026'] as const
    const { code, stdout, stderr } = await runIn(files, command, { baseUrl, key })
    expect(code, stderr).toBe(0)
    expect(stdout.split('\n').toSorted()).toEqual([
      '',
      'expired: store FAIL (Payment intent expired)',
      'lost: store PENDING (Payment pending)',
      'missed: store SUCCESS (Payment successful)',
    ])
    expect([...calls]).toEqual([
      ['fetchOrderList', 1],
      ['checkPaymentStatus', 3],
    ])
    const rejected = await runIn(files, command, { baseUrl, key: { ...key, secretKey: 'wrong' } })
    expect([rejected.code, rejected.stdout]).toEqual([1, ''])
    expect(rejected.stderr).toContain('"statusCode":401')
  })
})

describe.concurrent('the samples of open orders, refunds and payouts', { timeout: TIMEOUT_MS }, () => {
  const NODE = process.execPath
  /** Pays an order of ₹200 with the UTR on the service's day. */
  async function pay({ service, merchantKey: key }: DemoService, order_id: string, UTR: string) {
    const { body } = await post(service.app, CREATE, intentFields('DEMO_MERCHANT', { order_id }), key)
    const report = notification(body.data.orderId, { UTR, paidAt: service.clock.now().toISOString() })
    expect((await notify(service, report)).status).toBe(200)
  }
  const requestRefund = async ({ service, merchantKey: key }: DemoService, fields: Record<string, string>) => {
    const refund = { mid: 'DEMO_MERCHANT', note: 'Cold tea', ...fields }
    return (await post(service.app, '/v1/payments/refundPayment', refund, key)).body.data.refundId as string
  }
  const completeRefund = async ({ service }: DemoService, refundId: string) => {
    const args = ['refunds', 'done', '--refund', refundId, '--reference', '523604870777']
    expect((await runOps(service.databaseUrl, args)).code).toBe(0)
  }
  const linesOf = ({ stdout }: { stdout: string }) => stdout.split('\n').slice(0, -1)

  it.runIf(has('curl', { mustHave: true }))(
    'the sample of open orders lists the orders of yesterday that are still open, and no other order',
    async ({ expect }) => {
      const demo = await startDemoService()
      const { service, url: baseUrl, merchantKey: key } = demo
      const dayMs = 24 * 60 * 60_000
      // The sample reads the machine's clock.
      service.clock.set(new Date(Date.now() - dayMs).toISOString())
      const create = (order_id: string, expiry_minutes: string) =>
        post(service.app, CREATE, intentFields('DEMO_MERCHANT', { order_id, expiry_minutes }), key)
      await create('open', '1440')
      await create('expired', '5')
      await pay(demo, 'paid', '523504870499')
      service.clock.advance(dayMs / 1000)
      await create('today', '1440')
      const sample = blockWith('merchant', 'sh', 'YESTERDAY=')
      const { code, stdout } = await runIn({ 'open.sh': sample }, ['sh', 'open.sh'], { baseUrl, key })
      expect(code).toBe(0)
      expect(JSON.parse(stdout).data.map(({ order_id }: { order_id: string }) => order_id)).toEqual(['open'])
    },
  )

  it('the sample of pending refunds prints the refunds without a final status', async ({ expect }) => {
    const demo = await startDemoService({ signedNow: true })
    await pay(demo, '1001', '523504870499')
    await requestRefund(demo, { order_id: '1001', refund_id: 'pending', amount: '50' })
    await completeRefund(demo, await requestRefund(demo, { order_id: '1001', refund_id: 'done', amount: '20' }))
    const files = { 'pending-refunds.mjs': blockWith('merchant', 'js', '// pending-refunds.mjs') }
    const reader = { baseUrl: demo.url, key: demo.merchantKey }
    const outcome = await runIn(files, [NODE, 'pending-refunds.mjs'], reader)
    expect([outcome.code, linesOf(outcome)]).toEqual([0, [expect.stringMatching(/^pending 1001 50\.00 \d{4}-/)]])
    const wrongKey = { ...reader, key: { ...reader.key, secretKey: 'wrong' } }
    expect((await runIn(files, [NODE, 'pending-refunds.mjs'], wrongKey)).stderr).toContain('"statusCode":401')
  })

  it.runIf(has('curl', { mustHave: true }))(
    'the sample of a UTR prints the transaction with the UTR',
    async ({ expect }) => {
      const demo = await startDemoService()
      demo.service.clock.set('2026-11-21T10:00:00Z')
      await pay(demo, '1001', '523504870499')
      await pay(demo, '1002', '523504870498')
      const sample = blockWith('merchant', 'sh', 'UTR=').replace('523504870405', '523504870499')
      const outcome = await runIn({ 'find.sh': sample }, ['sh', 'find.sh'], {
        baseUrl: demo.url,
        key: demo.merchantKey,
      })
      expect(linesOf(outcome)).toEqual([expect.stringMatching(/^200\.00,523504870499,\w{32},1001,/)])
    },
  )

  it('the sample of payouts prints the output in the guide: each payout with its orders, fees and refunds', async ({
    expect,
  }) => {
    const demo = await startDemoService()
    const { service } = demo
    await service.db.query('delete from settlements')
    service.clock.set('2026-11-21T10:00:00Z')
    await pay(demo, '1001', '523504870411')
    await pay(demo, '1002', '523504870499')
    await completeRefund(demo, await requestRefund(demo, { order_id: '1001', refund_id: '1001-R1', amount: '50' }))
    const rows = [
      // Some banks pad a UTR with zeros to 16 digits.
      ['0000523504870411', '197.64', 'AXISCN0123456789', 'SUCCESS', '2026-11-23 10:00:00'],
      ['523504870499', '197.64', 'AXISCN0123456789', 'SUCCESS', '2026-11-23 10:00:00'],
      ['523604870777', '-50.00', 'AXISCN0123456789', 'SUCCESS', '2026-11-23 10:00:00'],
      ['DEMON26328000001', '1999.00', 'YESBN0123456790', 'SUCCESS', '2026-11-24 10:00:00'],
      ['DEMON26328000002', '450.50', 'YESBN0123456791', 'PENDING', '2026-11-24 10:00:00'],
    ]
    const header = 'mid,utr,amount,bank_reference_number,status,initiation_date'
    const file = [header, ...rows.map((row) => `DEMO_MERCHANT,${row}`)].join('\n')
    await importFile(service.db, Readable.from([`${file}\n`]), { now: service.clock.now() })
    const files = { 'payouts.mjs': blockWith('merchant', 'js', '// payouts.mjs') }
    const [, command = ''] = /`(node payouts\.mjs [^`]+)`/.exec(files['payouts.mjs']) ?? []
    const reader = { baseUrl: demo.url, key: demo.merchantKey }
    const { code, stdout, stderr } = await runIn(files, ['sh', '-c', command], reader)
    expect(code, stderr).toBe(0)
    // The guide shows the UTR of the demo's own order.
    expect(stdout.replace('0000523504870411', '523504870405')).toBe(blockWith('merchant', 'text', 'AXISCN'))
  })
})

async function startWithSettlements() {
  const demo = await startDemoService({ faults: { fetchSettlementList: ['half', 'unavailable'] } })
  // The last second before the demo's month and the first one after it, both in IST.
  await demo.service.db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select 'DEMO_MERCHANT', utr, 1100, 'BRN0000', 'SUCCESS', at::timestamptz, at::timestamptz
       from (values ('BEFORE1', '2026-09-30 23:59:59+05:30'), ('AFTER1', '2026-11-01 00:00:00+05:30')) as near (utr, at)`,
  )
  return demo
}

describe.concurrent('the reconciliation samples for partners', { timeout: TIMEOUT_MS }, () => {
  it.runIf(has('python3', { mustHave: true }))(
    'the reconciliation sample prints the output shown in the guide, even if the list is interrupted once',
    async ({ expect }) => {
      const demo = await startWithSettlements()
      const files = {
        'reconcile.py': blockWith('partner', 'python'),
        'statement.csv': blockWith('partner', 'csv'),
      }
      const credentials = { baseUrl: demo.url, key: demo.partnerKey }
      const command = ['sh', '-c', blockWith('partner', 'sh', 'reconcile.py')] as const
      const { code, stdout, stderr } = await runIn(files, command, credentials)
      expect(code, stderr).toBe(0)
      expect(stdout).toBe(blockWith('partner', 'text'))
      expect(demo.calls.get('fetchSettlementList')).toBe(3)

      // Excel writes a byte order mark and CRLF; Indian banks write thousands separators.
      const saved = files['statement.csv'].replace('1999.00', '"1,999.00"').replaceAll('\n', '\r\n')
      expect(await runIn({ ...files, 'statement.csv': `\ufeff${saved}` }, command, credentials)).toEqual({
        code: 0,
        stdout,
        stderr: '',
      })

      const wrongKey = { ...demo.partnerKey, secretKey: 'wrong' }
      const rejected = await runIn(files, command, { ...credentials, key: wrongKey })
      expect(rejected.code).toBe(1)
      expect(rejected.stdout).toBe('')
      expect(rejected.stderr).toContain('"statusCode":401')
    },
  )

  it.runIf(has('python3', { mustHave: true }))(
    'the reconciliation sample matches rows by payout UTR and adds up the lines of each UTR',
    async ({ expect }) => {
      const { service, url, partnerKey: key } = await startDemoService()
      await service.db.query('delete from settlements')
      // Rows as `ops settlements pull` stores them: PAYOUT1 less a refund, PAYOUT2, and PAYOUT3 that was not received.
      await service.db.query(
        `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
         select 'DEMO_MERCHANT', utr, amount * 100, payout, 'SUCCESS', '2026-10-05 10:00+05:30', '2026-10-05 10:00+05:30'
           from (values ('P1', 100.10, 'PAYOUT1'), ('P2', 200.20, 'PAYOUT1'), ('E1', -50, 'PAYOUT1'),
                        ('P3', 300, 'PAYOUT2'), ('P4', 1, 'PAYOUT3'), ('P5', 2, 'PAYOUT3')) as pulled (utr, amount, payout)`,
      )
      const files = {
        'reconcile.py': blockWith('partner', 'python'),
        'statement.csv': 'utr,amount\nPAYOUT1,250.00\nPAYOUT1,0.30\nPAYOUT2,290.00\n',
      }
      const command = ['sh', '-c', blockWith('partner', 'sh', 'reconcile.py')] as const
      const { code, stdout, stderr } = await runIn(files, command, { baseUrl: url, key })
      expect(code, stderr).toBe(0)
      expect(stdout).toBe(
        'PAYOUT2  listed 300.00 (SUCCESS)  received 290.00\nPAYOUT3  listed 3.00 (SUCCESS)  received 0.00\npaid out 553.30\n',
      )
    },
  )

  it.runIf(has('curl', { mustHave: true }))(
    'the curl sample downloads a complete month, even if the list is interrupted once',
    async ({ expect }) => {
      const demo = await startWithSettlements()
      const files = { 'month.sh': `${blockWith('partner', 'sh', 'october.json')}cat october.json` }
      const { code, stdout } = await runIn(files, ['sh', 'month.sh'], { baseUrl: demo.url, key: demo.partnerKey })
      expect(code).toBe(0)
      expect(JSON.parse(stdout).data.map(({ UTR }: { UTR: string }) => UTR)).toEqual([
        'DEMON26278000001',
        'DEMON26280000002',
        'DEMON26281000003',
        'DEMON26282000004',
        'DEMON26303000005',
      ])
    },
  )
})

const NOTIFIERS: Sample[] = [
  {
    name: 'curl and openssl',
    file: 'notify.sh',
    command: ['sh', 'notify.sh'],
    text: blockWith('acquirer', 'sh', 'openssl'),
    isInstalled: has('curl', { mustHave: true }) && has('openssl', { mustHave: true }),
  },
  {
    name: 'Node.js',
    file: 'notify.mjs',
    command: [process.execPath, 'notify.mjs'],
    text: blockWith('acquirer', 'js'),
    isInstalled: true,
  },
  {
    name: 'Python',
    file: 'notify.py',
    command: ['python3', 'notify.py'],
    text: blockWith('acquirer', 'python'),
    isInstalled: has('python3', { mustHave: true }),
  },
]

describe.concurrent.each(NOTIFIERS)('the payment notification sample in $name', { timeout: TIMEOUT_MS }, (sample) => {
  const { file, text, command } = sample

  it.runIf(sample.isInstalled)(
    'the notification sample marks an order as paid, and prints the error response to a wrong secret',
    async ({ expect }) => {
      const demo = await startDemoService({ signedNow: true })
      const { service, url: baseUrl, merchantKey: key } = demo
      const fields = intentFields('DEMO_MERCHANT', { order_id: '1001' })
      const { orderId } = (await post(service.app, CREATE, fields, key)).body.data
      const send = (acquirerSecret: string) =>
        runIn({ [file]: text }, [...command, orderId, '523504870499'], { baseUrl, key, acquirerSecret })

      const rejected = await send('the-secret-of-another-service')
      expect(rejected.stdout).toContain('Send X-Signature')
      const { code, stdout, stderr } = await send(ACQUIRER_SECRETS[0] as string)
      expect(code, stderr).toBe(0)
      // Otherwise the terminal's prompt follows the response on the same line.
      expect(stdout).toMatch(/\n$/)
      expect(JSON.parse(stdout)).toEqual(JSON.parse(blockWith('acquirer', 'json')))
      const checked = await post(
        service.app,
        '/v1/payments/checkPaymentStatus',
        { mid: fields.mid as string, order_id: '1001' },
        key,
      )
      expect(checked.body).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: '523504870499' } })
    },
  )
})
