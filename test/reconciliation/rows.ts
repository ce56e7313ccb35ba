import { Readable } from 'node:stream'
import { importSettlements } from '../../src/books/settlements/import.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'

/** A row of a settlement file for an import. */
export type Row = {
  mid: string
  amount: number
  utr: string
  day: string
  /** IST time of day. */
  time?: string
  status?: string
  fee?: number | undefined
  tax?: number | undefined
  paymentUtr?: string | undefined
  reference?: string
  event?: string
  /** The acquirer account that the file names. */
  acquirer?: string | null
}

type Reports = Record<'intents' | 'exceptions' | 'payments', unknown[][]>

export const rupees = (paise: number) => {
  const digits = String(Math.abs(paise)).padStart(3, '0')
  return `${paise < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

export const istMoment = (day: string, time: string) => new Date(`${day}T${time}+05:30`)

/** Stores orders, payments and exceptions; the first value of each is the `mid`. The last value of a payment is its acquirer, by default `direct`. */
export async function storeReports(db: Database, known: Reports): Promise<void> {
  const insert = async (sql: string, rows: unknown[][]) => {
    const [first] = rows
    if (first)
      await db.query(
        sql,
        first.map((_, at) => rows.map((row) => row[at])),
      )
  }
  await insert(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, created_at, expires_at, status, utr,
       redirect_url, note, customer_name, customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc)
     select mid, order_id, order_id, amount * 100 + paise, made, made, status, utr, 'https://shop.example/', 'Order', 'Asha Rao',
            'asha@shop.example', '9876543210', 'chaipoint@examplebank', 'Chai Point', '5814'
       from unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::text[], $7::text[])
            as one (mid, order_id, amount, paise, made, status, utr)`,
    known.intents,
  )
  await insert(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, source, acquirer)
     select *
       from unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::text[],
                   $8::text[], $9::text[])`,
    known.payments.map((payment) => [...payment, 'direct'].slice(0, 9)),
  )
  await insert(
    `insert into payment_exceptions (status, mid, order_id, kind, utr, amount_paise, paid_at, received_at)
     select case kind when 'failure after success' then 'FAIL' else 'SUCCESS' end, mid, order_id, kind, utr, rupees * 100, paid_at, paid_at
       from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])
            as one (mid, order_id, kind, utr, rupees, paid_at)`,
    known.exceptions,
  )
}

/** Imports a file of these rows, of the acquirer account `account`, and returns the number of the import. */
export async function importRows(db: Database, rows: readonly Row[], now: Date, account?: string): Promise<number> {
  const head = 'mid,amount,utr,bank_reference_number,status,initiation_date,fee,tax,payment_utr,event'
  const lines = rows.map(({ mid, amount, utr, day, time = '11:00:00', status = 'SUCCESS', fee, tax, ...row }) =>
    [
      ...[mid, rupees(amount), utr, row.reference ?? 'BRN', status, `${day}T${time}+05:30`],
      ...[
        fee === undefined ? '' : rupees(fee),
        tax === undefined ? '' : rupees(tax),
        row.paymentUtr ?? '',
        row.event ?? '',
      ],
    ].join(','),
  )
  const importing = { now, person: 'test', file: 'payouts.csv', account }
  const csv = Readable.from([Buffer.from([head, ...lines, ''].join('\n'))])
  return (await inTransaction(db, (client) => importSettlements(client, csv, importing))).import
}
