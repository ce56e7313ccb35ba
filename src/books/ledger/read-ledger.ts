import type { PoolClient } from 'pg'
import { batchesOf } from '../../platform/db/batches.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Paise } from '../../platform/money.ts'
import { startOfDay } from '../../platform/time.ts'
import { addDays, type BankDays, countDays, type Days } from './bank-days.ts'
import type { ItemException } from './judge-item.ts'
import type { PaidOn, SettledOn } from './judge-payouts.ts'
import { type Deduction, groupBy, matchDeductions, type SuccessfulRefund } from './match-deductions.ts'
import {
  boundsOf,
  CARRIED_UTR,
  dayOf,
  KNOWN,
  PAID_OUT,
  settlementsKnown,
  settlementsOfAll,
  TELLS_OF_MONEY,
  textOf,
  WAS_PAID_OUT,
} from './sql.ts'

/** One transaction that sees the database at one moment, and what the books of all merchants share. */
export type Snapshot = {
  client: PoolClient
  /** What was stored later is not known. */
  known: Date
  bankDays: BankDays
  /**
   * Exceptions of money of no known order whose UTR a settlement carries, by the mid of the settlement. They have no merchant.
   */
  ofNoOrder: ReadonlyMap<string, readonly SettledException[]>
  /** What all movements until the end of the day `to` add up to, in paise, by mid; undefined where no month was closed. */
  closed?: { to: string; sums: ReadonlyMap<string, Paise> } | undefined
}

/** A report of money that was not taken for a payment, or that a payment has failed after all. `day` is the bank's, else ours. */
export type ExceptionOfMoney = ItemException & { utr: string; day: string }

/** An exception of no known order; `isPaidOut` is whether a settlement of its UTR pays something out. */
export type SettledException = ExceptionOfMoney & { isPaidOut: boolean; receivedAt: Date; resolvedAt: Date | null }

/** A payment that no settlement carries, and whose failure after success a person has looked into. */
export type FailedPayment = { utr: string; day: string; account: string; amount: Paise }

/** An item that may be more than a payment and its one settlement. */
export type UnevenItem = {
  utr: string
  /** The first of the asked days on which it has moved. */
  day: string
  /** The account of a payment of which nothing else is known; undefined for every other item. */
  waitsOn: string | undefined
}

/** A settlement of no known payment that was SUCCESS and is FAILED. */
export type TakenBackRow = { account: string | null; day: string; utr: string; gross: Paise }

export type Ledger = ReturnType<typeof createLedger>

