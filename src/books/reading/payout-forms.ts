import { plannedQuery, query } from '../../platform/db/query.ts'
import { startOfDay } from '../../platform/time.ts'
import { addDays } from '../ledger/bank-days.ts'
import {
  formOfRows,
  type KnownForms,
  type PayoutForm,
  type PayoutName,
  payoutKey,
  payoutOf,
} from '../ledger/judge-payouts.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { lineOfAccount, type MerchantSnapshot, NAMES_NOTHING, PAID_OUT } from './merchant.ts'
import { AS_KNOWN } from './snapshot.ts'

/**
 * Reads the forms of these payouts. A payout without lines has the form of its acquirer's last payout with lines,
 * otherwise of its acquirer's first, otherwise of the merchant's first, otherwise it is by totals.
 */
export async function readForms(merchant: MerchantSnapshot, payouts: readonly PayoutName[]): Promise<KnownForms> {
  if (payouts.length === 0) return new Map()
  const own = await formsByLines(merchant, payouts)
  const without = payouts.filter((payout) => !own.has(payoutKey(payout)))
  if (without.length === 0) return own
  const sources = await sourcesOf(merchant, without)
  const ofSources = await formsByLines(merchant, [...sources.values()])
  const inherited = without.map((payout): [string, PayoutForm] => {
    const source = sources.get(payoutKey(payout))
    return [payoutKey(payout), (source && ofSources.get(payoutKey(source))) ?? 'by sums']
  })
  return new Map([...own, ...inherited])
}

/** Returns the forms of these payouts by their own settlement lines, without the payouts that have no lines. */
async function formsByLines(
  { client, mid, known, unknownOrders, failed, namedSince, bankDays }: MerchantSnapshot,
  payouts: readonly PayoutName[],
): Promise<Map<string, PayoutForm>> {
  const of = { mid, known, explained: unknownOrders.map(({ utr }) => utr) }
  const periodsOf = (days: readonly string[]) => ({
    days,
    begins: days.map((day) => startOfDay(addDays(bankDays.previousBankDay(day), 1))),
    ends: days.map((day) => startOfDay(addDays(day, 1))),
    paidBegins: days.map((day) => startOfDay(bankDays.previousBankDay(day))),
    paidEnds: days.map(startOfDay),
  })
  const lines = await LINES(client, { ...of, ...periodsOf(daysOf(payouts)) })
  const mixed = lines.filter(({ rows, unnamedRows }) => unnamedRows > 0 && unnamedRows < rows)
  const left = mixed.length === 0 ? [] : await UNLINED(client, { ...of, ...periodsOf(daysOf(mixed)) })
  const failures = failed.map(({ acquirer, day }) => ({ acquirer, day: bankDays.nextBankDay(day), count: -1 }))
  const leftIn = groupBy([...left, ...failures], (one) => payoutKey(payoutOf(one, namedSince)))
  return new Map(
    lines.map((one) => {
      const left = (leftIn.get(payoutKey(one)) ?? []).reduce((sum, { count }) => sum + count, 0)
      return [payoutKey(one), formOfRows({ ...one, left }) as PayoutForm]
    }),
  )
}

/** Returns the payout with lines whose form each of these payouts without lines has. */
async function sourcesOf(
  merchant: MerchantSnapshot,
  payouts: readonly PayoutName[],
): Promise<ReadonlyMap<string, PayoutName>> {
  const { client, mid, known, accounts, bankDays } = merchant
  const found = await SOURCES(client, {
    ...{ mid, known, accounts, acquirers: payouts.map(({ acquirer }) => acquirer) },
    days: payouts.map(({ day }) => day),
    ends: payouts.map(({ day }) => startOfDay(addDays(bankDays.previousBankDay(day), 1))),
  })
  const isAlone = found.some(({ source }) => source === null)
  const [first] = isAlone ? await FIRST_PAYOUT(client, { mid, known, accounts }) : []
  return new Map(
    found.flatMap(({ acquirer, day, source }) => {
      const from = source === null ? first : { acquirer, day: source }
      const payout = from && { ...from, day: bankDays.bankDayFrom(from.day) }
      return payout ? [[payoutKey({ acquirer, day }), payout] as const] : []
    }),
  )
}

const daysOf = (payouts: readonly PayoutName[]) => [...new Set(payouts.map(({ day }) => day))]

type Known = { mid: string; known: Date }

type Periods = Known & {
  explained: readonly string[]
  /** Bank days, with the moments between which their lines and their payments are dated. */
  days: readonly string[]
  begins: readonly Date[]
  ends: readonly Date[]
  paidBegins: readonly Date[]
  paidEnds: readonly Date[]
}

/** The lines of each of these payouts that pay money out. */
const LINES = plannedQuery<PayoutName & { rows: number; unnamedRows: number }, Periods>(`
  select payout.day, acquirer, count(*) as rows, count(*) filter (where is_unnamed) as unnamed_rows
    from unnest(:days::date[], :begins::timestamptz[], :ends::timestamptz[]) as payout (day, beginning, ending)
   cross join lateral (
     select acquirer, ${NAMES_NOTHING} as is_unnamed
       from settlement_lines line
      where ${PAID_OUT} and at >= beginning and at < ending) line
   group by 1, 2`)

const PAID_AT = 'coalesce(paid.paid_at, paid.received_at)'

/**
 * The payments of these payouts that no settlement line dated up to the payout's day names. Reads the table instead of the
 * view `ledger`, which Citus cannot plan in this form.
 */
const UNLINED = plannedQuery<PayoutName & { count: number }, Periods>(`
  select payout.day, acquirer, count(*) as count
    from unnest(:days::date[], :paidBegins::timestamptz[], :paidEnds::timestamptz[], :ends::timestamptz[])
      as payout (day, beginning, ending, lines_ending)
   cross join lateral (
     select acquirer_of(acquirer) collate "C" as acquirer
       from payments paid
      where mid = :mid and ${PAID_AT} >= beginning and ${PAID_AT} < ending and received_at <= :known
        and not exists (select from settlement_lines line
                         where ${PAID_OUT} and line.item = paid.utr and line.at >= ${PAID_AT} - interval '1 day'
                           and line.at < lines_ending)) paid
   group by 1, 2`)

/** The day of each acquirer's last line before these payouts that pays money out, otherwise of its first line. */
const SOURCES = plannedQuery<PayoutName & { source: string | null }, Sources>(`
  select payout.acquirer, payout.day, coalesce(max(last.day), min(first.day)) as source
    from unnest(:acquirers::text[], :days::date[], :ends::timestamptz[]) as payout (acquirer, day, ending)
    left join unnest(:accounts::text[]) as named (account)
      on acquirer_of(named.account) is not distinct from payout.acquirer
    left join lateral (${lineOfAccount('named.account', `${AS_KNOWN} and line.at < payout.ending`, 'desc')}) last on true
    left join lateral (${lineOfAccount('named.account', AS_KNOWN)}) first on true
   group by payout.acquirer, payout.day`)

type Sources = Known & {
  accounts: readonly (string | null)[]
  acquirers: readonly (string | null)[]
  days: readonly string[]
  ends: readonly Date[]
}

/** The merchant's first payout with lines that pay money out. */
const FIRST_PAYOUT = query<PayoutName, Pick<Sources, 'mid' | 'known' | 'accounts'>>(`
  select acquirer_of(named.account) as acquirer, first.day
    from unnest(:accounts::text[]) as named (account)
   cross join lateral (${lineOfAccount('named.account', AS_KNOWN)}) first
   order by first.at, acquirer_of(named.account) collate "C" nulls first
   limit 1`)
