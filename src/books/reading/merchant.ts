import { plannedQuery, query } from '../../platform/db/query.ts'
import { formsOf, unpadded } from '../../platform/fields.ts'
import type { BankDays } from '../ledger/bank-days.ts'
import type { DisputedAmount, FailedPayment, MerchantFacts, MoneyException } from '../ledger/facts.ts'
import type { Item, ItemException, ItemRow } from '../ledger/judge-item.ts'
import type { NamedSince } from '../ledger/judge-payouts.ts'
import { type Deduction, groupBy, matchDeductions, type SuccessfulRefund } from '../ledger/match-deductions.ts'
import { AS_KNOWN, type Snapshot, type UnknownOrder } from './snapshot.ts'

/** Facts about one merchant in a snapshot that are the same for every period. */
export type MerchantSnapshot = Omit<Snapshot, 'unknownOrders'> &
  MerchantFacts & {
    /** Exceptions for unknown orders whose UTR appears in one of the merchant's settlement lines. */
    unknownOrders: readonly UnknownOrder[]
    /** The acquirer accounts that the merchant's settlement lines name, and null for lines that name none. */
    accounts: readonly (string | null)[]
  }

export async function readMerchant({ unknownOrders, ...snapshot }: Snapshot, mid: string): Promise<MerchantSnapshot> {
  const { client, known, bankDays } = snapshot
  const own = unknownOrders.get(mid) ?? []
  const refunds = await REFUNDS(client, { mid, known })
  const deductions = await DEDUCTIONS(client, { mid, known, explained: own.map(({ utr }) => utr) })
  const exceptions = await EXCEPTIONS(client, { mid, known })
  const failures = exceptions.filter(({ kind, resolution }) => kind === FAILURE && resolution !== null)
  const named = await NAMED_SINCE(client, { mid, known })
  return {
    ...snapshot,
    ...{ namedSince: namedSinceOf(named, bankDays), accounts: [null, ...named.map(({ account }) => account)] },
    ...{ mid, refunds, exceptions, matched: matchDeductions(refunds, deductions, bankDays), unknownOrders: own },
    failed: failures.length === 0 ? [] : await FAILED(client, { mid, known, utrs: failures.map(({ utr }) => utr) }),
    disputes: await DISPUTES(client, { mid, known }),
  }
}

const FAILURE = 'failure after success'

/** Number of items that each query reads. */
const ITEMS_READ = 500

/** Yields all facts about the merchant's items with these UTRs, in batches of `ITEMS_READ`. */
export async function* itemsOf(merchant: MerchantSnapshot, utrs: readonly string[]): AsyncGenerator<Item[]> {
  const of = { refundsOf: groupBy(merchant.refunds, ({ utr }) => utr), ...explanationsOf(merchant) }
  for (let at = 0; at < utrs.length; at += ITEMS_READ) yield readItems(merchant, utrs.slice(at, at + ITEMS_READ), of)
}

/** Explanations for items by UTR: exceptions, refunds, and `failures` of payments. */
type Explanations = ReturnType<typeof explanationsOf> & { refundsOf: ReadonlyMap<string, SuccessfulRefund[]> }

async function readItems(
  merchant: MerchantSnapshot,
  utrs: readonly string[],
  { refundsOf, ofUtr, failures }: Explanations,
): Promise<Item[]> {
  const { client, mid, known } = merchant
  const payments = new Map((await PAYMENTS(client, { utrs, mid, known })).map((one) => [one.utr, one]))
  const lines = groupBy(await LINES(client, { utrs, mid, known }), ({ item }) => item)
  const references = utrs.flatMap((utr) => {
    const payment = payments.get(utr)
    if (payment === undefined) return unpadded(utr)
    return lines.has(utr) ? [] : (payment.reference ?? [])
  })
  const matching = await readMatching(merchant, references)
  return utrs.map((utr) => {
    const payment = payments.get(utr)
    return {
      ...{ mid, utr, payment, rows: lines.get(utr) ?? [], exception: ofUtr.get(utr), matching: matching.get(utr) },
      refunds: payment === undefined ? [] : (refundsOf.get(utr) ?? []),
      // A failure report concerns the order's own payment, never a duplicate payment. Its UTR is that of another attempt
      // if the customer tried to pay again.
      failure: payment === undefined || payment.isDuplicate ? undefined : failures.get(utr),
    }
  })
}