/** Reads the open items of one merchant. */
export function createLedger(snapshot: Snapshot, mid: string) {
  const { client, known, bankDays, ofNoOrder, closed } = snapshot
  const noOrder = new Map((ofNoOrder.get(mid) ?? []).map((one) => [one.utr, one]))
  let matched: ReturnType<typeof readMatched> | undefined
  let exceptions: ReturnType<typeof readExceptions> | undefined
  let failed: ReturnType<typeof readFailed> | undefined

  return {
    ...snapshot,
    mid,
    /** Exceptions of no known order whose UTR a settlement of the merchant carries, by UTR. */
    noOrder,

    /** Those of them that were received or resolved after `since`. */
    noOrderSince: (since: Date) =>
      [...noOrder.values()].filter(
        ({ receivedAt, resolvedAt }) => receivedAt > since || (resolvedAt !== null && resolvedAt > since),
      ),

    /**
     * What was paid and settled on each of the days of `window`; and the items that are uneven and have moved on `asked`, in the
     * order of their days.
     */
    async readDays(window: Days, asked: Days) {
      const days = Array.from({ length: countDays(window.from, window.to) }, (_, at) => addDays(window.from, at))
      const values = [mid, known, ...boundsOf(window), [...noOrder.keys()], asked.from, asked.to]
      const batches = batchesOf<Part>(client, DAYS(...values, days, days.map(bankDays.nextBankDay)))
      const paid: PaidOn[] = []
      const settled = new Map<string, SettledOn>()
      const first: UnevenItem[] = []
      let isOver = false
      while (first.length === 0 && !isOver) {
        const { value: parts = [], done } = await batches.next()
        isOver = done === true
        for (const { part, item, account, day, settledDay, count, rows, gross, fee, tax, net } of parts as Part[]) {
          if (part === 'paid') paid.push({ account, day, settledDay, count, paid: gross })
          if (part === 'settled') {
            const sums = { gross, fee, tax, net, unnamedRows: 0, unnamed: 0 }
            settled.set(`${account} ${day}`, { account, day, settledCount: count, paidOut: rows, ...sums })
          }
          if (part === 'unnamed') {
            Object.assign(settled.get(`${account} ${day}`) as SettledOn, { unnamedRows: rows, unnamed: gross })
          }
          if (part === 'uneven') first.push(toItem({ item, account, day }))
        }
      }
      return { paid, settled: [...settled.values()], items: rest() }

      async function* rest(): AsyncGenerator<UnevenItem[]> {
        if (first.length > 0) yield first
        for await (const parts of batches) yield parts.map(toItem)
      }
    },

    /** The first day on which something has moved; undefined for a merchant without any. */
    async firstDay(): Promise<string | undefined> {
      const { rows } = await client.query<{ day: string }>(FIRST_DAY(mid))
      return rows[0]?.day
    },

    /** What the movements of all days before `day` add up to, in paise. */
    async sumBefore(day: string): Promise<Paise> {
      const from = closed !== undefined && closed.to < day ? addDays(closed.to, 1) : undefined
      const { rows } = await client.query<{ sum: Paise }>(
        SUM_BEFORE(mid, known, from && startOfDay(from), startOfDay(day)),
      )
      const [{ sum }] = rows as [{ sum: Paise }]
      return sum + (from === undefined ? 0 : (closed?.sums.get(mid) ?? 0))
    },

    /** All refunds that succeeded, oldest first, and the rows that deduct them. */
    matched() {
      matched ??= readMatched()
      return matched
    },

    /** Exceptions of the merchant's money: of those with one UTR, or failures of one order, an open one, else the oldest. */
    exceptions() {
      exceptions ??= readExceptions(client, mid, known)
      return exceptions
    },

    /** Payments that no settlement carries, and whose failure was resolved. */
    failedPayments() {
      failed ??= readFailed()
      return failed
    },

    /** Settlements of these days that carry no known payment, and were SUCCESS before they were FAILED. */
    async takenBackRows(days: Days): Promise<TakenBackRow[]> {
      const { rows } = await client.query<TakenBackRow>(TAKEN_BACK(mid, known, ...boundsOf(days), [...noOrder.keys()]))
      return rows
    },
  }

  async function readFailed(): Promise<FailedPayment[]> {
    const { rows } = await client.query<FailedPayment>(FAILED(mid, known))
    return rows
  }

  async function readMatched() {
    const refunds = await client.query<SuccessfulRefund>(REFUNDS(mid, known))
    const deductions = await client.query<Deduction>(DEDUCTIONS(mid, known, [...noOrder.keys()]))
    const refundsOfPayment = groupBy(refunds.rows, ({ utr }) => utr)
    return { refunds: refunds.rows, refundsOfPayment, ...matchDeductions(refunds.rows, deductions.rows, bankDays) }
  }
}

/** The exceptions `e` that meet `condition`, as they were known at $2, with their resolutions `r`; open ones come first. */
const exceptionsWhere = (condition: string) => `
  select e.exception_id as "exceptionId", e.kind, nullif(e.order_id, '') as "orderId", upper(e.utr) collate "C" as utr,
         e.amount_paise as amount, r.reason as resolution,
         ${textOf(dayOf('coalesce(e.paid_at, e.received_at)'))} as day, e.received_at as "receivedAt", r.resolved_at as "resolvedAt"
    from payment_exceptions e
    left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2
   where ${condition} and e.received_at <= $2
   order by r.reason is not null, e.received_at, e.exception_id`

/**
 * Reads the exceptions of money of no known order that settlements carry, by the mid of the settlement: of those with one UTR an
 * open one, else the oldest. The others, which any signer of an acquirer account can add, are not sent to merchants' reports.
 */
export async function readSettledOfNoOrder(client: PoolClient, known: Date): Promise<Snapshot['ofNoOrder']> {
  const { rows } = await client.query<SettledException & { mid: string }>(
    `with carried as (
       select mid, key, bool_or(${PAID_OUT}) as "isPaidOut"
         from (${settlementsOfAll(`${CARRIED_UTR} in (
                 select upper(e.utr) collate "C" from payment_exceptions e where e.mid = $1 and ${TELLS_OF_MONEY})`)}) s
        group by mid, key
     ), told as materialized (
       select distinct on (utr) *
         from (${exceptionsWhere(`e.mid = $1 and ${TELLS_OF_MONEY} and upper(e.utr) collate "C" in (select key from carried)`)}) e
        order by utr, resolution is not null, "receivedAt", "exceptionId"
     )
     select c.mid, told.*, c."isPaidOut" from carried c join told on told.utr = c.key`,
    ['', known],
  )
  return groupBy(rows, ({ mid }) => mid)
}

