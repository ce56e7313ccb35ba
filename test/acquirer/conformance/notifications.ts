import { expect } from 'vitest'
import { utrOfId } from '../../../src/platform/fields.ts'
import { newUtr } from '../../support/acquirer.ts'
import { CUSTOMER_VPA } from '../../support/fake-bank.ts'
import { changeAt, type Json, pathsIn } from '../../support/json-changes.ts'
import { dump } from '../../support/stored-rows.ts'
import { until } from '../../support/wait.ts'
import { type Case, ONLY_STATUS_CHECKS, OURS, type Reported, type Stage } from './driver.ts'
import { startInstance } from './instance.ts'
import { bankOf, create, gate, NOTHING, newOrder, type Order, recorded, statusOf } from './orders.ts'

const report = async (stage: Stage, orderId: string, reported?: Reported) =>
  (await stage.send(stage.notification(orderId, reported))).status

const exceptionsOf = async (stage: Stage, order: Order) => (await recorded(stage, order)).exceptions

/**
 * Seconds after creation from which the merchant receives the final status FAIL: the expiry plus the 10-minute grace
 * period.
 */
const OVER_SECONDS = 25 * 60

/** A signed notification with an invalid body, which must be rejected with `status` and change nothing. */
const rejected = (
  name: string,
  status: number,
  change: (body: string, stage: Stage) => string,
  not?: Case['not'],
): Case => ({
  ...(not && { not }),
  name: `rejects a signed notification ${name} with ${status} and changes nothing`,
  async run(stage) {
    const order = await newOrder(stage)
    const response = await stage.send(change(stage.notification(order.orderId), stage))
    expect([response.status, response.body.status]).toEqual([status, false])
    expect(await recorded(stage, order)).toEqual(NOTHING)
  },
})

const withAmount = (body: string, { amountField }: Stage, amount: string) =>
  body.replace(new RegExp(`"${amountField}":[\\d.]+`), `"${amountField}":${amount}`)

/** Returns the rows and logged lines with customer data that the fake of a bank sends. */
async function customerDataIn({ service: { db, log } }: Stage, errors: object[] = []): Promise<string[]> {
  const lines = [...(await dump(db)).split('\n'), ...log, ...errors.map((error) => JSON.stringify(error))]
  expect(lines).toEqual(expect.arrayContaining(['payment_intents', 'payments', 'payment_exceptions']))
  return lines.filter((line) => /made\.up|SAVINGS|AXL1234|XXXXXXX6024|9000012345/.test(line))
}

/** Values of other types. An object with fields named like methods must not be converted to text. */
const OTHER_TYPES: readonly ((value: Json) => Json)[] = [
  () => ({ toString: 7, valueOf: 7, toJSON: 7 }),
  (value) => [value],
]