/**
 * Returns the exception and the failure for each UTR. Open exceptions take precedence over resolved
 * exceptions, and older exceptions over newer exceptions.
 */
function explanationsOf({ exceptions, unknownOrders }: MerchantSnapshot) {
  const ofUtr = new Map<string, ItemException>()
  const failures = new Map<string, ItemException>()
  for (const one of [...exceptions, ...unknownOrders]) {
    const known = one.kind === FAILURE ? failures : ofUtr
    if (!known.has(one.utr)) known.set(one.utr, one)
  }
  return { ofUtr, failures }
}

type Known = { mid: string; known: Date }

/** `reference` is a bank reference that a later report has added. */
type Payment = NonNullable<Item['payment']> & { utr: string; isDuplicate: boolean; reference: string | null }

/** Reads the table, because the view `ledger` takes 1.5 times as long. */
const PAYMENTS = plannedQuery<Payment, Known & { utrs: readonly string[] }>(`
  select utr, order_id, ist_day(coalesce(paid_at, received_at)) as day,
         coalesce(paid_at, received_at) as at, acquirer_of(acquirer) as acquirer, amount_paise as amount,
         kind = 'second' as is_duplicate, case when bank_reference_at <= :known then bank_reference end as reference
    from payments
   where mid = :mid and utr = any (:utrs) and received_at <= :known`)

/** SQL for a settlement line `line`: whether a stored dispute explains a line of a dispute; null for other lines. */
export const IS_DISPUTED = `case when event in ('dispute', 'dispute reversal') then exists (
           select from disputed_items d where d.mid = :mid and d.item = line.item and d.recorded_at <= :known) end`

const LINES = plannedQuery<ItemRow & { item: string }, Known & { utrs: readonly string[] }>(`
  select item, utr, day, at, acquirer, status, is_deduction, gross_paise as gross, fee_paise as fee, tax_paise as tax,
         names_payment, import_id, ${IS_DISPUTED} as is_disputed,
         status = 'FAILED' and exists (
           select from settlement_versions v
            where v.mid = :mid and v.utr = line.utr and v.status = 'SUCCESS' and not v.undone and v.replaced_at <= :known
         ) as was_paid_out
    from settlement_lines line
   where mid = :mid and item = any (:utrs) and ${AS_KNOWN}
   order by at, utr`)

/**
 * Returns the items that the next import will match by one of these bank references: settlement lines by their payment's
 * UTR, and payments by their settlement line's UTR.
 */
async function readMatching(
  { client, mid, known }: MerchantSnapshot,
  references: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const matching = new Map<string, string>()
  const learned = references.length === 0 ? [] : await LEARNED(client, { references, mid, known })
  const payments = new Map(learned.map(({ utr, reference }) => [reference, utr]))
  const items = [...payments.keys()].flatMap(formsOf)
  for (const { item } of items.length === 0 ? [] : await ITEMS(client, { items, mid, known })) {
    const payment = payments.get(unpadded(item)) as string
    matching.set(item, payment).set(payment, item)
  }
  return matching
}

/** Returns the payments to which a report has added one of these bank references, if it identifies one payment. */
const LEARNED = plannedQuery<{ utr: string; reference: string }, Known & { references: readonly string[] }>(`
  select utr, bank_reference as reference
    from payments learned
   where mid = :mid and bank_reference = any (:references) and bank_reference_at <= :known
     and not exists (
           select from payments other
            where other.mid = :mid and other.utr = learned.bank_reference and other.received_at <= :known)
     and not exists (
           select from payments other
            where other.mid = :mid and other.bank_reference = learned.bank_reference and other.utr <> learned.utr
              and coalesce(other.bank_reference_at, other.received_at) <= :known)`)

