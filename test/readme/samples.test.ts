import { Readable } from 'node:stream'
import { describe, it } from 'vitest'
import { importSettlements } from '../../src/settlements/import.ts'
import { type DemoService, startDemoService } from './demo-service.ts'
import { has, runIn } from './interpreters.ts'
import { blockWith, MERCHANT, PARTNER } from './readme.ts'

type Sample = { name: string; file: string; command: [string, ...string[]]; text: string; there: boolean }

const SAMPLES: Sample[] = [
  {
    name: 'curl',
    file: 'first.sh',
    command: ['sh', 'first.sh'],
    text: blockWith(MERCHANT, 'sh', 'call createOrderRequest'),
    there: has('curl', { mustHave: true }),
  },
  {
    name: 'Node.js',
    file: 'first.mjs',
    command: [process.execPath, 'first.mjs'],
    text: blockWith(MERCHANT, 'js'),
    there: true,
  },
  {
    name: 'Python',
    file: 'first.py',
    command: ['python3', 'first.py'],
    text: blockWith(MERCHANT, 'python'),
    there: has('python3', { mustHave: true }),
  },
  {
    name: 'PHP',
    file: 'first.php',
    command: ['php', 'first.php'],
    text: blockWith(MERCHANT, 'php'),
    there: has('php', { mustHave: true }),
  },
  {
    name: 'Java',
    file: 'First.java',
    command: ['java', 'First.java'],
    text: blockWith(MERCHANT, 'java'),
    // Too large to be installed for one sample.
    there: has('java', { mustHave: false }),
  },
]

const TIMEOUT_MS = 120_000

const SHIPS = /^Ship: paid, UTR \d{12}$|"txnStatus":"SUCCESS"/m
const DOES_NOT_SHIP = /^Do not ship: Payment failed$|"txnStatus":"FAIL"/m
const SENDS_TO = /^(?:Send the customer to |.*"payment_url":")(http:\/\/127\.0\.0\.1:\d+\/pay\/[0-9a-f]{32})\b/m

const orders = async ({ service }: DemoService) =>
  (await service.db.query('select order_id, idempotency_key from payment_intents')).rows

// Together, since most of their time is the pauses of the samples.
describe.concurrent.each(SAMPLES)("the merchant's first payment in $name", { timeout: TIMEOUT_MS }, (sample) => {
  const { file, text, command } = sample
  const start = (demo: DemoService, key = demo.merchantKey) =>
    runIn({ [file]: text }, command, { baseUrl: demo.url, key })

  it.runIf(sample.there)(
    'is taken once, although its first attempt fails, and answers are lost, broken off or refused for the moment',
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

  it.runIf(sample.there)('that failed is not shipped', async ({ expect }) => {
    const demo = await startDemoService({ customer: ['FAIL', 'leaves'] })
    const { code, stdout } = await start(demo)
    expect(code).toBe(0)
    expect(stdout).toMatch(DOES_NOT_SHIP)
    expect(stdout).not.toMatch(SHIPS)
  })

  it.runIf(sample.there)('that is refused is told, and not asked for again', async ({ expect }) => {
    const demo = await startDemoService()
    const { code, stdout, stderr } = await start(demo, { ...demo.merchantKey, secretKey: 'wrong' })
    expect(code).toBe(1)
    expect(stdout + stderr).toContain('Send valid credentials')
    expect([...demo.calls]).toEqual([['createOrderRequest', 1]])
    expect(await orders(demo)).toEqual([])
  })
})

/** The month that the README's figures come from, and the moments next to it, which belong to other months of India. */
const SETTLEMENTS = `mid,amount,utr,bank_reference_number,status,initiation_date
DEMO_MERCHANT,11.00,523504870400,BRN0000,SUCCESS,2026-10-31 23:59:59
DEMO_MERCHANT,1000.00,523504870405,BRN0001,SUCCESS,2026-11-01 00:00:00
DEMO_MERCHANT,450.50,523504870406,BRN0002,SUCCESS,2026-11-02 10:00:00
DEMO_MERCHANT,320.00,523504870407,BRN0003,PENDING,2026-11-03 10:00:00
DEMO_MERCHANT,87500.00,523504870409,BRN0004,SUCCESS,2026-11-30 23:59:59
DEMO_MERCHANT,12.00,523504870410,BRN0005,SUCCESS,2026-12-01 00:00:00
`

async function startWithSettlements() {
  const demo = await startDemoService({ faults: { fetchSettlementList: ['half', 'unavailable'] } })
  await importSettlements(demo.service.db, Readable.from([SETTLEMENTS]), { now: new Date() })
  return demo
}

describe.concurrent("the partner's month", { timeout: TIMEOUT_MS }, () => {
  it.runIf(has('python3', { mustHave: true }))(
    'is reconciled in Python to the very lines that the README shows, although the list broke off once',
    async ({ expect }) => {
      const demo = await startWithSettlements()
      const files = {
        'reconcile.py': blockWith(PARTNER, 'python'),
        'books.csv': blockWith(PARTNER, 'csv'),
      }
      const credentials = { baseUrl: demo.url, key: demo.partnerKey }
      const command = ['python3', 'reconcile.py', '2026-11', 'books.csv'] as const
      const { code, stdout, stderr } = await runIn(files, command, credentials)
      expect(code, stderr).toBe(0)
      expect(stdout).toBe(blockWith(PARTNER, 'text'))
      expect(demo.calls.get('fetchSettlementList')).toBe(3)

      const wrongKey = { ...demo.partnerKey, secretKey: 'wrong' }
      const refused = await runIn(files, command, { ...credentials, key: wrongKey })
      expect(refused.code).toBe(1)
      expect(refused.stdout).toBe('')
      expect(refused.stderr).toContain('"statusCode":401')
    },
  )

  it.runIf(has('curl', { mustHave: true }))(
    'is fetched whole by curl, although the list broke off once',
    async ({ expect }) => {
      const demo = await startWithSettlements()
      const files = { 'month.sh': `${blockWith(PARTNER, 'sh', 'november.json')}cat november.json` }
      const { code, stdout } = await runIn(files, ['sh', 'month.sh'], { baseUrl: demo.url, key: demo.partnerKey })
      expect(code).toBe(0)
      expect(JSON.parse(stdout).data.map(({ UTR }: { UTR: string }) => UTR)).toEqual([
        '523504870405',
        '523504870406',
        '523504870407',
        '523504870409',
      ])
    },
  )
})