export const NOTIFICATIONS: Case[] = [
  {
    name: 'marks the order as paid, with the UTR and the time of the payment',
    async run(stage) {
      const order = await newOrder(stage)
      const [utr, paidAt] = [newUtr(), new Date('2026-03-31T18:29:00Z')]
      expect(await report(stage, order.orderId, { utr, paidAt })).toBe(200)
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      const { rows } = await stage.service.db.query('select utr, source, paid_at from payments where order_id = $1', [
        order.orderId,
      ])
      expect(rows).toEqual([{ utr, source: stage.toldBy, paid_at: paidAt }])
    },
  },
  {
    name: 'accepts a notification at a path with a trailing slash, and verifies its signature there too',
    async run(stage) {
      const order = await newOrder(stage)
      const body = stage.notification(order.orderId)
      expect((await stage.send(body, { pathEnd: '/', secret: 'wrong' })).status).toBe(401)
      expect((await stage.send(body, { pathEnd: '/?source=bank' })).status).toBe(200)
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      expect((await stage.send(body, { pathEnd: '//' })).status).toBe(404)
    },
  },
  {
    name: 'marks an order as paid once, however often and in whatever sequence the payment is reported',
    not: { ...OURS, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const order = await newOrder(stage)
      await bankOf(stage).pay(order.orderId, { outcome: 'failed' })
      const faults = { repeated: 1, reordered: 1, forged: 1, contradicted: 1 }
      const { payment, responses } = await bankOf(stage).pay(order.orderId, { faults })
      expect(responses.at(-1)).toBe(401)
      expect(await recorded(stage, order)).toMatchObject({
        intent: ['SUCCESS', payment.rrn],
        successes: [[payment.rrn, 'notification']],
        exceptions: [['amount differs', 'SUCCESS', payment.rrn, '201.00']],
      })
    },
  },
  {
    name: 'ignores a replayed notification',
    async run(stage) {
      const order = await newOrder(stage)
      const body = stage.notification(order.orderId)
      await stage.send(body)
      const first = await recorded(stage, order)
      for (let i = 0; i < 3; i++) {
        stage.service.clock.advance(60)
        expect((await stage.send(body)).status).toBe(200)
      }
      expect(await recorded(stage, order)).toEqual(first)
    },
  },
  {
    name: 'records exactly one of 20 concurrent repeats of a notification',
    async run(stage) {
      const order = await newOrder(stage)
      const body = stage.notification(order.orderId)
      const responses = await Promise.all(Array.from({ length: 20 }, () => stage.send(body)))
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
      const { successes, exceptions } = await recorded(stage, order)
      expect([successes.length, exceptions]).toEqual([1, []])
    },
  },
  {
    name: 'leaves an order open after a failed attempt and marks it as paid by a later payment',
    not: ONLY_STATUS_CHECKS,
    async run(stage) {
      const order = await newOrder(stage)
      expect(await report(stage, order.orderId, { status: 'FAIL', utr: 'ATT1' })).toBe(200)
      expect(await statusOf(stage, order)).toBe('PENDING')
      expect(await report(stage, order.orderId, { utr: 'PAID1' })).toBe(200)
      const paid = { intent: ['SUCCESS', 'PAID1'], attempts: [['ATT1']], exceptions: [] }
      expect(await recorded(stage, order)).toMatchObject(paid)
    },
  },
  {
    name: 'records a failed attempt and a payment with an invalid UTR, the payment by the acquirer’s id',
    not: { ...ONLY_STATUS_CHECKS, direct: 'in the service’s own format the field is omitted' },
    async run(stage) {
      const order = await newOrder(stage)
      const failed = stage.notification(order.orderId, { status: 'FAIL', utr: 'N/A' })
      for (let i = 0; i < 2; i++) expect((await stage.send(failed)).status).toBe(200)
      expect(await recorded(stage, order)).toEqual({ ...NOTHING, intent: ['FAIL', null], attempts: [[null]] })
      for (let i = 0; i < 2; i++) expect(await report(stage, order.orderId, { utr: 'N/A' })).toBe(200)
      const { intent, exceptions } = await recorded(stage, order)
      expect([intent?.[0], exceptions]).toEqual(['SUCCESS', []])
      const { rows } = await stage.service.db.query(
        'select acquirer_payment_id as id, utr, bank_reference from payments where order_id = $1',
        [order.orderId],
      )
      const id = utrOfId(rows[0].id)
      expect(rows).toEqual([{ id: rows[0].id, utr: id, bank_reference: null }])
      expect(intent?.[1]).toBe(id)
    },
  },
  {
    name: 'leaves the order paid and stores an exception when a failure is reported after a success',
    not: ONLY_STATUS_CHECKS,
    async run(stage) {
      const order = await newOrder(stage)
      await report(stage, order.orderId, { utr: 'KEPT1' })
      for (let i = 0; i < 2; i++) expect(await report(stage, order.orderId, { status: 'FAIL', utr: 'KEPT1' })).toBe(200)
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      expect(await exceptionsOf(stage, order)).toEqual([['failure after success', 'FAIL', 'KEPT1', '200.00']])
    },
  },
  {
    name: 'stores a duplicate payment once, however often it is reported',
    not: ONLY_STATUS_CHECKS,
    async run(stage) {
      const order = await newOrder(stage)
      await report(stage, order.orderId, { utr: 'DOUBLE1' })
      for (let i = 0; i < 3; i++) expect(await report(stage, order.orderId, { utr: 'DOUBLE2' })).toBe(200)
      expect(await recorded(stage, order)).toMatchObject({
        intent: ['SUCCESS', 'DOUBLE1'],
        exceptions: [['double payment', 'SUCCESS', 'DOUBLE2', '200.00']],
      })
    },
  },
  {
    name: 'records a payment after the merchant received FAIL, and stores it as a late payment',
    async run(stage) {
      const order = await newOrder(stage)
      stage.service.clock.advance(OVER_SECONDS)
      expect(await statusOf(stage, order)).toBe('FAIL')
      for (let i = 0; i < 2; i++) expect(await report(stage, order.orderId, { utr: 'LATE1' })).toBe(200)
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      expect(await exceptionsOf(stage, order)).toEqual([['late payment', 'SUCCESS', 'LATE1', '200.00']])
    },
  },
  ...[19_900, 20_100, 20_001, 2_000_000].map(
    (amount): Case => ({
      name: `rejects a notification of ${amount} paise for an order of 20000 paise with 409 and stores it once`,
      not: ONLY_STATUS_CHECKS,
      async run(stage) {
        const order = await newOrder(stage)
        for (let i = 0; i < 2; i++) expect(await report(stage, order.orderId, { amount, utr: 'OTHER1' })).toBe(409)
        const exceptions = [['amount differs', 'SUCCESS', 'OTHER1', (amount / 100).toFixed(2)]]
        expect(await recorded(stage, order)).toEqual({ ...NOTHING, exceptions })
      },
    }),
  ),
  {
    name: 'records a payment whose UTR belongs to another order by the acquirer’s id, and stores an exception',
    not: { ...ONLY_STATUS_CHECKS, direct: 'the service’s own format has no payment id' },
    async run(stage) {
      const of = await stage.newMerchant()
      const [first, second] = [await newOrder(stage, of), await newOrder(stage, of)]
      expect(await report(stage, first.orderId, { utr: '1234567890' })).toBe(200)
      const body = stage.notification(second.orderId, { utr: '1234567890' })
      for (let i = 0; i < 2; i++) expect((await stage.send(body)).status).toBe(200)
      expect(await statusOf(stage, second)).toBe('SUCCESS')
      const { exceptions } = await recorded(stage, second)
      expect(exceptions).toEqual([['UTR of another order', 'SUCCESS', '1234567890', '200.00']])
    },
  },
  {
    name: 'rejects a notification whose UTR belongs to another order of the merchant with 409 and stores it',
    not: {
      ...ONLY_STATUS_CHECKS,
      setu: 'the acquirer’s payment id identifies the payment',
      cashfree: 'the acquirer’s payment id identifies the payment',
      razorpay: 'the acquirer’s payment id identifies the payment',
    },
    async run(stage) {
      const of = await stage.newMerchant()
      const [first, second] = [await newOrder(stage, of), await newOrder(stage, of)]
      expect(await report(stage, first.orderId, { utr: 'USED1' })).toBe(200)
      expect(await report(stage, second.orderId, { utr: 'used1' })).toBe(409)
      const exceptions = [['UTR of another order', 'SUCCESS', 'USED1', '200.00']]
      expect(await recorded(stage, second)).toEqual({ ...NOTHING, exceptions })
    },
  },
  {
    name: 'rejects a notification of an unknown order, or of another acquirer’s order, with 404',
    async run(stage) {
      const [order, stranger] = [await newOrder(stage), await newOrder(stage, await stage.newStranger())]
      for (const about of ['a'.repeat(32), stranger.orderId])
        expect(await report(stage, order.orderId, { about })).toBe(404)
      expect(await recorded(stage, order)).toEqual(NOTHING)
      expect((await recorded(stage, stranger)).intent).toEqual(NOTHING.intent)
    },
  },
  {
    name: 'accepts a notification signed with any of the configured secrets',
    async run(stage) {
      for (const secret of stage.secrets) {
        const order = await newOrder(stage)
        expect((await stage.send(stage.notification(order.orderId), { secret })).status).toBe(200)
        expect(await statusOf(stage, order)).toBe('SUCCESS')
      }
    },
  },
  {
    name: 'rejects a notification without a valid signature with 401 and changes nothing',
    async run(stage) {
      const order = await newOrder(stage)
      const body = stage.notification(order.orderId)
      for (const signature of [undefined, '', 'AAAA', 'x'.repeat(44), 'x'.repeat(10_000)]) {
        expect((await stage.sendSigned(body, signature)).status).toBe(401)
      }
      const reserialised = JSON.stringify(JSON.parse(body), null, 1)
      for (const as of [{ secret: 'of-somebody-else' }, { signed: `${body} ` }, { signed: reserialised }]) {
        expect((await stage.send(body, as)).status).toBe(401)
      }
      expect((await stage.send(reserialised, { signed: body })).status).toBe(401)
      expect(await recorded(stage, order)).toEqual(NOTHING)
    },
  },
  rejected(
    'with its amount twice',
    400,
    (body, { amountField }) => body.replace(`"${amountField}"`, `"${amountField}":200,"${amountField}"`),
    ONLY_STATUS_CHECKS,
  ),
  rejected(
    'with an amount that a float takes for the right one',
    400,
    (body, stage) =>
      withAmount(
        body,
        stage,
        ['setu', 'razorpay'].includes(stage.name) ? '19999.99999999999999999' : '199.99999999999999999',
      ),
    ONLY_STATUS_CHECKS,
  ),
  rejected(
    'with an amount of three decimals',
    400,
    (body, stage) => withAmount(body, stage, '200.001'),
    ONLY_STATUS_CHECKS,
  ),
  rejected('with a negative amount', 400, (body, stage) => withAmount(body, stage, '-200'), ONLY_STATUS_CHECKS),
  rejected(
    'with an amount that is no number',
    400,
    (body, stage) => withAmount(body, stage, '"much"'),
    ONLY_STATUS_CHECKS,
  ),
  {
    name: 'never returns 5xx to a signed notification, whatever the JSON type of a value',
    async run(stage) {
      const order = await newOrder(stage)
      const body = JSON.parse(stage.notification(order.orderId)) as Json
      const failures: unknown[] = []
      // PhonePe also sends an older `type`, which the service does not read.
      const events = 'event' in Object(body) ? ['event'] : ['eventType', 'type', 'payment_status']
      for (const path of pathsIn(body)) {
        for (const become of OTHER_TYPES) {
          const changed = structuredClone(body)
          changeAt(changed, path, become)
          const sent = JSON.stringify(changed)
          const { status } = await stage.send(sent)
          const isEvent = events.includes(path.join('.').replace('data.payment.', ''))
          if (status >= 500 || (isEvent && status !== 400)) failures.push([status, sent])
        }
      }
      expect(failures).toEqual([])
    },
  },
  rejected('with a truncated body', 400, (body) => body.slice(0, body.length / 2)),
  rejected('that is a list', 400, (body) => `[${body}]`),
  rejected('of 17 kB', 413, (body) => body + ' '.repeat(17_000)),
  {
    name: 'stores an unreadable signed notification without customer data',
    not: ONLY_STATUS_CHECKS,
    async run(stage) {
      const { orderId } = await newOrder(stage)
      await stage.send(withAmount(stage.notification(orderId), stage, '"much"'))
      const { rows } = await stage.service.db.query("select body from payment_exceptions where kind = 'unreadable'")
      const saved = rows.map(({ body }) => body).filter((text) => text.includes(orderId))
      expect(saved).toHaveLength(1)
      expect(saved[0]).not.toContain('made.up')
    },
  },
  {
    name: 'returns 200 and changes nothing for an event that is neither a success nor a failure, whatever its fields',
    not: { direct: 'every notification in the service’s own format has a final status' },
    async run(stage) {
      const order = await newOrder(stage)
      for (const body of stage.idle(order.orderId)) expect((await stage.send(body)).status).toBe(200)
      expect(await recorded(stage, order)).toEqual(NOTHING)
    },
  },
  {
    name: 'leaves no customer data of a notification in the database or the log',
    not: { direct: 'the service’s own format has no customer data' },
    async run(stage) {
      const order = await newOrder(stage)
      expect(stage.notification((await newOrder(stage)).orderId)).toContain(CUSTOMER_VPA)
      await bankOf(stage).pay(order.orderId, { outcome: 'failed' })
      await bankOf(stage).pay(order.orderId, { faults: { contradicted: 1, repeated: 1, forged: 1, reordered: 1 } })
      await report(stage, order.orderId, { about: 'a'.repeat(32) })
      await stage.send(withAmount(stage.notification(order.orderId), stage, '"much"'))
      expect(await customerDataIn(stage)).toEqual([])
    },
  },
  {
    name: 'leaves no customer data of a status check in the database or the log, without a notification',
    not: OURS,
    async run(stage) {
      const { checkStatus, errors } = startInstance(stage)
      for (const changes of [{ status: 'odd' }, { status: 'failed' }, { rrn: '' }, { amount: 100 }, {}]) {
        const order = await newOrder(stage)
        const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
        Object.assign(payment, changes)
        await checkStatus(order.orderId).catch(({ message, facts }) => errors.push({ message, facts }))
        if (Object.keys(changes).length === 0) expect(await statusOf(stage, order)).toBe('SUCCESS')
      }
      expect(await customerDataIn(stage, errors)).toEqual([])
    },
  },
  {
    name: 'rejects a notification that precedes its stored order with 404 and accepts it when it is sent again',
    not: { ...OURS, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const [bank, of] = [bankOf(stage), await stage.newMerchant()]
      const stored = gate()
      bank.nextFaults[bank.calls.link] = [{ until: stored.opens }]
      const known = bank.countOf(bank.calls.link)
      const creating = create(stage, of)
      await until('the bank has created the link', () => bank.countOf(bank.calls.link) > known, { pollMs: 1 })
      const orderId = bank.created().at(-1) as string
      const reported = [{ status: 'FAIL', utr: 'EARLY1' } as const, { utr: 'EARLY2' }].map((one) =>
        stage.notification(orderId, one),
      )
      for (const body of reported) expect((await stage.send(body)).status).toBe(404)
      stored.open()
      expect((await creating).body.data.orderId).toBe(orderId)
      for (const body of reported) expect((await stage.send(body)).status).toBe(200)
      const end = { intent: ['SUCCESS', 'EARLY2'], attempts: [['EARLY1']] }
      expect(await recorded(stage, { orderId, of })).toMatchObject(end)
    },
  },
]
