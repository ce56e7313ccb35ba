import { expect } from 'vitest'
import { html } from '../../../src/platform/html.ts'
import type { CallFault } from '../../support/bank-faults.ts'
import { decodePng } from '../../support/decode-png.ts'
import { newMerchant, unique } from '../../support/service.ts'
import { until } from '../../support/wait.ts'
import { type Case, ENDS_BY_ITSELF, OURS, type Stage } from './driver.ts'
import { bankOf, cancel, count, create, gate, newOrder, recorded, statusOf } from './orders.ts'

/** Sends create requests that the bank has processed but the service has not stored yet. */
async function heldCreates(stage: Stage, of: Parameters<typeof create>[1], times: number, headers = {}) {
  const bank = bankOf(stage)
  const held = gate()
  bank.nextFaults[bank.calls.link] = Array.from({ length: times }, () => ({ until: held.opens }))
  const known = bank.countOf(bank.calls.link)
  const order_id = unique('order')
  const responses = Promise.all(Array.from({ length: times }, () => create(stage, of, { order_id }, headers)))
  await until('all links are created', () => bank.countOf(bank.calls.link) === known + times, { pollMs: 1 })
  return { responses, created: bank.created().slice(-times), open: held.open }
}

const isStoredOnce = async (stage: Stage, headers: Record<string, string>, statuses: number[]) => {
  const bank = bankOf(stage)
  const { responses, created, open } = await heldCreates(stage, await stage.newMerchant(), 5, headers)
  open()
  const reported = await responses
  expect(reported.map(({ status }) => status).sort()).toEqual(statuses)
  const [stored, ...others] = new Set(reported.flatMap(({ body }) => body.data?.orderId ?? []))
  expect(others).toEqual([])
  const losers = created.filter((orderId) => orderId !== stored)
  expect(losers).toHaveLength(4)
  if (!bank.calls.close) return
  await until('the unused links are closed', () => losers.every((orderId) => !bank.isOpen(orderId)))
  expect(bank.isOpen(stored)).toBe(true)
}