const ITEMS = plannedQuery<{ item: string }, Known & { items: readonly string[] }>(`
  select distinct item
    from settlement_lines
   where mid = :mid and item = any (:items) and ${AS_KNOWN}
   order by item`)

const EXCEPTIONS = query<MoneyException, Known>(`
  select exception_id, kind, order_id, utr, amount_paise as amount, day,
         case when resolved_at <= :known then resolution end as resolution
    from money_exceptions
   where mid = :mid and received_at <= :known
   order by resolved_at is not null and resolved_at <= :known, received_at, exception_id`)

const FAILED = query<FailedPayment, Known & { utrs: string[] }>(`
  select p.utr, ist_day(coalesce(p.paid_at, p.received_at)) as day,
         acquirer_of(p.acquirer) as acquirer, p.amount_paise as amount
    from payment_intents i
    join payments p on p.mid = :mid and p.utr = i.utr and p.order_id = i.order_id
   where i.mid = :mid and p.utr = any (:utrs) and p.received_at <= :known
     and (select min(at) from settlement_lines line
           where line.mid = :mid and line.item = p.utr and status = 'SUCCESS' and not is_deduction
             and at >= coalesce(p.paid_at, p.received_at) - interval '1 day'
             and ${AS_KNOWN}) is null`)

/** Disputes with their state as known. */
const DISPUTES = query<DisputedAmount, Known>(`
  select dispute_id, ist_day(opened_at) as day, coalesce(d.amount_paise, p.amount_paise) as amount,
         coalesce((select status
                     from dispute_states t
                    where t.mid = :mid and t.acquirer = d.acquirer and t.dispute_id = d.dispute_id and t.recorded_at <= :known
                      and t.status not in ('open', 'under review')), 'open') as status
    from disputes d
    join payments p on p.mid = :mid and p.utr = d.utr
   where d.mid = :mid and recorded_at <= :known
   order by opened_at, dispute_id`)

/** Returns the first bank day of each acquirer with a settlement line. */
export function namedSinceOf(named: readonly NamedAccount[], { bankDayFrom }: BankDays): NamedSince {
  const since = new Map<string, string>()
  for (const { account, day } of named) {
    const acquirer = account.split(':', 1)[0] as string
    const known = since.get(acquirer)
    if (known === undefined || day < known) since.set(acquirer, bankDayFrom(day))
  }
  return since
}

type NamedAccount = { account: string; day: string }

/**
 * First day of each acquirer account with a settlement line. Steps from account to account through the index, because a
 * merchant has few accounts and may have millions of lines.
 */
export const NAMED_SINCE = query<NamedAccount, Known>(`
  with recursive named (account) as (
    select least((select min(account) from settlements where mid = :mid),
                 (select min(account) from settlement_versions where mid = :mid and status = 'SUCCESS'))
     union all
    select least((select min(s.account) from settlements s where s.mid = :mid and s.account > named.account),
                 (select min(v.account) from settlement_versions v
                   where v.mid = :mid and v.status = 'SUCCESS' and v.account > named.account))
      from named
     where account is not null
  )
  select named.account, first.day
    from named
   cross join lateral (
     select ist_day(at) as day
       from account_lines line
      where mid = :mid and line.account = named.account and status = 'SUCCESS'
        and ${AS_KNOWN}
      order by at
      limit 1) first`)

/**
 * SQL condition that the settlement line's UTR matches no payment to the merchant and no exception about money.
 * `:explained` contains the UTRs of exceptions for unknown orders.
 */
export const NAMES_NOTHING = `(not names_payment and item <> all (:explained::text[])
  and not exists (select from payments p where p.mid = :mid and p.utr = line.item and p.received_at <= :known)
  and not exists (select from money_exceptions e
                   where e.mid = :mid and e.utr = line.item and e.kind <> 'failure after success' and e.received_at <= :known))`

