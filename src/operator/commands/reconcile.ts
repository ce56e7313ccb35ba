import * as z from 'zod'
import { openDiscrepancies } from '../../books/closing/open-discrepancies.ts'
import { addDays, countDays } from '../../books/ledger/bank-days.ts'
import { amountOf } from '../../books/reading/rests.ts'
import type { MerchantError } from '../../books/reading/snapshot.ts'
import { findShortPayout } from '../../books/reports/arrivals.ts'
import { findPayout, type Payout, type PayoutRow } from '../../books/reports/payout.ts'
import { findDiscrepancy, reconcile } from '../../books/reports/reconcile.ts'
import { enterResolution, listResolutions, WRITTEN_OFF_AS } from '../../books/reports/resolutions.ts'
import { createPartners } from '../../gateway/tenants/partners.ts'
import { errorText, matching } from '../../platform/fields.ts'
import { addPaise, counted, toIndianRupees } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { timeOfChange } from './barrier.ts'
import { change, read } from './command.ts'
import { CommandError, existing } from './errors.ts'
import { flag, oneOf, optional } from './field.ts'
import {
  ANY_PERIOD,
  AS_OF,
  bothDaysOf,
  daysOf,
  FROM,
  inOrder,
  knownAt,
  LAST_MONTH,
  MID,
  PAYOUT,
  PID,
  REASON,
  TO,
} from './fields.ts'
import { collectErrors, errorsLine } from './merchant-errors.ts'
import { requireMerchant } from './merchants.ts'
import { openPayouts } from './payout-list.ts'
import { openList, reportOf } from './reconcile-report.ts'
import { document, Money, type RecordData, rupees, table } from './result.ts'

/** Longest period in days, because all days of a merchant are in memory until they are printed. */
const LONGEST_DAYS = 366

const OLDER_THAN = matching(/^[1-9]\d{0,3}$/, 'must be a whole number of days, 1 to 9999')
const DIFFERENCE_RULE =
  'must be the id of a discrepancy, 16 hex digits, as printed by ops reconcile or ops reconcile payouts'
const DIFFERENCE = matching(/^[0-9]{6}[0-9a-f]{10}$/, DIFFERENCE_RULE)

const RESOLUTIONS =
  'resolvedAt, resolvedBy, mid, day, kind, differenceId, orderId, merchantOrderId, as, ₹amount, reason'

const AS = WRITTEN_OFF_AS.join(', ')
const WRITTEN_OFF = z.enum(WRITTEN_OFF_AS, errorText(`must be ${AS}`))

export const reconciliation = read('reconcile', 'Reconcile payments with settlements', {
  title: 'Reconciliation',
  isLong: true,
  fields: {
    of: oneOf(
      [{ from: FROM, to: TO, asOf: AS_OF }, { month: LAST_MONTH, asOf: AS_OF }, { payout: PAYOUT }],
      ({ from, to }) =>
        from && to && from <= to && countDays(from, to) > LONGEST_DAYS
          ? `the period must be at most ${LONGEST_DAYS} days`
          : inOrder({ from, to }),
    ),
    merchants: oneOf([{}, { mid: MID }, { pid: PID }]),
  },
  csv: true,
  async run({ of: { asOf, payout, ...days }, merchants }, { db, now }) {
    const { mid, pid } = merchants
    await requireMerchant(db, mid)
    if (pid !== undefined) {
      const partner = (await createPartners(db).list()).find((one) => one.pid === pid)
      existing(partner, `pid ${pid}`, 'partners list')
    }
    if (payout !== undefined) return payoutData(await findPayout(db, { payout, ...merchants, now }), payout)
    const period = bothDaysOf(days)
    const { rows, failure } = collectErrors(reconcile(db, { ...period, ...merchants, now: knownAt(asOf, now) }))
    return { data: reportOf(rows, period), failure }
  },
})

