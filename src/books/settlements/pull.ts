import type { SettledEvent } from '../../gateway/acquirers/acquirer.ts'
import { ordersOfPayments } from '../../gateway/payments/import-daily-report.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { addPaise, type Paise, toDecimalText } from '../../platform/money.ts'
import { readMoment, toIstDay } from '../../platform/time.ts'

/** Acquirer events that are not stored as settlements, by reason. `amount` is in paise. */
type NotStored = Map<string, { events: number; amount: Paise }>

/**
 * The data that a pull collects in addition to the lines. `orders` lists the order of each line below the header.
 * `notStored` contains the omitted events, and `rests` the sums of these events by the UTR of the payout that contains
 * the events.
 */
export type Pulled = { orders: string[]; notStored: NotStored; rests: Map<string, PulledRest> }

/** Sums in paise. `day` is the payout's IST day, undefined if the acquirer does not report a day. */
type PulledRest = { adjustments: Paise; unknownOrders: Paise; day: string | undefined }

const COLUMNS =
  'mid,amount,utr,bank_reference_number,status,initiation_date,created_at,fee,tax,payment_utr,event,instrument'

/** Reads every page before the import locks a table. `onProgress` receives the number of events read so far. */
export async function readPages(
  pages: AsyncIterable<SettledEvent[]>,
  onProgress: ((eventsRead: number) => void) | undefined,
): Promise<SettledEvent[][]> {
  const read: SettledEvent[][] = []
  let eventsRead = 0
  for await (const events of pages) {
    read.push(events)
    eventsRead += events.length
    onProgress?.(eventsRead)
  }
  return read
}

/**
 * Writes an acquirer's settlement events as a settlement file for the import: one line for each payment for a known
 * order, for each deduction from a known order's payment, and for each returned deduction.
 */
export async function* toSettlementFile(
  db: Queryable,
  pages: readonly SettledEvent[][],
  { acquirer, orders, notStored, rests }: Pulled & { acquirer: string },
): AsyncGenerator<string> {
  yield `${COLUMNS}\n`
  for (const events of pages) {
    const found = await findOrders(db, acquirer, events)
    let lines = ''
    for (const [index, { kind, amount, payoutUtr, paidOutAt, line }] of events.entries()) {
      const { mid, orderId, storedUtr, ownUtr, ...known } = found.get(index + 1) ?? NOT_FOUND
      // A line with a UTR of its own may contain no identifier of its payment.
      const paymentUtr = known.paymentUtr ?? line?.payment.utr ?? (line?.utr && ownUtr)
      // Records a sum even if it is 0, because an earlier pull may have stored another sum for this payout.
      if (payoutUtr !== undefined) {
        const rest = rests.get(payoutUtr) ?? { adjustments: 0, unknownOrders: 0, day: undefined }
        if (line === undefined) rest.adjustments = addPaise(rest.adjustments, amount)
        else if (mid === undefined) rest.unknownOrders = addPaise(rest.unknownOrders, amount)
        rests.set(payoutUtr, { ...rest, day: rest.day ?? dayIn(paidOutAt) })
      }
      if (line === undefined || payoutUtr === undefined || mid === undefined) {
        leaveOut(line === undefined ? kind : payoutUtr === undefined ? NOT_PAID_OUT : NOT_OURS, amount)
        continue
      }
      orders.push(orderId)
      const utr = storedUtr ?? line.utr ?? paymentUtr ?? line.earlierUtr
      const fields = [mid, rupees(amount), utr, payoutUtr, 'SUCCESS', line.initiatedAt, line.createdAt]
      lines += toCsv([...fields, rupees(line.fee), rupees(line.tax), paymentUtr, line.event, line.instrument])
    }
    if (lines !== '') yield lines
  }

  function leaveOut(what: string, paise: Paise): void {
    const { events, amount } = notStored.get(what) ?? { events: 0, amount: 0 }
    notStored.set(what, { events: events + 1, amount: addPaise(amount, paise) })
  }
}

const dayIn = (reported: string | undefined) => {
  const moment = reported === undefined ? undefined : readMoment(reported)
  return moment === undefined ? undefined : toIstDay(new Date(moment))
}

const NOT_PAID_OUT = 'not paid out yet'
const NOT_OURS = 'of unknown orders'

