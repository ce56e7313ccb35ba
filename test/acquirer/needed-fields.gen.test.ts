import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { cashfreeSettled } from '../../src/gateway/acquirers/cashfree/settlements.ts'
import type { AcquirerClient } from '../../src/gateway/acquirers/client.ts'
import { parseExact } from '../../src/gateway/acquirers/exact-json.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import type { Refund } from '../../src/gateway/refunds/refund.ts'
import { findRefund } from '../../src/gateway/refunds/store.ts'
import { newUtr } from '../support/acquirer.ts'
import { reconEvent } from '../support/cashfree-recon.ts'
import { isGenerated } from '../support/generated.ts'
import { changeAt, type Json, type Path, pathsIn } from '../support/json-changes.ts'
import { unique } from '../support/service.ts'
import { PATIENT_LIMITS } from '../support/service-with-bank.ts'
import { cashfree } from './conformance/cashfree.ts'
import { direct } from './conformance/direct.ts'
import type { AcquirerName, Driver, Stage } from './conformance/driver.ts'
import { startInstance } from './conformance/instance.ts'
import { bankOf, create, newOrder, type Order, recorded, statusOf } from './conformance/orders.ts'
import { phonepe } from './conformance/phonepe.ts'
import { razorpay } from './conformance/razorpay.ts'
import { setu } from './conformance/setu.ts'

/** The rows of the table in README.md. A message needs the fields of one alternative of each of its rows. */
const TABLE = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| acquirer'))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, acquirer, message, fields = '']) => ({
    acquirer,
    message,
    alternatives: fields.split(' or ').map((names) => [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)),
  }))

type Change = (body: Json) => Json
/** Plays a message that is changed by `change`, and returns whether the service reads it. */
type Play = (stage: Stage, change: Change) => Promise<boolean>

const LATE_SECONDS = 16 * 60

async function newLost(stage: Stage, outcome: 'success' | 'failed'): Promise<Order> {
  const order = await newOrder(stage)
  await bankOf(stage).pay(order.orderId, { outcome, faults: { lost: 1 } })
  return order
}

const isPaid = async (stage: Stage, order: Order) =>
  (await statusOf(stage, order)) === 'SUCCESS' && (await recorded(stage, order)).exceptions.length === 0

const hasAttempt = async (stage: Stage, order: Order) => {
  const { attempts, exceptions } = await recorded(stage, order)
  return attempts.length === 1 && exceptions.length === 0
}

const instances = new Map<Stage, ReturnType<typeof startInstance>>()

function instanceOf(stage: Stage) {
  const instance = instances.get(stage) ?? startInstance(stage)
  instances.set(stage, instance)
  return instance
}

async function check(stage: Stage, { orderId }: Order): Promise<void> {
  await instanceOf(stage)
    .checkStatus(orderId)
    .catch(() => undefined)
}

const login: Play = async (stage, change) => {
  const bank = bankOf(stage) as ReturnType<typeof bankOf> & { forgetTokens: () => void }
  bank.nextFaults.logIn = [{ change }]
  const client = (await startInstance(stage).clientOf(stage.name)) as AcquirerClient
  return client.check().then(
    () => true,
    () => false,
  )
}

const creating =
  (call: string, isRepeated = false): Play =>
  async (stage, change) => {
    const bank = bankOf(stage)
    if (isRepeated) bank.nextFaults[bank.preparing[0] as string] = ['sent twice']
    bank.nextFaults[call] = [{ change }]
    return (await create(stage, await stage.newMerchant())).status === 200
  }

const closing: Play = async (stage, change) => {
  const { orderId } = await newOrder(stage)
  bankOf(stage).nextFaults.terminate = [{ change }]
  const client = (await instanceOf(stage).clientOf(stage.name)) as AcquirerClient
  return (await client.closeLink({ acquirer: '', merchantId: '', id: orderId, reference: '', link: '' })) === 'closed'
}

