import type { LineError } from '../../platform/csv/csv.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { UNPADDED, UTR_OF_ID, utrOfId } from '../../platform/fields.ts'
import { useIndexes } from './imports.ts'

/**
 * Finds the payments that rows in a settlement file name by the bank's reference, by the service's `orderId` or
 * `refundId`, or by the acquirer's payment id. Each row gets the UTR under which its payment is stored, so that all
 * later comparisons use one identifier. A row without a `utr` gets a UTR of its own.
 */

/** Creates the temporary table for the payments that identifiers in `incoming` match. */
export async function preparePaymentNames(client: Queryable): Promise<void> {
  await client.query(
    'create temporary table payment_names (line bigint, fact text, utr text, order_id text, reference text) on commit drop',
  )
}

/**
 * Assigns payments to the rows in `incoming`. Returns an error for each row whose identifiers contradict each other,
 * and removes the row. `unnamed` lists the lines whose `order_id` or `acquirer_payment_id` matches no known payment.
 */
export async function namePayments(client: Queryable): Promise<{ errors: LineError[]; unnamed: number[] }> {
  await useIndexes(client)
  for (const facts of [REFERENCES, ORDERS, REFUNDS, IDS, FOREIGN_ORDERS, ORDERS_AS_UTR, STORED]) {
    await client.query(`insert into payment_names (line, fact, utr, order_id, reference) ${facts}`)
  }
  await client.query('set local enable_hashjoin = on')
  const resolved = (await ROWS(client, {})).map((row) => ({ row, ...resolve(row) }))
  const errors = resolved.flatMap(({ row, error }) => (error === undefined ? [] : [{ line: row.line, text: error }]))
  if (errors.length > 0) await REMOVE(client, { lines: errors.map(({ line }) => line) })
  const named = resolved.flatMap(({ row: { line }, names }) => (names === undefined ? [] : [{ line, ...names }]))
  if (named.length > 0) await NAME(client, { named: JSON.stringify(named) })
  return { errors, unnamed: named.flatMap(({ line, isKnown }) => (isKnown ? [] : [line])) }
}

const REMOVE = plannedQuery<object, { lines: number[] }>('delete from incoming where line = any (:lines)')

const NAME = plannedQuery<object, { named: string }>(`
  update incoming i
     set utr = n.utr, payment_utr = n."paymentUtr", given_payment_utr = n."givenPaymentUtr"
    from json_to_recordset(:named) as n (line bigint, utr text, "paymentUtr" text, "givenPaymentUtr" text)
   where n.line = i.line`)

type Fact = {
  fact: 'reference' | 'order' | 'refund' | 'id' | 'foreign order' | 'order as utr' | 'stored'
  /** Stored UTR of the payment; null if the order is unpaid. */
  utr: string | null
  orderId: string | null
  /** The bank's reference for the order's payment; null if unknown. */
  reference: string | null
}

type NamingRow = {
  line: number
  isDeduction: boolean
  utr: string | null
  paymentUtr: string | null
  orderId: string | null
  paymentId: string | null
  /** The UTR that a row without `utr` gets until its payment is known. */
  ownUtr: string
  facts: Fact[]
}

type Names = { utr: string; paymentUtr: string | null; givenPaymentUtr: string | null; isKnown: boolean }

/**
 * Chooses the payment for a row. The `order_id` decides; a payment id or reference chooses among the payments of the
 * order. A payment id that matches no payment becomes the row's own UTR, because it identifies a refund at the acquirer
 * or an unreported payment.
 */
function resolve(row: NamingRow): { names: Names; error?: never } | { names?: never; error: string } {
  const of = (fact: Fact['fact']) => row.facts.filter((one) => one.fact === fact)
  const onlyOf = (fact: Fact['fact']) => (of(fact).length === 1 ? of(fact)[0] : undefined)
  if (of('order as utr').length > 0) return { error: ORDER_AS_UTR }
  const [[order], [refund], byId, byReference] = [of('order'), of('refund'), onlyOf('id'), onlyOf('reference')]
  const orderId = order?.orderId ?? refund?.orderId
  if (orderId === undefined && of('foreign order').length > 0) return { error: FOREIGN_ORDER }
  const another = Object.entries({ acquirer_payment_id: byId, 'payment_utr or utr': byReference }).find(
    ([, payment]) => payment && orderId && payment.orderId !== orderId,
  )
  if (another) return { error: `${another[0]} and order_id belong to different orders: check both columns` }
  if (byId && byReference && byId.utr !== byReference.utr) return { error: TWO_PAYMENTS }
  // A row with a different reference belongs to a second, unreported payment for the order.
  const isOfOrder = row.isDeduction || order?.reference == null || [null, order.reference].includes(row.paymentUtr)
  const payment = byReference?.utr ?? byId?.utr ?? refund?.utr ?? (isOfOrder ? order?.utr : null) ?? null
  const isOwnId = row.paymentId !== null && byId === undefined
  const utr = row.utr ?? (payment === null || isOwnId || of('stored').length > 0 ? row.ownUtr : payment)
  const unknown = row.paymentId === null ? utr.toUpperCase() : utrOfId(row.paymentId)
  const givenPaymentUtr = row.paymentUtr ?? (row.isDeduction ? null : unknown)
  const isNamed = row.orderId !== null || row.paymentId !== null
  return {
    names: {
      utr,
      paymentUtr: payment ?? (isNamed ? givenPaymentUtr : row.paymentUtr),
      givenPaymentUtr: isNamed ? givenPaymentUtr : row.paymentUtr,
      isKnown: payment !== null || !isNamed,
    },
  }
}

