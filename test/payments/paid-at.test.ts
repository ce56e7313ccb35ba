import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import {
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  OWN_TRANSACTIONS,
  post,
  startService,
  type TestService,
} from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ asServiceRole: true })
  // The command line uses the machine's clock.
  service.clock.set(new Date().toISOString())
})

type Order = { mid: string; key: Key; orderId: string }

async function newOrder(): Promise<Order> {
  const { mid, key } = await newMerchant(service.db)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  return { mid, key, orderId }
}

/** The moment `minutes` after now. */
const minutesFromNow = (minutes: number) => new Date(service.clock.now().getTime() + minutes * 60_000).toISOString()

const DAY = 24 * 60
const IMPOSSIBLE: [string, () => string][] = [
  ['in 9999', () => '9999-12-31T23:59:59Z'],
  ['in the year 1', () => '0001-01-01T00:00:00Z'],
  ['a day before its order', () => minutesFromNow(-DAY)],
  ['six minutes before its order', () => minutesFromNow(-6)],
  ['tomorrow', () => minutesFromNow(DAY)],
  ['in a second', () => minutesFromNow(1 / 60)],
]

const { ops, json } = opsOn(() => service.databaseUrl, [])

/** The UTRs in the merchant's list and in the reconciliation report on the day of `moment`. */
async function onDayOf({ mid, key }: Order, moment: Date) {
  const day = toIstDay(moment)
  const listDay = day.split('-').reverse().join('-')
  const list = (await post(service.app, OWN_TRANSACTIONS, { mid, s_date: listDay, e_date: listDay }, key)).body.data
  const { merchants } = await json('reconcile', '--from', day, '--to', day, '--mid', mid)
  return { list: list.map(({ UTR }: { UTR: string }) => UTR), books: merchants[0].total.paid }
}

describe('payment with an impossible time', () => {
  it.each(IMPOSSIBLE)('replaces an impossible payment time by the notification time: %s', async (_when, paidAt) => {
    const order = await newOrder()
    const utr = newUtr()
    const { status } = await notify(service, notification(order.orderId, { UTR: utr, paidAt: paidAt() }))
    expect(status).toBe(200)
    expect(await onDayOf(order, service.clock.now())).toEqual({ list: [utr], books: '200.00' })
  })

  it('stores the acquirer’s payment time even if the acquirer’s clock is five minutes slow', async () => {
    const order = await newOrder()
    const paidAt = minutesFromNow(-5)
    await notify(service, notification(order.orderId, { paidAt }))
    const { rows } = await service.db.query('select paid_at from payments where order_id = $1', [order.orderId])
    expect(rows).toEqual([{ paid_at: new Date(paidAt) }])
  })

  it('ops payments import warns of the number of lines with an impossible payment time', async () => {
    const load = async (...times: string[]) => {
      const orders = await Promise.all(times.map(newOrder))
      const lines = orders.map(({ orderId }, i) => `${orderId},SUCCESS,${newUtr()},200,${times[i]}\n`)
      const csv = Readable.from([`order_id,status,utr,amount,paid_at\n${lines.join('')}`])
      const warnings: string[] = []
      await importDailyReport(service.db, csv, { now: service.clock.now, onWarning: (text) => warnings.push(text) })
      return warnings
    }
    const why = 'a paid_at that is before the order was created or in the future: the payment is dated today'
    expect(await load(minutesFromNow(0))).toEqual([])
    expect(await load(minutesFromNow(0), minutesFromNow(DAY))).toEqual([`1 line has ${why}`])
    expect(await load(minutesFromNow(-DAY), minutesFromNow(DAY))).toEqual([`2 lines have ${why}`])
  })

  it('ops payments confirm rejects an impossible payment time, and names the time of the order and the current time', async () => {
    const { orderId } = await newOrder()
    const confirm = ['payments', 'confirm', '--order-id', orderId, '--utr', newUtr(), '--amount', '200', '--paid-at']
    const IST = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d IST`
    for (const paidAt of [minutesFromNow(-DAY), minutesFromNow(DAY)]) {
      const { code, stderr } = await ops(...confirm, paidAt)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          `^ops: --paid-at ${IST} is impossible: the order was created at ${IST} and the time is now ${IST}\n$`,
        ),
      })
    }
    expect((await json('payments', 'show', '--order-id', orderId)).changes).toEqual([])
  })
})

it('the service stores a failed attempt with a time in the future once, however often the acquirer reports it', async () => {
  const { orderId } = await newOrder()
  const reported = notification(orderId, { status: 'FAIL', UTR: undefined, paidAt: minutesFromNow(DAY) })
  for (let i = 0; i < 3; i++) {
    await notify(service, reported)
    service.clock.advance(1)
  }
  const { rows } = await service.db.query('select paid_at from payment_attempts where order_id = $1', [orderId])
  expect(rows).toEqual([{ paid_at: null }])
})