export const reconcileCommands = [
  reconciliation,

  change('reconcile resolve', 'Resolve a discrepancy manually', {
    title: 'Resolve',
    note: 'Use it for discrepancies that no settlement file will clear.',
    fields: {
      difference: { ...flag(DIFFERENCE, 'ID', 'Discrepancy', '16 hex digits'), record: {} },
      reason: REASON,
      as: optional(flag(WRITTEN_OFF, WRITTEN_OFF_AS.join('|'), 'Ledger account of the amount', AS)),
    },
    async run({ difference: id, reason, as }, { client, db, now, person }) {
      const resolvedAt = await timeOfChange(client)
      const errors: MerchantError[] = []
      const onError = (error: MerchantError) => errors.push(error)
      const found = (await findDiscrepancy(db, id, now, onError)) ?? (await findShortPayout(db, id, now, onError))
      if (!found) {
        const unread = errorsLine(errors)
        if (unread) throw new CommandError(`discrepancy ${id} was not found, but ${unread}`)
        throw new CommandError(
          `discrepancy ${id} does not exist or is cleared: see ops reconcile differences and ops reconcile payouts --open`,
        )
      }
      if (found.resolution !== null)
        throw new CommandError(`discrepancy ${id} was already resolved: ${found.resolution}`)
      if (!(await enterResolution(client, found, { reason, as, by: person, now: resolvedAt })))
        throw new CommandError(`another operator has just resolved discrepancy ${id}: run ops reconcile for its day`)
      const amounts = { paid: rupees(found.paid), settled: rupees(found.settled), owed: new Money(found.owed) }
      const entry = { resolution: reason, as: as ?? null, resolvedBy: person, resolvedAt }
      const message = `Discrepancy ${id}, ${found.kind} of ${toIndianRupees(found.owed)}, resolved${as ? ` as ${as}` : ''}.`
      const { kind, day, mid, orderId, settlementUtr } = found
      return {
        data: document({ ...found, ...amounts, ...entry }, message),
        created: { mid },
        figures: { kind, amount: amounts.owed, day, mid, orderId, settlementUtr },
      }
    },
  }),

  read('reconcile differences', 'List open discrepancies and open payouts', {
    title: 'Discrepancies',
    isLong: true,
    note: 'Open payouts are those of the last 31 days. The CSV contains only discrepancies.',
    fields: {
      olderThan: flag(OLDER_THAN.default('1').transform(Number), 'DAYS', 'Smallest age in days', 'default: 1'),
      ...{ mid: optional(MID), asOf: AS_OF },
    },
    csv: true,
    async run({ olderThan, mid, asOf }, { db, now: today }) {
      await requireMerchant(db, mid)
      const now = knownAt(asOf, today)
      const to = addDays(toIstDay(now), -olderThan)
      const { rows, failure } = collectErrors(openDiscrepancies(db, { mid, to, now }))
      const { payouts, failure: failureOfPayouts } = openPayouts(db, { mid, now })
      return { data: openList(rows, payouts, now), failure: () => failure() ?? failureOfPayouts() }
    },
  }),

  read('reconcile resolutions', 'List discrepancies that operators resolved', {
    title: 'Resolutions',
    note: 'The days are those on which the discrepancies were resolved.',
    fields: { period: ANY_PERIOD, mid: optional(MID) },
    csv: true,
    async run({ mid, period }, { db }) {
      await requireMerchant(db, mid)
      const { from, to } = daysOf(period)
      const days = from && to ? { from: startOfDay(from), until: nextDay(startOfDay(to)) } : {}
      return table(RESOLUTIONS, await listResolutions(db, { mid, ...days }), 'No resolved discrepancies.')
    },
  }),
]

function payoutData({ rows, payments, rests }: Payout, payout: string): RecordData {
  const total = sumOf(rows, rests)
  const settlements = table(PAYOUT_COLUMNS, rows, {
    empty: `No settlements with the UTR or bank reference ${payout}.`,
    last: () => ({ mid: 'total', ...total }),
  })
  const due = payments.reduce((sum, { paid }) => addPaise(sum, paid), 0)
  const named = `Rows without a payment reference are for these ${counted(payments.length, 'payment')}, total ${toIndianRupees(due)}:`
  const paid = table('mid, day, orderId, merchantOrderId, utr, ₹paid', payments, { title: named })
  const beside = table('day, account, ₹adjustments, ₹unknownOrders', rests, {
    title: 'Included in net, but not stored by settlements pull:',
  })
  return document({ payout, settlements, payments: paid, rests: beside, total }, settlements, paid, beside)
}

const PAYOUT_COLUMNS = 'mid, day, orderId, merchantOrderId, utr, settlementUtr, status, ₹paid, ₹gross, ₹fee, ₹tax, ₹net'

/**
 * Sums the settlement lines that were paid out. The net sum includes amounts that the acquirer added or deducted
 * outside these lines.
 */
function sumOf(rows: readonly PayoutRow[], rests: Payout['rests']) {
  const paidOut = rows.filter(({ status }) => status === 'SUCCESS')
  const sum = (name: 'paid' | 'gross' | 'fee' | 'tax' | 'net', beside = 0) =>
    new Money(paidOut.reduce((sum, row) => addPaise(sum, row[name] ?? 0), beside))
  const rest = rests.reduce((sum, one) => addPaise(sum, amountOf(one)), 0)
  return { paid: sum('paid'), gross: sum('gross'), fee: sum('fee'), tax: sum('tax'), net: sum('net', rest) }
}
