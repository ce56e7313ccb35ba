import { EventEmitter, once } from 'node:events'
import {
  CANCEL,
  CREATE,
  type HttpResponse,
  intentFields,
  post,
  STATUS,
  type TestService,
} from '../../support/service.ts'
import type { NewMerchant } from '../../support/tenants.ts'
import type { IssuingBank, Stage } from './driver.ts'

export type Order = { orderId: string; of: NewMerchant }

export const create = (
  { service }: Stage,
  of: NewMerchant,
  changes: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<HttpResponse> => post(service.app, CREATE, intentFields(of.mid, changes), of.key, headers)

/** Creates an order of ₹200. */
export async function newOrder(stage: Stage, merchant?: NewMerchant): Promise<Order> {
  const of = merchant ?? (await stage.newMerchant())
  const { status, text, body } = await create(stage, of)
  if (status !== 200) throw new Error(text)
  return { orderId: body.data.orderId, of }
}

export const cancel = async ({ service }: Stage, { orderId, of }: Order) =>
  (await post(service.app, CANCEL, { mid: of.mid, order_id: orderId }, of.key)).body

/** Returns the status that the merchant gets from checkPaymentStatus. */
export const statusOf = async ({ service }: Stage, { orderId, of }: Order): Promise<string> =>
  (await post(service.app, STATUS, { mid: of.mid, order_id: orderId }, of.key)).body.txnStatus

export function bankOf({ bank }: Stage): IssuingBank {
  if (bank) return bank
  throw new Error('this acquirer creates no links')
}

/** Returns a promise `opens` that resolves when `open` is called. */
export function gate() {
  const events = new EventEmitter()
  return { opens: once(events, 'open'), open: () => events.emit('open') }
}

export async function count({ db }: TestService, table: string): Promise<number> {
  return (await db.query(`select count(*)::int as count from ${table}`)).rows[0].count
}

/** Returns everything stored for an order, sorted independently of arrival. */
export async function recorded({ service: { db } }: Stage, { orderId, of }: Order) {
  const rows = async (sql: string) => (await db.query(sql, [of.mid, orderId])).rows.map((row) => Object.values(row))
  return {
    intent: (await rows('select status, utr from payment_intents where mid = $1 and order_id = $2'))[0],
    successes: await rows("select utr, source from payments where mid = $1 and order_id = $2 and kind <> 'second'"),
    attempts: await rows('select utr from payment_attempts where mid = $1 and order_id = $2 order by utr'),
    exceptions: await rows(
      `select kind, status, utr, (amount_paise * 0.01)::text as amount from payment_exceptions
        where mid = $1 and order_id = $2 order by kind, utr, amount_paise`,
    ),
  }
}

/** The stored data of an order without any report. */
export const NOTHING = { intent: ['PENDING', null], successes: [], attempts: [], exceptions: [] }
