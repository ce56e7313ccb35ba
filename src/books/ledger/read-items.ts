import type { Item, ItemException, ItemRow } from './judge-item.ts'
import type { Ledger } from './read-ledger.ts'
import { CARRIED_UTR, dayOf, PAID_OUT, settlementsKnown, settlementsOfAll, textOf, WAS_PAID_OUT } from './sql.ts'

/** All that is known of these items of one merchant. At most some hundred UTRs at once. */
export async function readItems(ledger: Ledger, utrs: readonly string[]): Promise<Item[]> {
  const payments = await readPayments(ledger, utrs)
  const rows = await readRows(ledger, utrs)
  const { refundsOfPayment } = await ledger.matched()
  const { ofUtr, failures } = await ledger.exceptions()
  const noOrder = await readNoOrder(
    ledger,
    utrs.filter((utr) => rows.has(utr) && !ofUtr.has(utr)),
    rows,
  )
  return utrs.map((utr) => {
    const payment = payments.get(utr)
    return {
      ...{ mid: ledger.mid, utr, payment, rows: rows.get(utr) ?? [] },
      refunds: payment === undefined ? [] : (refundsOfPayment.get(utr) ?? []).filter(({ isOfSecond }) => !isOfSecond),
      exception: ofUtr.get(utr) ?? noOrder.get(utr),
      failure: payment && failures.get(payment.orderId),
    }
  })
}

// The statements of this file are not prepared: a generic plan compares each row with each of some hundred UTRs, and takes 20 to 100
// times as long.

async function readPayments({ client, mid, known }: Ledger, utrs: readonly string[]) {
  type Payment = NonNullable<Item['payment']>
  const { rows } = await client.query<Payment & { utr: string }>(
    `select item as utr, order_id as "orderId", ${textOf('day')} as day, at, account, amount_paise as amount
       from ledger
      where mid = $1 and kind = 'payment' and item = any ($3) and recorded_at <= $2`,
    [mid, known, utrs],
  )
  return new Map(rows.map(({ utr, ...payment }) => [utr, payment]))
}

async function readRows({ client, mid, known }: Ledger, utrs: readonly string[]): Promise<Map<string, ItemRow[]>> {
  const { rows } = await client.query<ItemRow & { item: string }>(
    `select s.key as item, s.utr, ${textOf(dayOf('s.at'))} as day, s.at, s.account, s.status, s.amount_paise < 0 as "isDeduction",
            s.gross_paise as gross, s.fee_paise as fee, s.tax_paise as tax,
            s.payment_utr is not null as "namesPayment", s.status = 'FAILED' and ${WAS_PAID_OUT} as "wasPaidOut",
            s.import_id as "importId"
       from (${settlementsKnown(`${CARRIED_UTR} = any ($3)`)}) s
      order by s.at, s.utr`,
    [mid, known, utrs],
  )
  const byItem = new Map<string, ItemRow[]>()
  for (const { item, ...row } of rows) {
    const known = byItem.get(item) ?? []
    byItem.set(item, [...known, row])
  }
  return byItem
}

/**
 * Exceptions of no known order that explain settlements of the merchant, by UTR. The resolution of one covers its money once: for
 * the merchant who was settled first.
 */
async function readNoOrder(
  { client, mid, known, noOrder }: Ledger,
  utrs: readonly string[],
  rows: ReadonlyMap<string, readonly ItemRow[]>,
): Promise<Map<string, ItemException>> {
  const found = new Map(utrs.flatMap((utr) => (noOrder.has(utr) ? [[utr, noOrder.get(utr) as ItemException]] : [])))
  const first = [...found].flatMap(([utr, { resolution }]) => {
    const row = rows.get(utr)?.find(({ status, isDeduction }) => status === 'SUCCESS' && !isDeduction)
    return resolution === null || row === undefined ? [] : [{ utr, at: row.at }]
  })
  if (first.length === 0) return found
  const settledBefore = await client.query<{ utr: string }>(
    `with earlier as (${settlementsOfAll(`${CARRIED_UTR} = any ($3) and mid <> $1 and ${PAID_OUT}`)})
     select a.utr
       from unnest($3::text[], $4::timestamptz[]) as a (utr, at)
       join earlier e on e.key = a.utr and (date_trunc('milliseconds', e.at), e.mid) < (a.at, $1)`,
    [mid, known, first.map(({ utr }) => utr), first.map(({ at }) => at)],
  )
  for (const { utr } of settledBefore.rows) found.set(utr, { ...(found.get(utr) as ItemException), resolution: null })
  return found
}
