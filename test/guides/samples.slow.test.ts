import { describe, it } from 'vitest'
import { ACQUIRER_SECRETS, CREATE, intentFields, post } from '../support/service.ts'
import { type DemoService, simulate, startDemoService } from './demo-service.ts'
import { blockWith, filledIn, guideText } from './guides.ts'
import { has, runIn } from './interpreters.ts'

type Sample = { name: string; file: string; command: [string, ...string[]]; text: string; there: boolean }

const SAMPLES: Sample[] = [
  {
    name: 'curl',
    file: 'first.sh',
    command: ['sh', 'first.sh'],
    text: blockWith('merchant', 'sh', 'call createOrderRequest'),
    there: has('curl', { mustHave: true }),
  },
  {
    name: 'Node.js',
    file: 'first.mjs',
    command: [process.execPath, 'first.mjs'],
    text: blockWith('merchant', 'js', 'checkPaymentStatus'),
    there: true,
  },
]

const TIMEOUT_MS = 120_000

const SHIPS = /^Ship: paid, UTR \d{12}$|"txnStatus":"SUCCESS"/m
const DOES_NOT_SHIP = /^Do not ship: Payment failed$|"txnStatus":"FAIL"/m
const SENDS_TO = /^(?:Send the customer to |.*"payment_url":")(http:\/\/127\.0\.0\.1:\d+\/pay\/[0-9a-f]{32})\b/m

const orders = async ({ service }: DemoService) =>
  (await service.db.query("select order_id, idempotency_key from payment_intents where merchant_order_id <> 'DEMO-1'"))
    .rows

// Together, since most of their time is the pauses of the samples.
describe.concurrent.each(SAMPLES)("the merchant's first payment in $name", { timeout: TIMEOUT_MS }, (sample) => {
  const { file, text, command } = sample
  const start = (demo: DemoService, key = demo.merchantKey) =>
    runIn({ [file]: filledIn(text, demo.url) }, command, { baseUrl: demo.url, key })

  it.runIf(sample.there)(
    'the merchant’s sample takes a payment once, though an attempt fails and answers are lost, cut off or refused',
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
      expect(stdout).toMatch(SHIPS)
      expect(stdout).not.toMatch(DOES_NOT_SHIP)
      const [order, ...others] = await orders(demo)
      expect(others).toEqual([])
      expect(order.idempotency_key).toMatch(/^shop-\d+$/)
      expect(stdout.match(SENDS_TO)?.[1]).toBe(`${demo.url}/pay/${order.order_id}`)
      expect(demo.calls.get('createOrderRequest')).toBe(4)
    },
  )

  it.runIf(sample.there)('the merchant’s sample does not ship an order whose payment failed', async ({ expect }) => {
    const demo = await startDemoService({ customer: ['FAIL', 'leaves'] })
    const { code, stdout } = await start(demo)
    expect(code).toBe(0)
    expect(stdout).toMatch(DOES_NOT_SHIP)
    expect(stdout).not.toMatch(SHIPS)
  })

  it.runIf(sample.there)('the merchant’s sample reports a refused request and never repeats it', async ({ expect }) => {
    const demo = await startDemoService()
    const { code, stdout, stderr } = await start(demo, { ...demo.merchantKey, secretKey: 'wrong' })
    expect(code).toBe(1)
    expect(stdout + stderr).toContain('unknown, wrong or revoked')
    expect([...demo.calls]).toEqual([['createOrderRequest', 1]])
    expect(await orders(demo)).toEqual([])
  })
})

const CREATES: Sample[] = [
  {
    name: 'Python',
    file: 'create.py',
    command: ['python3', 'create.py'],
    text: blockWith('merchant', 'python', 'createOrderRequest'),
    there: has('python3', { mustHave: true }),
  },
  {
    name: 'PHP',
    file: 'create.php',
    command: ['php', 'create.php'],
    text: blockWith('merchant', 'php', 'createOrderRequest'),
    there: has('php', { mustHave: true }),
  },
  {
    name: 'Java',
    file: 'Create.java',
    command: ['java', 'Create.java'],
    text: blockWith('merchant', 'java', 'createOrderRequest'),
    there: has('java', { mustHave: false }),
  },
]

describe.concurrent.each(CREATES)("the merchant's create in $name", { timeout: TIMEOUT_MS }, (sample) => {
  it.runIf(sample.there)(
    'the guide’s sample for merchants creates an order once, with the order number as Idempotency-Key, and shows a refusal',
    async ({ expect }) => {
      const demo = await startDemoService()
      const start = (key: typeof demo.merchantKey) =>
        runIn({ [sample.file]: filledIn(sample.text, demo.url) }, sample.command, { baseUrl: demo.url, key })
      const { code, stdout, stderr } = await start(demo.merchantKey)
      expect(code, stderr).toBe(0)
      const [order, ...others] = await orders(demo)
      expect(others).toEqual([])
      expect(order.idempotency_key).toMatch(/^shop-\d+$/)
      const address = `${demo.url}/pay/${order.order_id}`
      expect(JSON.parse(stdout).data).toEqual({ orderId: order.order_id, payment_url: address })
      const refused = await start({ ...demo.merchantKey, secretKey: 'wrong' })
      expect(JSON.parse(refused.stdout)).toMatchObject({ status: false, statusCode: 401 })
    },
  )
})

/** The call that the guide's table has for a sample. */
const refundOf = (file: string) =>
  guideText('merchant')
    .match(new RegExp(`^\\| \`${file.replace('.', '\\.')}\` \\| \`(.+)\` \\|$`, 'm'))?.[1]
    ?.replace(/^await /, '') as string