const EXCEPTIONS = prepared(exceptionsWhere(`e.mid = $1 and (${TELLS_OF_MONEY} or e.kind = 'failure after success')`))

/** Reads the exceptions of money of merchant `mid`, as they were known. */
export async function readExceptions(client: PoolClient, mid: string, known: Date) {
  const { rows: all } = await client.query<ExceptionOfMoney>(EXCEPTIONS(mid, known))
  const ofUtr = new Map<string, ExceptionOfMoney>()
  const failures = new Map<string, ExceptionOfMoney>()
  for (const one of all) {
    const [known, key] = one.kind === 'failure after success' ? [failures, one.orderId ?? ''] : [ofUtr, one.utr]
    if (!known.has(key)) known.set(key, one)
  }
  return { all, ofUtr, failures }
}

type Part = {
  part: 'paid' | 'settled' | 'unnamed' | 'uneven'
  item: string
  account: string | null
  day: string
  settledDay: string | null
  count: number
  rows: number
} & Record<'gross' | 'fee' | 'tax' | 'net', Paise>

const toItem = ({ item, account, day }: Pick<Part, 'item' | 'account' | 'day'>): UnevenItem => ({
  utr: item,
  day,
  waitsOn: account ?? undefined,
})

/**
 * Condition for rows of which `isUnnamed` that the UTR `key` leads to nothing: neither a payment of the merchant, nor one of his
 * exceptions, nor one of no known order, whose UTRs are the parameter `utrs`.
 */
const namesNothing = (
  isUnnamed: string,
  key: string,
  utrs: string,
) => `(${isUnnamed} and ${key} <> all (${utrs}::text[])
  and not exists (select from payments p where p.mid = $1 and p.utr = ${key} and p.received_at <= $2)
  and not exists (select from payment_exceptions e
                   where e.mid = $1 and upper(e.utr) collate "C" = ${key} and e.received_at <= $2 and ${TELLS_OF_MONEY}))`

/**
 * The days from $3 until before $4 of merchant $1 in one statement, as they were known at $2: sums of payments by the day of
 * their first settlement, sums of settlements, those of them that name nothing; and items that are more than a payment and one
 * settlement of its amount until its payout was due, or a payment without one, which have moved on the days from $6 to $7. $5 are
 * UTRs of exceptions of no known order, $8 the days and $9 the bank day on which the payments of each are due.
 */
const DAYS = prepared(`
  with moved as materialized (
    select item, kind, account, at, day, amount_paise, fee_paise, tax_paise, names_payment
      from ledger
     where mid = $1 and at >= $3 and at < $4 and ${KNOWN} and kind <> 'resolution'
  ), item as materialized (
    select item, min(at) filter (where kind = 'payment') as paid_at, min(day) filter (where kind = 'payment') as paid_day,
           min(account) filter (where kind = 'payment') as account,
           sum(amount_paise) filter (where kind = 'payment')::bigint as paid,
           min(at) filter (where kind = 'settlement') as settled_at, count(*) as movements, sum(amount_paise) as balance,
           min(day) filter (where day >= $6::date and day <= $7::date) as day
      from moved
     group by item
  ), payment as materialized (
    -- Only a payment without a settlement on these days is looked up among all settlements.
    select item, account, paid_day, paid, movements, day,
           case when settled_at >= paid_at - interval '1 day' then settled_at
                else (select min(at) from ledger s
                       where mid = $1 and s.item = i.item and kind = 'settlement' and at >= i.paid_at - interval '1 day'
                         and ${KNOWN}) end as settled_at
      from item i
     where paid_at is not null
  ), part as (
    select 'paid' as part, null as item, account, paid_day as day, ${dayOf('settled_at')} as settled_day,
           count(*) as count, 0 as rows, sum(paid)::bigint as gross, 0 as fee, 0 as tax, 0 as net
      from payment
     group by account, paid_day, ${dayOf('settled_at')}
     union all
    select 'settled', null, account, day, null, count(*), count(*) filter (where kind = 'settlement'),
           -sum(amount_paise)::bigint, sum(fee_paise)::bigint, sum(tax_paise)::bigint,
           (-sum(amount_paise) - sum(fee_paise) - sum(tax_paise))::bigint
      from moved
     where kind in ('settlement', 'deduction')
     group by account, day
     union all
    select 'unnamed', null, account, day, null, 0, count(*), -sum(amount_paise)::bigint, 0, 0, 0
      from moved m
     where kind = 'settlement' and not exists (select from payment p where p.item = m.item)
       and ${namesNothing('not names_payment', 'm.item', '$5')}
     group by account, day
     union all
    select 'uneven', item, account, day, null, 0, 0, 0, 0, 0, 0
      from payment
     where day is not null and movements = 1 and settled_at is null
     union all
    select 'uneven', item, null, day, null, 0, 0, 0, 0, 0, 0
      from item
      left join unnest($8::date[], $9::date[]) as calendar (paid_day, due) using (paid_day)
     where day is not null and (movements > 1 or paid_at is null)
       and (movements = 2 and balance = 0 and settled_at >= paid_at - interval '1 day'
            and ${dayOf('settled_at')} <= due) is not true
  )
  select part, item, account, ${textOf('day')} as day, ${textOf('settled_day')} as "settledDay", count, rows,
         gross, fee, tax, net
    from part
   order by array_position(array['paid', 'settled', 'unnamed'], part), part.day, item`)