const checkingPaid =
  (call: string): Play =>
  async (stage, change) => {
    const order = await newLost(stage, 'success')
    bankOf(stage).nextFaults[call] = [{ change }]
    await check(stage, order)
    return isPaid(stage, order)
  }

const checkingFailed =
  (call: string): Play =>
  async (stage, change) => {
    const order = await newLost(stage, 'failed')
    stage.service.clock.advance(LATE_SECONDS)
    bankOf(stage).nextFaults[call] = [{ change }]
    await check(stage, order)
    return hasAttempt(stage, order)
  }

async function newRefund(stage: Stage, order: Order): Promise<Refund> {
  const requested = {
    mid: order.of.mid,
    orderId: order.orderId,
    refundId: unique('R'),
    amount: 20_000,
    note: 'sold out',
  }
  const created = await createRefund(
    stage.service.db,
    { ...requested, createdBy: 'merchant' },
    stage.service.clock.now(),
  )
  if ('refund' in created) return created.refund
  throw new Error(created.rejected)
}

const stored = async ({ service: { db } }: Stage, { mid, ourRefundId }: Refund) =>
  (await findRefund(db, mid, { ourRefundId })) as Refund

const bookedOf = (stage: Stage, { ourRefundId }: Refund) =>
  bankOf(stage).refunds.all.find((one) => one.ourRefundId === ourRefundId) as object

async function newPaid(stage: Stage): Promise<Order> {
  const order = await newOrder(stage)
  await bankOf(stage).pay(order.orderId)
  return order
}

/** Creates a refund that is pending at the bank. */
async function newPending(stage: Stage): Promise<Refund> {
  const refund = await newRefund(stage, await newPaid(stage))
  bankOf(stage).refunds.faults = { late: 1 }
  await instanceOf(stage).look()
  bankOf(stage).refunds.faults = {}
  return refund
}

const isRefunded = async (stage: Stage, refund: Refund) => {
  const { rowCount } = await stage.service.db.query('select from payment_exceptions where mid = $1', [refund.mid])
  return (await stored(stage, refund)).status === 'SUCCESS' && rowCount === 0
}

const refunding: Play = async (stage, change) => {
  const refund = await newRefund(stage, await newPaid(stage))
  bankOf(stage).nextFaults.refund = [{ change }]
  await instanceOf(stage).look()
  return (await stored(stage, refund)).acceptedAt !== null || isRefunded(stage, refund)
}

const checkingRefund: Play = async (stage, change) => {
  const bank = bankOf(stage)
  const refund = await newPending(stage)
  Object.assign(bookedOf(stage, refund), { status: 'success', reference: '412345678901' })
  bank.nextFaults[bank.calls.findRefund] = [{ change }]
  stage.service.clock.advance(60)
  await instanceOf(stage).look()
  return isRefunded(stage, refund)
}

/** The refund of a payment whose notification contained none of Setu's identifiers. */
const refundingUnnamed: Play = async (stage, change) => {
  const order = await newLost(stage, 'success')
  const { id: _, txnId: __, ...event } = JSON.parse(stage.notification(order.orderId, { utr: rrnOf(stage, order) }))
  if ((await stage.send(JSON.stringify(event))).status !== 200) throw new Error('the payment is not reported')
  const refund = await newRefund(stage, order)
  bankOf(stage).nextFaults.last = [{ change }]
  await instanceOf(stage).look()
  return isRefunded(stage, refund)
}

const rrnOf = (stage: Stage, { orderId }: Order) =>
  bankOf(stage)
    .paid()
    .find((payment) => payment.orderId === orderId)?.utr as string

/** Sends a notification, whose numbers become text where the service reads them exactly. */
async function sendChanged(stage: Stage, body: string, change: Change): Promise<boolean> {
  const parse = stage.name === 'cashfree' ? parseExact : JSON.parse
  return (await stage.send(JSON.stringify(change(parse(body) as Json)))).status === 200
}