/** A sample with that call in the place of its create, and with `order` as a paid order. */
const refunding = ({ file, text }: Sample, order: string) =>
  text
    .replace(/\border = [^;\n]*/, `order = "${order}"`)
    .replace(/call\(["']createOrderRequest["'], \$?fields, \$?order\)/, () => refundOf(file))

/** The first sample in Node.js, which goes on to ask: its beginning, and the call. */
const FIRST_NODE = SAMPLES[1] as Sample
const NODE_REFUND: Sample = {
  ...FIRST_NODE,
  text: `${FIRST_NODE.text.split('const order =')[0]}const order = ''\nconst [fields] = []
console.log(JSON.stringify(await call('createOrderRequest', fields, order)))`,
}

describe.concurrent("the merchant's refund", { timeout: TIMEOUT_MS }, () => {
  it('the guide’s samples in all languages request one refund, which is made once', async ({ expect }) => {
    const { service, url, merchantKey: key } = await startDemoService()
    const fields = intentFields('DEMO_MERCHANT', { order_id: '1001' })
    const { orderId } = (await post(service.app, CREATE, fields, key)).body.data
    await simulate(service, orderId, 'SUCCESS')
    const said: unknown[] = []
    for (const sample of [NODE_REFUND, ...CREATES].filter(({ there }) => there)) {
      const files = { [sample.file]: filledIn(refunding(sample, '1001'), url) }
      const { code, stdout, stderr } = await runIn(files, sample.command, { baseUrl: url, key })
      expect(code, stderr).toBe(0)
      said.push(JSON.parse(stdout))
    }
    expect(said[0]).toMatchObject({ msg: 'Refund accepted', data: { orderId, refund_id: '1001-R1', amount: 200 } })
    expect(said).toEqual(said.map(() => said[0]))
  })
})

async function startWithSettlements() {
  const demo = await startDemoService({ faults: { fetchSettlementList: ['half', 'unavailable'] } })
  // Beside the settlements of the demo, the moments next to their month, which belong to other months of India.
  await demo.service.db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select 'DEMO_MERCHANT', utr, 1100, 'BRN0000', 'SUCCESS', at::timestamptz, at::timestamptz
       from (values ('BEFORE1', '2026-09-30 23:59:59+05:30'), ('AFTER1', '2026-11-01 00:00:00+05:30')) as near (utr, at)`,
  )
  return demo
}

describe.concurrent("the partner's month", { timeout: TIMEOUT_MS }, () => {
  it.runIf(has('python3', { mustHave: true }))(
    'the partner’s Python sample prints the guide’s reconciliation, even if the list breaks off once',
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

      // As Excel saves it, and as Indian banks write amounts.
      const saved = files['statement.csv'].replace('1999.00', '"1,999.00"').replaceAll('\n', '\r\n')
      expect(await runIn({ ...files, 'statement.csv': `\ufeff${saved}` }, command, credentials)).toEqual({
        code: 0,
        stdout,
        stderr: '',
      })

      const wrongKey = { ...demo.partnerKey, secretKey: 'wrong' }
      const refused = await runIn(files, command, { ...credentials, key: wrongKey })
      expect(refused.code).toBe(1)
      expect(refused.stdout).toBe('')
      expect(refused.stderr).toContain('"statusCode":401')
    },
  )

  it.runIf(has('python3', { mustHave: true }))(
    'the partner’s sample reconciles rows by the UTR of their payout, and adds up lines of one UTR',
    async ({ expect }) => {
      const { service, url, partnerKey: key } = await startDemoService()
      await service.db.query('delete from settlements')
      // As `ops settlements pull` stores them: two payouts, one of them less a refund, and one that has not arrived.
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
        'PAYOUT2  listed 300.00 (SUCCESS)  arrived 290.00\nPAYOUT3  listed 3.00 (SUCCESS)  arrived 0.00\npaid out 553.30\n',
      )
    },
  )

  it.runIf(has('curl', { mustHave: true }))(
    'the partner’s curl sample fetches a month whole, even if the list breaks off once',
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
    there: has('curl', { mustHave: true }) && has('openssl', { mustHave: true }),
  },
  {
    name: 'Node.js',
    file: 'notify.mjs',
    command: [process.execPath, 'notify.mjs'],
    text: blockWith('acquirer', 'js'),
    there: true,
  },
  {
    name: 'Python',
    file: 'notify.py',
    command: ['python3', 'notify.py'],
    text: blockWith('acquirer', 'python'),
    there: has('python3', { mustHave: true }),
  },
]

describe.concurrent.each(NOTIFIERS)("the acquirer's notification in $name", { timeout: TIMEOUT_MS }, (sample) => {
  const { file, text, command } = sample

  it.runIf(sample.there)('the sample’s notification pays an order; a wrong secret is reported', async ({ expect }) => {
    const demo = await startDemoService({ signedNow: true })
    const { service, url: baseUrl, merchantKey: key } = demo
    const fields = intentFields('DEMO_MERCHANT', { order_id: '1001' })
    const { orderId } = (await post(service.app, CREATE, fields, key)).body.data
    const send = (acquirerSecret: string) =>
      runIn({ [file]: text }, [...command, orderId, '523504870499'], { baseUrl, key, acquirerSecret })

    const refused = await send('not-the-secret-of-anybody')
    expect(refused.stdout).toContain('Send X-Signature')
    const { code, stdout, stderr } = await send(ACQUIRER_SECRETS[0] as string)
    expect(code, stderr).toBe(0)
    // Or the next prompt of a terminal stands behind the answer.
    expect(stdout).toMatch(/\n$/)
    expect(JSON.parse(stdout)).toEqual(JSON.parse(blockWith('acquirer', 'json')))
    const asked = await post(
      service.app,
      '/v1/payments/checkPaymentStatus',
      { mid: fields.mid as string, order_id: '1001' },
      key,
    )
    expect(asked.body).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: '523504870499' } })
  })
})
