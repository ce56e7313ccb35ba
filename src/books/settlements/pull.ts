import type { SettledEvent } from '../../gateway/acquirers/acquirer.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { toSumText } from '../../platform/money.ts'
import { readMoment, toIstDay } from '../../platform/time.ts'

/** What of an acquirer's settlements is not stored, by what it is; `amount` is in paise. */
export type NotStored = Map<string, { events: number; amount: bigint }>

/**
 * What was told beside the lines: the order of each line after the first, and what is not stored; `rests` is its sum by the UTR of
 * the payout whose amount it changes.
 */
export type Pulled = { orders: string[]; notStored: NotStored; rests: Map<string, PulledRest> }

/** In paise. `day` is that of the payout in India, undefined where the acquirer does not say it. */
type PulledRest = { adjustments: bigint; unknownOrders: bigint; day: string | undefined }

const COLUMNS = 'mid,amount,utr,bank_reference_number,status,initiation_date,created_at,fee,tax,payment_utr'

/** Reads every page, before anything is locked for it. `onProgress` is told how many events have been read. */
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
 * Writes the pages of what an acquirer has settled as a settlement file, for the import: a line for each payment of our orders, and
 * for what was taken back of one.
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
      const { mid, storedUtr, paymentUtr = line?.payment.utr } = found.get(index + 1) ?? {}
      // Also a rest of 0: an earlier pull may have found another.
      if (payoutUtr !== undefined) {
        const rest = rests.get(payoutUtr) ?? { adjustments: 0n, unknownOrders: 0n, day: undefined }
        if (line === undefined) rest.adjustments += BigInt(amount)
        else if (mid === undefined) rest.unknownOrders += BigInt(amount)
        rests.set(payoutUtr, { ...rest, day: rest.day ?? dayIn(paidOutAt) })
      }
      if (line === undefined || payoutUtr === undefined || mid === undefined) {
        leaveOut(line === undefined ? kind : payoutUtr === undefined ? NOT_PAID_OUT : NOT_OURS, amount)
        continue
      }
      orders.push(line.orderId as string)
      const utr = storedUtr ?? line.utr ?? paymentUtr
      const fields = [mid, rupees(amount), utr, payoutUtr, 'SUCCESS', line.initiatedAt, line.createdAt]
      lines += toCsv([...fields, rupees(line.fee), rupees(line.tax), paymentUtr])
    }
    if (lines !== '') yield lines
  }

  function leaveOut(what: string, paise: number): void {
    const { events, amount } = notStored.get(what) ?? { events: 0, amount: 0n }
    notStored.set(what, { events: events + 1, amount: amount + BigInt(paise) })
  }
}

const dayIn = (told: string | undefined) => {
  const moment = told === undefined ? undefined : readMoment(told)
  return moment === undefined ? undefined : toIstDay(new Date(moment))
}

const NOT_PAID_OUT = 'not paid out yet'
const NOT_OURS = 'of orders that are not ours'

const rupees = (paise: number | undefined) => (paise === undefined ? undefined : toSumText(BigInt(paise)))

/** Each field is quoted: what an acquirer wrote is one field, whatever is in it. */
const toCsv = (fields: readonly (string | undefined)[]) =>
  `${fields.map((field = '') => `"${field.replaceAll('"', '""')}"`).join()}\n`

/**
 * The merchants of the events' orders, by the number of the event, counted from 1; with the UTR of a line that is stored already
 * under its earlier one, and the stored UTR of the line's payment, if its id is known.
 */
async function findOrders(db: Queryable, acquirer: string, events: readonly SettledEvent[]) {
  const { rows } = await db.query<{ event: number; mid: string; storedUtr: string | null; paymentUtr: string | null }>(
    `select e.event::float8 as event, i.mid, s.utr as "storedUtr",
            case when own.acquirer_payment_id = e.payment_id then own.utr else second.utr end as "paymentUtr"
       from unnest($1::text[], $2::text[], $4::text[]) with ordinality as e (order_id, earlier_utr, payment_id, event)
       join payment_intents i on i.order_id = e.order_id
       join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id and a.acquirer = $3
       left join settlements s on s.mid = i.mid and s.utr = e.earlier_utr
       left join payments own on own.mid = i.mid and own.utr = i.utr
       left join payments second on second.mid = i.mid and second.order_id = i.order_id and second.kind = 'second'
        and second.acquirer_payment_id = e.payment_id`,
    [
      events.map(({ line }) => line?.orderId),
      events.map(({ line }) => line?.earlierUtr),
      acquirer,
      events.map(({ line }) => line?.payment.id),
    ],
  )
  return new Map(
    rows.map(({ event, mid, storedUtr, paymentUtr }) => [
      event,
      { mid, storedUtr: storedUtr ?? undefined, paymentUtr: paymentUtr ?? undefined },
    ]),
  )
}

/** Keeps by the import what the acquirer's payouts are more or less by, so that each can be held against the bank statement. */
export async function storeRests(
  db: Queryable,
  importId: number,
  account: string,
  rests: Pulled['rests'],
): Promise<void> {
  const found = [...rests.values()]
  await db.query(
    `insert into payout_rests (import_id, account, bank_reference_number, amount_paise, unknown_orders_paise, day)
     select $1, $2, * from unnest($3::text[], $4::bigint[], $5::bigint[], $6::date[])`,
    [
      ...[importId, account, [...rests.keys()]],
      found.map(({ adjustments, unknownOrders }) => String(adjustments + unknownOrders)),
      found.map(({ unknownOrders }) => String(unknownOrders)),
      found.map(({ day }) => day),
    ],
  )
}