const ORDER_AS_UTR = 'utr or payment_utr contains an orderId, which is not a UTR: name its column order_id'
const FOREIGN_ORDER = 'order_id belongs to another merchant: correct mid or order_id'
const TWO_PAYMENTS = 'acquirer_payment_id and the UTR belong to different payments: check both columns'

/** Removes the padding of an RRN, because stored references of payments have none. */
const REFERENCE = UNPADDED('upper(coalesce(i.payment_utr, i.utr))')
const IS_NAMED = '(i.order_id is not null or i.acquirer_payment_id is not null)'

/**
 * Looks up payments by their own UTR only if the row may name a payment other than the payment with the row's UTR. A
 * reference that several payments share identifies none of these payments.
 */
const REFERENCES = `
  select i.line, 'reference', p.utr, p.order_id, null
    from incoming i
    join payments p on p.mid = i.mid and p.bank_reference = ${REFERENCE}
    left join payments taken on taken.mid = p.mid and taken.utr = ${REFERENCE} collate "C"
   where taken.utr is null
   union
  select i.line, 'reference', p.utr, p.order_id, null
    from incoming i
    join payments p on p.mid = i.mid and p.utr = ${REFERENCE} collate "C"
   where ${IS_NAMED} or i.utr like '0000%'`

const ORDERS = `
  select i.line, 'order', p.utr, o.order_id,
         coalesce(p.bank_reference, case when p.utr is distinct from ${UTR_OF_ID('p.acquirer_payment_id')} then p.utr end)
    from incoming i
    join payment_intents o on o.mid = i.mid and o.order_id = i.order_id
    left join payments p on p.mid = o.mid and p.utr = o.utr collate "C"`

const REFUNDS = `
  select i.line, 'refund', r.utr, r.order_id, null
    from incoming i
    join refunds r on r.mid = i.mid and r.our_refund_id = i.order_id`

const IDS = `
  select i.line, 'id', p.utr, p.order_id, null
    from incoming i
    join payments p on p.mid = i.mid and p.acquirer_payment_id = i.acquirer_payment_id`

const FOREIGN_ORDERS = `
  select i.line, 'foreign order', null, o.order_id, null
    from incoming i
    join payment_intents o on o.order_id = i.order_id
   where o.mid <> i.mid`

const ORDERS_AS_UTR = `
  select i.line, 'order as utr', null, o.order_id, null
    from incoming i
    join payment_intents o on o.mid = i.mid and o.order_id in (lower(i.utr), lower(i.payment_utr))
   where 32 in (length(i.utr), length(i.payment_utr))`

/**
 * The UTR for a row of an unknown order: a hash that reveals nothing about the order and is the same when the row is
 * imported again.
 */
const OWN_UTR = `coalesce(
  ${UTR_OF_ID('i.acquirer_payment_id')},
  'N' || upper(left(encode(sha256(convert_to(concat_ws(' ', i.order_id, i.amount_paise * 0.01, i.bank_reference_number,
    extract(epoch from i.initiated_at)), 'UTF8')), 'hex'), 23)))`

/** Finds rows that were stored under a UTR of their own before their payment was known. */
const STORED = `
  select i.line, 'stored', s.utr, null, null
    from incoming i
    join settlements s on s.mid = i.mid and s.utr = ${OWN_UTR} collate "C"
   where i.utr is null`

const ROWS = plannedQuery<NamingRow, object>(`
  with known as (
    delete from payment_names returning line, fact, utr, order_id, reference
  )
  select i.line, is_deduction(i.amount_paise, i.event) as is_deduction, i.utr, i.payment_utr, i.order_id,
         i.acquirer_payment_id as payment_id, ${OWN_UTR} as own_utr, coalesce(f.facts, '[]') as facts
    from incoming i
    left join (
      select line, json_agg(json_build_object('fact', fact, 'utr', utr, 'orderId', order_id, 'reference', reference)) as facts
        from known
       group by line) f using (line)
   where f.line is not null or ${IS_NAMED}`)