const FIRST_DAY = prepared(`select ${textOf('day')} as day from ledger where mid = $1 order by at limit 1`)

const SUM_BEFORE = prepared(`
  select coalesce(sum(amount_paise), 0)::bigint as sum
    from ledger
   where mid = $1 and at >= coalesce($3::timestamptz, '-infinity') and at < $4 and ${KNOWN}`)

const TAKEN_BACK = prepared(`
  select s.account, ${textOf(dayOf('s.at'))} as day, s.utr, s.gross_paise as gross
    from (${settlementsKnown(`status = 'FAILED' and initiated_at >= $3 and initiated_at < $4`)}) s
   where ${WAS_PAID_OUT} and ${namesNothing('s.payment_utr is null', 's.key', '$5')}
   order by s.at, s.utr`)

const FAILED = prepared(`
  select distinct p.item as utr, ${textOf('p.day')} as day, p.account, p.amount_paise as amount
    from payment_exceptions e
    join payment_resolutions r on r.mid = $1 and r.exception_id = e.exception_id and r.resolved_at <= $2
    join ledger p on p.mid = $1 and p.order_id = e.order_id and p.kind = 'payment' and p.recorded_at <= $2
   where e.mid = $1 and e.kind = 'failure after success' and e.received_at <= $2
     and not exists (select from ledger s
                      where s.mid = $1 and s.item = p.item and s.kind = 'settlement' and s.at >= p.at - interval '1 day'
                        and s.recorded_at <= $2 and s.replaced_at > $2)`)

const DEDUCTIONS = prepared(`
  select utr, key as item, ${textOf(dayOf('at'))} as day, gross_paise as gross,
         array[upper(utr), upper(bank_reference_number)] as references,
         not ${namesNothing('payment_utr is null', 's.key', '$3')} as "isNamed"
    from (${settlementsKnown(`status = 'SUCCESS' and amount_paise < 0`)}) s
   order by at, utr`)

/** Refunds of merchant $1 that succeeded until $2. */
const REFUNDS = prepared(`
  select r.our_refund_id as "refundId", r.order_id as "orderId", p.utr, split_part(p.acquirer, ':', 1) as account,
         r.amount_paise as amount,
         ${textOf(dayOf('coalesce(p.paid_at, p.received_at)'))} as "paidOn", ${textOf(dayOf('r.ended_at'))} as day,
         upper(r.reference) as reference, p.kind = 'second' as "isOfSecond", p.amount_paise as paid,
         s.gross_paise as settled
    from refunds r
    join payments p on p.mid = $1 and p.utr = r.utr and p.order_id = r.order_id
    left join lateral (
      select gross_paise
        from (${settlementsKnown(`${CARRIED_UTR} = p.utr and ${PAID_OUT}`)}) of_payment
       where at >= coalesce(p.paid_at, p.received_at) - interval '1 day'
       order by at, utr
       limit 1) s on true
   where r.mid = $1 and r.status = 'SUCCESS' and r.ended_at <= $2
   order by r.ended_at, r.our_refund_id`)