const notifying =
  (status: 'SUCCESS' | 'FAIL'): Play =>
  async (stage, change) => {
    const order = await newOrder(stage)
    const isAccepted = await sendChanged(stage, stage.notification(order.orderId, { status }), change)
    return isAccepted && (status === 'SUCCESS' ? isPaid(stage, order) : hasAttempt(stage, order))
  }

type Encrypting = { encrypt: (event: object) => { body: string } }

const notifyingRefund: Play = async (stage, change) => {
  const refund = await newPending(stage)
  const row = Object.assign(bookedOf(stage, refund), { status: 'success', reference: '412345678901' })
  const { body } = (stage.bank as unknown as Encrypting).encrypt(bankOf(stage).refunds.eventOf(row as never))
  return (await sendChanged(stage, body, change)) && isRefunded(stage, refund)
}

const notifyingAutomaticRefund: Play = async (stage, change) => {
  const { orderId, of } = await newPaid(stage)
  const paymentId = (bankOf(stage).paid() as unknown as { id: string; orderId: string }[]).find(
    (payment) => payment.orderId === orderId,
  )?.id
  const row = { id: newUtr(), orderId, paymentId, ourRefundId: '', amount: 20_000, status: 'success', note: '' }
  const event = { ...row, reference: '412345678901', createdAt: stage.service.clock.now().toISOString() }
  const { body } = (stage.bank as unknown as Encrypting).encrypt(bankOf(stage).refunds.eventOf(event as never))
  if (!(await sendChanged(stage, body, change))) return false
  const { rows } = await stage.service.db.query('select status, amount_paise from refunds where mid = $1', [of.mid])
  return rows.length === 1 && rows[0].status === 'SUCCESS' && rows[0].amount_paise === 20_000
}

const readingSettlements: Play = async (_stage, change) => {
  const page = parseExact(JSON.stringify({ cursor: null, limit: 10, data: [reconEvent('PAYMENT')] })) as Json
  const response = { status: 200, body: change(page), requestId: undefined }
  const pages = cashfreeSettled(async () => response)({ from: '2026-01-15', to: '2026-01-15' }, async () => undefined)
  try {
    const { value } = await pages[Symbol.asyncIterator]().next()
    return value?.length === 1
  } catch {
    return false
  }
}

const PAYMENT_NOTIFICATIONS = {
  'notification of a payment': notifying('SUCCESS'),
  'notification of a failed attempt': notifying('FAIL'),
}
const REFUNDS = { 'response to a refund': refunding, 'status of a refund': checkingRefund }

const PLAYS: Record<AcquirerName, { start: Driver; plays: Record<string, Play> }> = {
  direct: { start: direct, plays: PAYMENT_NOTIFICATIONS },
  setu: {
    start: setu,
    plays: {
      login,
      'created link': creating('createDqr'),
      'status of a paid order': checkingPaid('last'),
      'status of a failed attempt': checkingFailed('last'),
      'payment of a refund': refundingUnnamed,
      ...REFUNDS,
      ...PAYMENT_NOTIFICATIONS,
      'notification of a refund': notifyingRefund,
    },
  },
  cashfree: {
    start: cashfree,
    plays: {
      'created order': creating('createOrder'),
      'existing order': creating('findOrder', true),
      'created link': creating('openSession'),
      'closed link': closing,
      'status of an expired order': checkingFailed('findOrder'),
      'status of a paid order': checkingPaid('payments'),
      'status of a failed attempt': checkingFailed('payments'),
      ...REFUNDS,
      ...PAYMENT_NOTIFICATIONS,
      'notification of a refund': notifyingRefund,
      'notification of an automatic refund': notifyingAutomaticRefund,
      'page of settlements': readingSettlements,
    },
  },
  phonepe: {
    start: phonepe,
    plays: {
      login,
      'created link': creating('createOrder'),
      'status of a paid order': checkingPaid('order'),
      'status of a failed attempt': checkingFailed('order'),
      ...REFUNDS,
      'notification of a payment': notifying('SUCCESS'),
      'notification of a refund': notifyingRefund,
    },
  },
  razorpay: {
    start: razorpay,
    plays: {
      'created order': creating('createOrder'),
      'existing order': creating('findOrder', true),
      'created link': creating('createPayment'),
      'status of a paid order': checkingPaid('payments'),
      'status of a failed attempt': checkingFailed('payments'),
      ...REFUNDS,
      ...PAYMENT_NOTIFICATIONS,
      'notification of a refund': notifyingRefund,
      'notification of an automatic refund': notifyingAutomaticRefund,
    },
  },
}