const rupees = (paise: Paise | undefined) => (paise === undefined ? undefined : toDecimalText(paise))

/** Quotes every field, so that no text from the acquirer can add a column or a line. */
const toCsv = (fields: readonly (string | undefined)[]) =>
  `${fields.map((field = '') => `"${field.replaceAll('"', '""')}"`).join()}\n`

/**
 * Returns each event's order and its merchant, by the position of the event, counted from 1. The payment's id names the
 * order of an event without an orderId. `storedUtr` is the UTR of a line that is already stored under `earlierUtr`.
 * `paymentUtr` is the stored UTR of the payment if the payment's id is known, and `ownUtr` that of the payment that paid
 * the order.
 */
async function findOrders(db: Queryable, acquirer: string, events: readonly SettledEvent[]) {
  const unnamed = events.flatMap(({ line }) => (line && line.orderId === undefined ? (line.payment.id ?? []) : []))
  const ofPayments = await ordersOfPayments(db, acquirer, unnamed)
  const rows = await ORDERS(db, {
    acquirer,
    orderIds: events.map(({ line }) => line?.orderId ?? ofPayments.get(line?.payment.id ?? '')),
    utrs: events.map(({ line }) => line?.earlierUtr),
    paymentIds: events.map(({ line }) => line?.payment.id),
  })
  return new Map(
    rows.map(({ event, storedUtr, ownUtr, paymentUtr, ...order }) => [
      event,
      { ...order, storedUtr: storedUtr ?? undefined, ownUtr: ownUtr ?? undefined, paymentUtr: paymentUtr ?? undefined },
    ]),
  )
}

const NOT_FOUND = { mid: undefined, orderId: undefined, storedUtr: undefined, ownUtr: undefined, paymentUtr: undefined }

const ORDERS = plannedQuery<
  { event: number; mid: string; orderId: string } & Record<'storedUtr' | 'ownUtr' | 'paymentUtr', string | null>,
  { acquirer: string } & Record<'orderIds' | 'utrs' | 'paymentIds', (string | undefined)[]>
>(`
  select e.event, i.mid, i.order_id, s.utr as stored_utr, own.utr as own_utr,
         case when own.acquirer_payment_id = e.payment_id then own.utr else second.utr end as payment_utr
    from unnest(:orderIds::text[], :utrs::text[], :paymentIds::text[]) with ordinality as e (order_id, earlier_utr, payment_id, event)
    join payment_intents i on i.order_id = e.order_id
    join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id and a.acquirer = :acquirer
    left join settlements s on s.mid = i.mid and s.utr = e.earlier_utr
    left join payments own on own.mid = i.mid and own.utr = i.utr
    left join payments second on second.mid = i.mid and second.order_id = i.order_id and second.kind = 'second'
     and second.acquirer_payment_id = e.payment_id`)

/** Counts the rows that an import inserted on days of closed months, whose reports they change. */
export const countInClosedMonths = query<{ rows: number }, { importId: number }>(`
  select count(*) as rows
    from settlements s
    join settlement_imports i on i.import_id = :importId and i.import_id = s.import_id and s.recorded_at >= i.imported_at
    join closed_months c on c.month = to_char(coalesce(s.value_date, ist_day(s.initiated_at)), 'YYYY-MM')
   where not exists (select from settlement_versions v
                      where v.mid = s.mid and v.utr = s.utr and v.replaced_by_import_id = :importId and not v.undone)`)

/**
 * Stores, with the import, the difference between each payout and its lines, so that payouts can be compared with the
 * bank statement.
 */
export async function storeRests(
  db: Queryable,
  importId: number,
  account: string,
  rests: Pulled['rests'],
): Promise<void> {
  const found = [...rests].map(([reference, { adjustments, unknownOrders, day }]) => {
    return { reference, amount: adjustments + unknownOrders, others: unknownOrders, day }
  })
  await STORE_RESTS(db, { importId, account, rests: JSON.stringify(found) })
}

const STORE_RESTS = query<object, { importId: number; account: string; rests: string }>(`
  insert into payout_rests (import_id, account, bank_reference_number, amount_paise, unknown_orders_paise, day)
  select :importId, :account, reference, amount, others, day
    from json_to_recordset(:rests) as r (reference text, amount bigint, others bigint, day date)`)