const OF_PAYOUTS = `line.mid = :mid and line.status = 'SUCCESS' and not line.is_deduction`

/** SQL condition that the settlement line `line` of the merchant pays money out. */
export const PAID_OUT = `${OF_PAYOUTS} and ${AS_KNOWN}`

/**
 * SQL of the time and day of the first line with this condition that pays money out through this account, or of the last line.
 * `account` and `condition` are SQL. Compares with one account and orders by it, because only then PostgreSQL reads the
 * lines in the order of the index and stops at the first.
 */
export const lineOfAccount = (account: string, condition: string, order: 'asc' | 'desc' = 'asc') => {
  const select = (ofAccount: string) => `(
       select line.at, ist_day(line.at) as day
         from account_lines line
        where ${OF_PAYOUTS} and ${ofAccount} and ${condition}
        order by line.account ${order}, line.at ${order}
        limit 1)`
  return `${select(`line.account = ${account}`)} union all ${select(`${account} is null and line.account is null`)}`
}

/** Settlement lines with a negative amount, unless their file states that they deduct no refund. */
const DEDUCTIONS = query<Deduction, Known & { explained: readonly string[] }>(`
  select utr, item, day, gross_paise as gross, array[upper(utr), upper(reference)] as "references",
         not ${NAMES_NOTHING} as is_named
    from settlement_lines line
   where mid = :mid and status = 'SUCCESS' and net_paise < 0 and coalesce(event = 'refund', true) and ${AS_KNOWN}
   order by at, utr`)

const REFUNDS = query<SuccessfulRefund, Known>(`
  select r.our_refund_id as refund_id, r.order_id, p.utr, acquirer_of(p.acquirer) as acquirer,
         r.amount_paise as amount, ist_day(coalesce(p.paid_at, p.received_at)) as paid_on,
         ist_day(r.ended_at) as day, upper(r.reference) as reference, p.amount_paise as paid,
         ist_day(t.returned_at) as returned_on, settled.gross_paise as settled
    from refunds r
    left join refund_returns t on t.mid = :mid and t.our_refund_id = r.our_refund_id and t.returned_at <= :known
    join payments p on p.mid = :mid and p.utr = r.utr and p.order_id = r.order_id
    left join lateral (
      select gross_paise
        from settlement_lines line
       where mid = :mid and item = p.utr and status = 'SUCCESS' and not is_deduction
         and at >= coalesce(p.paid_at, p.received_at) - interval '1 day'
         and ${AS_KNOWN}
       order by at, utr
       limit 1) settled on true
   where r.mid = :mid and r.status = 'SUCCESS' and r.ended_at <= :known
   order by r.ended_at, r.our_refund_id`)

/** A row with the merchant's own `order_id`, which is null if no order is known. */
export type WithMerchantOrderId<T> = T & { merchantOrderId: string | null }

/** Adds the merchant's own `order_id` to each row. */
export async function withMerchantOrderIds<T extends { orderId: string | null }>(
  { client, mid }: Pick<MerchantSnapshot, 'client' | 'mid'>,
  all: readonly T[],
): Promise<WithMerchantOrderId<T>[]> {
  const orderIds = [...new Set(all.flatMap(({ orderId }) => (orderId === null ? [] : [orderId])))]
  const rows = orderIds.length === 0 ? [] : await MERCHANT_ORDER_IDS(client, { mid, orderIds })
  const ids = new Map<string | null, string>(rows.map((row) => [row.orderId, row.merchantOrderId]))
  return all.map((one) => ({ ...one, merchantOrderId: ids.get(one.orderId) ?? null }))
}

const MERCHANT_ORDER_IDS = query<{ orderId: string; merchantOrderId: string }, { mid: string; orderIds: string[] }>(`
  select order_id, merchant_order_id
    from payment_intents
   where mid = :mid and order_id = any (:orderIds)`)