/** A path without the positions in arrays: `paymentDetails.rail.utr`. */
const nameOf = (path: Path) => path.filter((step) => !isPosition(step)).join('.')
const isPosition = (step: Path[number] | undefined) => /^\d+$/.test(String(step))

/** Removes every field whose name `isRemoved` accepts, or sets it to null. */
function without(body: Json, isRemoved: (name: string) => boolean, value: null | undefined): Json {
  const changed = structuredClone(body)
  for (const path of pathsIn(body)) {
    if (!isPosition(path.at(-1)) && isRemoved(nameOf(path))) changeAt(changed, path, () => value)
  }
  return changed
}

const isWithin = (name: string, other: string) => name === other || name.startsWith(`${other}.`)

it('the table of needed fields names only messages that are tested', () => {
  const tested = Object.entries(PLAYS).flatMap(([acquirer, { plays }]) =>
    Object.keys(plays).map((message) => `${acquirer}: ${message}`),
  )
  expect(new Set(TABLE.map(({ acquirer, message }) => `${acquirer}: ${message}`))).toEqual(new Set(tested))
})

describe.each(Object.entries(PLAYS))('%s', (acquirer, { start, plays }) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await start({ limits: PATIENT_LIMITS })
  })

  it.each(Object.entries(plays))(
    'reads a %s that contains only the needed fields, and rejects it without one of them',
    async (message, play) => {
      let body: Json = null
      const seeing: Change = (seen) => {
        body = structuredClone(seen)
        return seen
      }
      expect(await play(stage, seeing)).toBe(true)
      const names = [...new Set(pathsIn(body).map(nameOf))]
      const rows = TABLE.filter((row) => row.acquirer === acquirer && row.message === message)
      expect(rows.filter(({ alternatives }) => !alternatives.flat().some((name) => names.includes(name)))).toEqual([])
      const mistakes: string[] = []
      let count = 0
      const expectRead = async (expected: boolean, isRemoved: (name: string) => boolean) => {
        for (const value of isGenerated() ? [undefined, null] : [count++ % 2 === 0 ? undefined : null]) {
          const isRead = await play(stage, (seen) => without(seen, isRemoved, value))
          if (isRead !== expected) mistakes.push(`${isRead ? 'read' : 'not read'}: ${names.filter(isRemoved)} ${value}`)
          // A refund whose status was not read is not checked again by a later message.
          await stage.service.db.query('update refunds set due_at = null')
        }
      }
      const most = Math.max(...rows.map(({ alternatives }) => alternatives.length))
      for (let choice = 0; choice < most; choice++) {
        const needed = rows.flatMap(({ alternatives }) => alternatives[choice % alternatives.length] ?? [])
        await expectRead(true, (name) => !needed.some((one) => isWithin(one, name)))
      }
      for (const { alternatives } of rows) await expectRead(false, (name) => alternatives.flat().includes(name))
      const isNeeded = (name: string) =>
        rows.some(({ alternatives }) => alternatives.every((needed) => needed.some((one) => isWithin(one, name))))
      const others = isGenerated() ? names.filter((name) => name !== '' && !isNeeded(name)) : []
      for (const other of others) await expectRead(true, (name) => name === other)
      expect(mistakes).toEqual([])
    },
    120_000,
  )
})
