import * as z from 'zod'
import { addDays, countDays, type Days } from '../../books/ledger/bank-days.ts'
import { findShortPayout } from '../../books/reconciliation/arrivals.ts'
import { openDiscrepancies } from '../../books/reconciliation/open-discrepancies.ts'
import { findPayout, type Payout, type PayoutRow } from '../../books/reconciliation/payout.ts'
import { findDiscrepancy, reconcile } from '../../books/reconciliation/reconcile.ts'
import { enterResolution, listResolutions, WRITTEN_OFF_AS } from '../../books/reconciliation/resolutions.ts'
import { amountOf } from '../../books/reconciliation/rests.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import { createPartners } from '../../gateway/tenants/partners.ts'
import type { Database } from '../../platform/db/pool.ts'
import { errorText, identifier, matching, pastedReference, text } from '../../platform/fields.ts'
import { groupRupees, toDecimalText } from '../../platform/money.ts'
import { dayText, nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { changingCommand, command } from './command.ts'
import { document, Money, type RecordData, rupees, table } from './data.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder } from './days.ts'
import { CommandError } from './errors.ts'
import { openList } from './open-differences.ts'
import { reportOf } from './reconcile-report.ts'

/** Days of one run: the days of a merchant are in memory until they are printed. */
const LONGEST_DAYS = 366

const OLDER_THAN_RULE = 'must be a whole number of days, 1 to 9999'
const DIFFERENCE_RULE =
  'must be the id of a difference, 16 hex digits, as ops reconcile or ops reconcile payouts shows it'

const RESOLUTIONS =
  'resolvedAt, resolvedBy, mid, day, kind, differenceId, orderId, merchantOrderId, as, ₹amount, reason'

const Report = z
  .object({
    ...DAYS,
    asOf: dayText.optional(),
    payout: pastedReference.optional(),
    mid: identifier.optional(),
    pid: identifier.optional(),
  })
  .superRefine(inOrder)
  .refine(
    ({ from, to, month, payout }) => (payout ? !from && !to && !month : month || (from && to)),
    'give --from and --to, --month, or --payout',
  )
  .refine(({ mid, pid }) => !(mid && pid), 'give --mid or --pid, not both')
  .refine(({ payout, asOf }) => !(payout && asOf), '--payout takes no --as-of')
  .refine(({ from, to }) => !from || !to || countDays(from, to) <= LONGEST_DAYS, `at most ${LONGEST_DAYS} days at once`)

export const reconcileCommands = [
  changingCommand('reconcile resolve', 'End a difference that no file will end', {
    usage: `--difference ID --reason "paid out by hand, UTR 523504870777" [--as ${WRITTEN_OFF_AS.join('|')}]`,
    schema: z.object({
      difference: matching(/^[0-9]{6}[0-9a-f]{10}$/, DIFFERENCE_RULE),
      reason: text(255),
      as: z.enum(WRITTEN_OFF_AS, errorText(`must be ${WRITTEN_OFF_AS.join(', ')}`)).optional(),
    }),
    async run({ difference: id, reason, as }, { db, change, now, person }) {
      const found = (await findDiscrepancy(db, id, now)) ?? (await findShortPayout(db, id, now))
      if (!found)
        throw new CommandError(
          `there is no difference ${id} now: see ops reconcile differences and ops reconcile payouts --open`,
        )
      if (found.resolution !== null) throw new CommandError(`${id} was resolved already: ${found.resolution}`)
      return change(async (client) => {
        if (!(await enterResolution(client, found, { reason, as, by: person, now }))) {
          throw new CommandError(`somebody else has just resolved ${id}: see ops reconcile of its day`)
        }
        const amounts = { paid: rupees(found.paid), settled: rupees(found.settled), owed: new Money(found.owed) }
        const entry = { resolution: reason, as: as ?? null, resolvedBy: person, resolvedAt: now }
        const message = `${id}, ${found.kind} of ${groupRupees(toDecimalText(found.owed))}, is resolved${as ? ` as ${as}` : ''}`
        return { data: document({ ...found, ...amounts, ...entry }, message), made: { mid: found.mid } }
      })
    },
  }),

  command('reconcile differences', 'List every difference that is open, of all days', {
    usage: '[--older-than DAYS] [--mid M1] [--csv]',
    schema: z.object({
      olderThan: matching(/^[1-9]\d{0,3}$/, OLDER_THAN_RULE)
        .default('1')
        .transform(Number),
      mid: identifier.optional(),
    }),
    csv: true,
    async run({ olderThan, mid }, { db, now }) {
      await requireMerchant(db, mid)
      const to = addDays(toIstDay(now), -olderThan)
      return openList(openDiscrepancies(db, { mid, to, now }), now)
    },
  }),

  command('reconcile resolutions', 'List what persons have entered to end differences', {
    usage: `[${DAYS_USAGE}] [--mid M1] [--csv]   (days of India on which it was entered, both included)`,
    schema: z
      .object({ ...DAYS, mid: identifier.optional() })
      .superRefine(inOrder)
      .refine(({ from, to }) => (from === undefined) === (to === undefined), 'give both --from and --to, or neither'),
    csv: true,
    async run({ mid, ...typed }, { db }) {
      await requireMerchant(db, mid)
      const { from, to } = daysOf(typed)
      const days = from && to ? { from: startOfDay(from), until: nextDay(startOfDay(to)) } : {}
      return table(RESOLUTIONS, await listResolutions(db, { mid, ...days }), 'nothing was resolved')
    },
  }),

  command('reconcile', 'Hold payments against settlements of some days', {
    usage:
      '(--from D --to D | --month YYYY-MM | --payout UTR|REFERENCE) [--as-of D] [--csv] [--mid M1 | --pid P1]   (days of India, both included)',
    schema: Report,
    csv: true,
    async run({ from, to, month, asOf, payout, ...merchants }, { db, now }) {
      const { mid, pid } = merchants
      await requireMerchant(db, mid)
      if (pid !== undefined && !(await createPartners(db).list()).some((one) => one.pid === pid)) {
        throw new CommandError(`pid ${pid} is unknown: see ops partners list`)
      }
      if (payout !== undefined) return payoutData(await findPayout(db, { payout, ...merchants, now }), payout)
      const days = daysOf({ from, to, month }) as Days
      return reportOf(reconcile(db, { ...days, ...merchants, now: knownAt(asOf, now) }), days)
    },
  }),
]

/** Refuses a mid that no merchant has. */
export async function requireMerchant(db: Database, mid: string | undefined): Promise<void> {
  if (mid === undefined || (await createMerchants(db).find(mid))) return
  throw new CommandError(`mid ${mid} is unknown: see ops merchants list`)
}

/** The end of the day `asOf`: later reports are left out. */
function knownAt(asOf: string | undefined, now: Date): Date {
  const end = asOf === undefined ? now : new Date(nextDay(startOfDay(asOf)).getTime() - 1)
  return end < now ? end : now
}

function payoutData({ rows, payments, rests }: Payout, payout: string): RecordData {
  const total = sumOf(rows, rests)
  const settlements = table(PAYOUT_COLUMNS, rows, {
    empty: `no settlement has the UTR or the bank reference ${payout}`,
    last: () => ({ mid: 'total', ...total }),
  })
  const due = payments.reduce((sum, { paid }) => sum + paid, 0)
  const named = `rows that name no payment are for these ${payments.length}, together ${groupRupees(toDecimalText(due))}:`
  const paid = table('mid, day, orderId, merchantOrderId, utr, ₹paid', payments, { title: named })
  const beside = table('day, account, ₹adjustments, ₹unknownOrders', rests, {
    title: 'what pull has not stored, which the net contains:',
  })
  return document({ payout, settlements, payments: paid, rests: beside, total }, settlements, paid, beside)
}

const PAYOUT_COLUMNS = 'mid, day, orderId, merchantOrderId, utr, settlementUtr, status, ₹paid, ₹gross, ₹fee, ₹tax, ₹net'

/** Sums of the rows that were paid out; the net with what was added or deducted beside them. */
function sumOf(rows: readonly PayoutRow[], rests: Payout['rests']) {
  const paidOut = rows.filter(({ status }) => status === 'SUCCESS')
  const sum = (name: 'paid' | 'gross' | 'fee' | 'tax' | 'net', beside = 0) =>
    new Money(paidOut.reduce((sum, row) => sum + (row[name] ?? 0), beside))
  const rest = rests.reduce((sum, one) => sum + amountOf(one), 0)
  return { paid: sum('paid'), gross: sum('gross'), fee: sum('fee'), tax: sum('tax'), net: sum('net', rest) }
}