/** Payment links of a bank that works. */
export const LINKS: Case[] = [
  {
    name: 'passes on the acquirer’s link unchanged: with all four prefixes, on the pay page and in the QR',
    not: OURS,
    async run(stage) {
      const created = await create(stage, await stage.newMerchant(), { note: 'Order 1001' })
      const { intent, phonepe, paytm, gpay, orderId } = created.body.data
      const link = bankOf(stage).linkOf(orderId)
      const query = link.slice('upi://pay?'.length)
      expect({ intent, phonepe, paytm, gpay }).toEqual({
        intent: link,
        phonepe: `phonepe://pay?${query}`,
        paytm: `paytmmp://pay?${query}`,
        gpay: `tez://upi/pay?${query}`,
      })
      const qr = await stage.service.app.inject({ url: `/pay/${orderId}/qr.png` })
      expect(decodePng(qr.rawPayload)).toBe(link)
      const page = await stage.service.app.inject({ url: `/pay/${orderId}` })
      expect(page.payload).toContain(`upi://pay?${String(html`${query}`)}`)
    },
  },
  ...['1', '3.00', '10', '588.82', '588.80', '99999'].map(
    (amount): Case => ({
      name: `accepts a link of ₹${amount} in any decimal format of the amount`,
      not: OURS,
      async run(stage) {
        const of = await stage.newMerchant()
        await stage.service.db.query(`update merchants set input = 'shop' where mid = $1`, [of.mid])
        for (let i = 0; i < 3; i++) expect((await create(stage, of, { amount })).status).toBe(200)
      },
    }),
  ),
  {
    name: 'does not call the acquirer again for a repeated order_id or Idempotency-Key',
    not: OURS,
    async run(stage) {
      const of = await stage.newMerchant()
      const order_id = unique('order')
      const headers = { 'idempotency-key': unique('key') }
      const first = await create(stage, of, { order_id }, headers)
      const calls = bankOf(stage).requests.length
      expect((await create(stage, of, { order_id }, headers)).body).toEqual(first.body)
      expect((await create(stage, of, { order_id })).status).toBe(409)
      expect((await create(stage, of, { order_id, amount: '201' }, headers)).status).toBe(422)
      expect(bankOf(stage).requests.length).toBe(calls)
    },
  },
  {
    name: 'stores one of 5 concurrent creates with the same order_id and closes the unused links',
    not: OURS,
    run: (stage) => isStoredOnce(stage, {}, [200, 409, 409, 409, 409]),
  },
  {
    name: 'stores one of 5 concurrent creates with the same Idempotency-Key and closes the unused links',
    not: OURS,
    run: (stage) => isStoredOnce(stage, { 'idempotency-key': unique('key') }, [200, 200, 200, 200, 200]),
  },
  {
    name: 'creates one order at the acquirer when a proxy repeats the request',
    not: {
      ...OURS,
      setu: 'it does not recognise a repeated request',
      phonepe: 'it returns a link only once, so a repeat is 503',
    },
    async run(stage) {
      const [bank, of] = [bankOf(stage), await stage.newMerchant()]
      const known = bank.created().length
      bank.nextFaults[bank.preparing[0] as string] = ['sent twice']
      const { orderId } = await newOrder(stage, of)
      expect(bank.created().slice(known)).toEqual([orderId])
    },
  },
  {
    name: 'closes a payment link when PostgreSQL rejects the intent, because no customer will see the link',
    not: { ...OURS, ...ENDS_BY_ITSELF },
    async run(stage) {
      const [bank, of] = [bankOf(stage), await stage.newMerchant()]
      await stage.service.db.query(
        "alter table payment_intents add constraint refused_by_a_test check (note <> 'rejected by PostgreSQL') not valid",
      )
      const known = bank.created().length
      const responses = await Promise.all([1, 2, 3].map(() => create(stage, of, { note: 'rejected by PostgreSQL' })))
      const { orderId } = await newOrder(stage, of)
      await stage.service.db.query('alter table payment_intents drop constraint refused_by_a_test')
      expect(responses.map(({ status }) => status)).toEqual([500, 500, 500])
      const rejected = bank.created().slice(known, known + 3)
      await until('the links of the rejected intents are closed', () => rejected.every((one) => !bank.isOpen(one)))
      expect(bank.isOpen(orderId)).toBe(true)
    },
  },
  {
    name: 'closes a payment link once when the merchant cancels the order',
    not: { ...OURS, ...ENDS_BY_ITSELF },
    async run(stage) {
      const [bank, order] = [bankOf(stage), await newOrder(stage)]
      const before = bank.countOf(bank.calls.close as string)
      for (let i = 0; i < 3; i++) expect((await cancel(stage, order)).msg).toBe('Payment cancelled')
      await until('the link is closed', () => !bank.isOpen(order.orderId))
      expect(bank.countOf(bank.calls.close as string) - before).toBe(1)
    },
  },
  {
    name: 'records a payment through a link that is being closed as a late payment',
    not: { ...OURS, ...ENDS_BY_ITSELF },
    async run(stage) {
      const [bank, order] = [bankOf(stage), await newOrder(stage)]
      await bank.pay(order.orderId, { outcome: 'pending' })
      const held = gate()
      bank.nextFaults[bank.calls.close as string] = [{ until: held.opens }]
      const before = bank.countOf(bank.calls.close as string)
      expect((await cancel(stage, order)).txnStatus).toBe('FAIL')
      await until('the link is being closed', () => bank.countOf(bank.calls.close as string) > before)
      const body = stage.notification(order.orderId, { utr: 'RACED1' })
      expect((await stage.send(body)).status).toBe(200)
      held.open()
      expect(await statusOf(stage, order)).toBe('SUCCESS')
      expect(await recorded(stage, order)).toMatchObject({
        successes: [['RACED1', 'notification']],
        exceptions: [['late payment', 'SUCCESS', 'RACED1', '200.00']],
      })
    },
  },
  {
    name: 'limits a hanging acquirer to 64 concurrent calls and rejects the next, without slowing merchants of `direct`',
    not: OURS,
    async run(stage) {
      const bank = bankOf(stage)
      const of = await stage.newMerchant()
      const ofDirect = await newMerchant(stage.service.db)
      const held = gate()
      bank.faults = [{ call: bank.calls.link, fault: { until: held.opens }, chance: 1 }]
      const before = bank.countOf(bank.calls.link)
      const hanging = Array.from({ length: 64 }, () => create(stage, of))
      await until('64 calls are hanging', () => bank.countOf(bank.calls.link) - before === 64)
      expect((await create(stage, of)).status).toBe(503)
      expect(bank.countOf(bank.calls.link) - before).toBe(64)
      for (let i = 0; i < 20; i++) expect((await create(stage, ofDirect)).status).toBe(200)
      bank.faults = []
      held.open()
      expect(new Set((await Promise.all(hanging)).map(({ status }) => status))).toEqual(new Set([200]))
      expect((await create(stage, of)).status).toBe(200)
    },
  },
]

