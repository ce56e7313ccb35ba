import { expect } from 'vitest'
import { newUtr } from '../../support/acquirer.ts'
import { type AcquirerName, type Case, ONLY_STATUS_CHECKS, OURS, type Reported, type Stage } from './driver.ts'
import { startInstance } from './instance.ts'
import { bankOf, newOrder, type Order } from './orders.ts'

/** JSON omits a symbol. */
const MISSING = Symbol('missing')
const UNKNOWN = [7, ['SAVINGS'], { toString: 7 }]

/** The acquirer's words for each instrument. A payment without an instrument in a known word has none. */
const WORDS: Record<Exclude<AcquirerName, 'direct'>, Record<string, readonly unknown[]>> = {
  setu: {
    'bank account': ['SAVINGS', 'CURRENT'],
    'credit card': ['CREDIT'],
    unknown: ['OTHERS', 'savings', 'CREDIT LINE', ...UNKNOWN],
  },
  cashfree: {
    'bank account': ['upi'],
    'credit card': ['upi_credit_card'],
    wallet: ['upi_ppi', 'upi_ppi_offline'],
    unknown: ['credit_card', 'upi_credit_line', 'UPI', ...UNKNOWN],
  },
  razorpay: {
    'bank account': ['bank_account'],
    'credit card': ['credit_card'],
    wallet: ['wallet'],
    'credit line': ['credit_line'],
    unknown: ['upi', 'debit_card', 'BANK_ACCOUNT', ...UNKNOWN],
  },
  phonepe: {
    'bank account': ['ACCOUNT'],
    'credit card': ['CREDIT_CARD'],
    wallet: ['WALLET'],
    unknown: ['DEBIT_CARD', 'NET_BANKING', 'account', ...UNKNOWN],
  },
}

const wordsOf = ({ name }: Stage) =>
  Object.entries({ ...WORDS[name as keyof typeof WORDS], none: [null, '', MISSING] }).flatMap(([instrument, words]) =>
    words.map((word) => ({ word, instrument })),
  )
const wordFor = (stage: Stage, instrument: string) =>
  wordsOf(stage).find((one) => one.instrument === instrument)?.word as string
const storedAs = (instrument: string) => (['unknown', 'none'].includes(instrument) ? null : instrument)

const report = async (stage: Stage, { orderId }: Order, reported: Reported) =>
  expect((await stage.send(stage.notification(orderId, reported))).status).toBe(200)

async function instrumentsOf({ service: { db } }: Stage, { orderId }: Order) {
  const { rows } = await db.query('select instrument from payments where order_id = $1 order by kind', [orderId])
  return rows.map(({ instrument }) => instrument)
}

const unknownCount = async ({ service, name }: Stage) =>
  Number(
    new RegExp(`^payment_unknown_instruments_total{acquirer="${name}"} (\\d+)$`, 'm').exec(
      await service.metrics(),
    )?.[1],
  )

export const INSTRUMENTS: Case[] = [
  {
    name: 'stores the instrument of a notification, and a payment with any other word or value without an instrument',
    not: OURS,
    async run(stage) {
      for (const { word, instrument } of wordsOf(stage)) {
        const order = await newOrder(stage)
        await report(stage, order, { instrument: word })
        expect([word, await instrumentsOf(stage, order)]).toEqual([word, [storedAs(instrument)]])
      }
    },
  },
  {
    name: 'stores the instrument of a status check, and a payment with any other word or value without an instrument',
    not: OURS,
    async run(stage) {
      for (const { word, instrument } of wordsOf(stage)) {
        const order = await newOrder(stage)
        const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
        Object.assign(payment, { instrument: word })
        await startInstance(stage).checkStatus(order.orderId)
        expect([word, await instrumentsOf(stage, order)]).toEqual([word, [storedAs(instrument)]])
      }
    },
  },
  {
    name: 'adds the instrument of a later report once, and no role changes it',
    not: OURS,
    async run(stage) {
      const order = await newOrder(stage)
      const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
      for (const [instrument, stored] of [
        ['unknown', null],
        ['credit card', 'credit card'],
        ['bank account', 'credit card'],
        ['unknown', 'credit card'],
      ] as const) {
        Object.assign(payment, { instrument: wordFor(stage, instrument) })
        await startInstance(stage).checkStatus(order.orderId)
        expect(await instrumentsOf(stage, order)).toEqual([stored])
      }
      for (const value of ['wallet', null]) {
        const changed = stage.service.db.query('update payments set instrument = $2 where order_id = $1', [
          order.orderId,
          value,
        ])
        await expect(changed).rejects.toThrow('the instrument of a payment is set once')
      }
    },
  },
  {
    name: 'stores the instrument of a duplicate payment, and counts each new payment with an unknown word once',
    not: { ...OURS, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const order = await newOrder(stage)
      const before = await unknownCount(stage)
      const [first, second] = [newUtr(), newUtr()]
      const unknown = wordFor(stage, 'unknown')
      for (const utr of [first, first, second, second]) await report(stage, order, { utr, instrument: unknown })
      await report(stage, await newOrder(stage), { status: 'FAIL', instrument: unknown })
      await report(stage, await newOrder(stage), { instrument: null })
      expect((await unknownCount(stage)) - before).toBe(2)
      expect(await instrumentsOf(stage, order)).toEqual([null, null])
      await report(stage, order, { utr: second, instrument: wordFor(stage, 'credit card') })
      await report(stage, order, { utr: newUtr(), instrument: wordFor(stage, 'bank account') })
      expect((await instrumentsOf(stage, order)).toSorted()).toEqual(['bank account', 'credit card', null])
    },
  },
]