type Outcome = 'unavailable' | 'bad answer' | 'refused'

const OF_ANY_CALL: [Outcome, CallFault[]][] = [
  [
    'unavailable',
    [
      ...[500, 502, 503, 429, 408].map((status) => ({ status })),
      'no response',
      'half a body',
      'redirect',
      'interim response',
    ],
  ],
  ['bad answer', ['huge body', 'no JSON', 'no fields']],
  ['refused', [{ status: 400 }, { status: 403 }, { status: 404 }]],
]

const OF_LINKS: CallFault[] = [
  'wrong payee',
  'two payees',
  'two payees, one in capitals',
  'two payees, one encoded',
  'two amounts, one in capitals',
  'wrong amount',
  'no amount',
  'lower minimum',
  'wrong currency',
  'no tr',
  'other scheme',
]

/** Faults of a call that creates a link, with or without an effect at the bank. */
export const FAULTS: readonly CallFault[] = [...OF_ANY_CALL.flatMap(([, faults]) => faults), ...OF_LINKS]

function rejectedLink(
  outcome: Outcome,
  fault: CallFault | 'away',
  which: 'first' | 'last',
  not: Case['not'] = OURS,
): Case {
  return {
    name: `returns 503 and stores nothing when the ${which} acquirer call of a create meets ${JSON.stringify(fault)}, logged as ${outcome}`,
    not,
    async run(stage) {
      const { service, name } = stage
      const [bank, of] = [bankOf(stage), await stage.newMerchant()]
      const sample = `acquirer_calls_total{acquirer="${name}",account="default",call="createLink",outcome="${outcome}"} `
      const counted = async () => Number((await service.metrics()).split(sample)[1]?.split('\n')[0] ?? 0)
      const [stored, paymentLink, before] = [
        await count(service, 'payment_intents'),
        await count(service, 'acquirer_intents'),
        await counted(),
      ]
      const order_id = unique('order')
      service.log.length = 0
      if (fault === 'away') await bank.goAway()
      else bank.nextFaults[bank.preparing.at(which === 'first' ? 0 : -1) as string] = [fault]
      const response = await create(stage, of, { order_id })
      if (fault === 'away') await bank.comeBack()
      expect([response.status, response.body.data]).toEqual([503, undefined])
      expect(response.headers['retry-after']).toBeDefined()
      expect([await count(service, 'payment_intents'), await count(service, 'acquirer_intents')]).toEqual([
        stored,
        paymentLink,
      ])
      const lines = service.log.map((line) => JSON.parse(line)).filter(({ acquirer }) => acquirer === name)
      const level = outcome === 'unavailable' ? 40 : 50
      expect(lines).toMatchObject([{ level, acquirer: name, call: 'createLink', outcome }])
      expect(await counted()).toBe(before + 1)
      await until('the next create succeeds', async () => (await create(stage, of, { order_id })).status === 200)
    },
  }
}

const ONE_CALL = { setu: 'its last call is its first', phonepe: 'its last call is its first' }

/** Create requests while the bank fails. */
export const LINK_FAULTS: Case[] = [
  rejectedLink('unavailable', 'away', 'first'),
  ...OF_ANY_CALL.flatMap(([outcome, faults]) => faults.map((fault) => rejectedLink(outcome, fault, 'first'))),
  rejectedLink('bad answer', 'another order', 'first', {
    ...OURS,
    phonepe: 'its response does not name the service’s order',
  }),
  ...OF_LINKS.map((fault) => rejectedLink('bad answer', fault, 'last')),
  ...OF_ANY_CALL.flatMap(([outcome, faults]) =>
    faults.map((fault) => rejectedLink(outcome, fault, 'last', { ...OURS, ...ONE_CALL })),
  ),
]

/** Creates at a bank slower than the service's time limit, which is short here. */
export const LINK_HANGS: Case[] = [
  rejectedLink('unavailable', { afterMs: 350 }, 'first'),
  rejectedLink('unavailable', { afterMs: 350 }, 'last', { ...OURS, ...ONE_CALL }),
]
