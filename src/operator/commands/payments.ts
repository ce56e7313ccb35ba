import * as z from 'zod'
import { importMatches } from '../../books/settlements/match-references.ts'
import { AcquirerError } from '../../errors.ts'
import { statusCheckRulesOf } from '../../gateway/acquirers/acquirers.ts'
import { checkAtAcquirer, reachedAcquirer } from '../../gateway/acquirers/check-status.ts'
import { countCustomers, eraseCustomers } from '../../gateway/payments/erase-customers.ts'
import { type DailyReportResult, importDailyReport } from '../../gateway/payments/import-daily-report.ts'
import { type Contradiction, possibleTime } from '../../gateway/payments/outcome.ts'
import { createReports, type Recorded } from '../../gateway/payments/reports.ts'
import { UNLIMITED } from '../../gateway/payments/status-check-times.ts'
import { createStatusChecks } from '../../gateway/payments/status-checks.ts'
import { createAcquirerAccounts } from '../../gateway/tenants/acquirer-accounts.ts'
import { inTransaction } from '../../platform/db/pool.ts'
import { mobileAsWritten, pastedUtr, reportedUtr, storedEmail, text, UTR_RULE } from '../../platform/fields.ts'
import { counted, lenientAmountText } from '../../platform/money.ts'
import { DAY_MS, toIstTime } from '../../platform/time.ts'
import { createPaymentHistory } from '../support/payment-history.ts'
import { countsText } from '../texts.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { timeOfChange } from './barrier.ts'
import { type Context, change, changeInSteps, isOpen, withhold } from './command.ts'
import { CommandError, UsageError } from './errors.ts'
import { flag, oneOf, optional, type RecordFields, toggle } from './field.ts'
import { ACQUIRER_ACCOUNT, amountText, DRY_RUN, daysFrom, ORDER_ID, SINCE, YES } from './fields.ts'
import { FILE, readFile } from './file.ts'
import { findOrder } from './find-payments.ts'
import { layoutOf } from './layout-fields.ts'
import { findLayout } from './layouts.ts'
import { document } from './result.ts'
import { FiguresChanged } from './run.ts'
import { lockedAt } from './settlements.ts'

const CONFIRM_UTR = pastedUtr.pipe(reportedUtr).pipe(z.string(`${UTR_RULE}, and not a placeholder such as NA`))

const LATE = 'The merchant had already received an unpaid status, so the payment is stored as a late payment.'

const REJECTED: Record<Contradiction, string> = {
  'unknown order': 'the order does not exist',
  'amount differs': 'the amount differs from the order’s amount: see ops payments show; nothing was recorded',
  'UTR of another order': 'another order of the merchant already has this UTR',
  'double payment': 'the order is already paid, with another UTR: add --double if the bank received both payments',
  'failure after success': 'the order is already paid',
}

export const paymentCommands = [
  change('payments confirm', 'Record a payment that the bank confirmed', {
    title: 'Confirm payment',
    fields: {
      orderId: ORDER_ID,
      utr: flag(CONFIRM_UTR, 'UTR', 'UTR', 'pasted text around it is ignored'),
      amount: {
        ...flag(lenientAmountText, 'RUPEES', 'Amount that the bank received', 'in rupees'),
        prefill: ({ amount }: RecordFields) => amountText(amount),
      },
      paidAt: optional({ ...SINCE, label: 'Time of the payment at the bank', hint: 'IST; default: unknown' }),
      note: optional(flag(text(255), 'TEXT', 'Note', 'stored with the payment')),
      double: optional(toggle('The bank received both payments', 'store this one as a double payment')),
    },
    permits: (record) => isOpen(record) && record.status !== 'SUCCESS',
    // The audit stores only the reference, because the text pasted around it may contain the customer's name.
    audited: { utr: (typed) => pastedUtr.parse(typed) },
    async run({ orderId, utr, amount, paidAt, note, double }, { client, db, now, person }) {
      const createdAt = paidAt && (await createPaymentHistory(db, now).find(orderId))?.createdAt
      if (createdAt && !possibleTime(paidAt, now, createdAt)) {
        const created = `the order was created at ${toIstTime(createdAt)} and the time is now ${toIstTime(now)}`
        throw new CommandError(`--paid-at ${toIstTime(paidAt)} is impossible: ${created}`)
      }
      const report = { orderId, status: 'SUCCESS' as const, utr, amount, paidAt }
      // Any other contradiction is the operator's typing error, not a report from the bank. Storing such an error as an
      // exception would unbalance the reconciliation.
      const saves = (kind: Contradiction) =>
        kind === 'UTR of another order' || (kind === 'double payment' && double === true)
      const reporting = { source: 'operator' as const, ...STORING, person, note, saves }
      const recorded = await createReports(client).record(report, reporting)
      if ('exception' in recorded) {
        const { exception } = recorded
        if (!saves(exception)) throw new CommandError(REJECTED[exception])
        const figures = { 'stored as': `exception: ${exception}` }
        if (exception !== 'double payment') {
          const error = new CommandError(`${REJECTED[exception]}; stored as an exception, see ops payments exceptions`)
          return { figures, failure: () => error }
        }
        const message = `Order ${orderId} is paid twice. The second payment is stored as a double payment; refund it with ops refunds create --exception.`
        return { data: document({ orderId, status: 'SUCCESS', changed: false, exception }, message), figures }
      }
      const { changed, late } = recorded
      const isPaid = changed ? `Order ${orderId} is paid` : `Order ${orderId} was already paid`
      const message = `${isPaid}.${late ? ` ${LATE}` : ''}`
      const fields = { orderId, status: 'SUCCESS', changed, ...(late && { exception: 'late payment' }) }
      const stored = late ? 'late payment' : changed ? 'payment of the order' : 'nothing: the payment is stored already'
      return { data: document(fields, message), figures: { 'stored as': stored } }
    },
  }),

  changeInSteps('payments enquire', 'Check an order’s status at its acquirer', {
    title: 'Check status',
    fields: { orderId: ORDER_ID },
    isUsual: true,
    permits: (record) => isOpen(record) && record.enquiries !== null,
    confirm: ({ orderId }, context) => planStatusCheck(orderId, context),
    async run({ orderId }, { isConfirmed, ...context }, { client, most, made }) {
      const { db, now, person } = context
      const statusChecks = createStatusChecks(db)
      const statusCheck = await statusChecks.claim(orderId, most, now, isConfirmed ? made : undefined)
      if (statusCheck === undefined) throw new FiguresChanged(await planStatusCheck(orderId, context))
      const count = `status check ${statusCheck.statusChecks}${most < UNLIMITED ? ` of ${most}` : ''}`
      const explain = async (error: unknown) => {
        if (!(error instanceof AcquirerError)) throw error
        if (reachedAcquirer(error)) throw new CommandError(`${error.message} (${count} is used up)`)
        await statusChecks.repeat(statusCheck, { isChecked: false, isUnreadable: false, most }, now)
        throw new CommandError(error.message)
      }
      const checking = { client, reports: createReports(db), person, ...STORING }
      const recorded = await checkAtAcquirer(statusCheck, checking).catch(explain)
      const fields = { orderId, enquiries: statusCheck.statusChecks, ...(recorded ?? { changed: false, late: false }) }
      return document(fields, `${describeRecorded(recorded)} (${count}).`)
    },
  }),

  changeInSteps('payments import', 'Import a daily transaction report', {
    title: 'Import payments',
    isLong: 'in parts',
    note: 'Without --layout, FILE is CSV with the columns order_id or acquirer_reference, status, utr, amount, paid_at and optionally acquirer_payment_id.',
    fields: {
      file: FILE,
      layout: optional(layoutOf('payments')),
      acquirer: optional(ACQUIRER_ACCOUNT),
      dryRun: DRY_RUN,
    },
    async run({ file, layout: layoutName, acquirer }, context) {
      const { db, person } = context
      if (acquirer === undefined && (await createAcquirerAccounts(db).list()).length > 0)
        throw new UsageError(WHOSE_REPORT)
      const layout = layoutName === undefined ? undefined : await findLayout(db, layoutName, 'payments')
      const warnings: string[] = []
      const { isDry = false } = context.change
      const result = await readFile(file, context, (csv, progress) =>
        importDailyReport(db, csv, {
          ...{ acquirer, layout, person, isDry, ...STORING },
          onChecked: progress('line checked', 'lines checked'),
          onRecorded: isDry ? progress('line judged', 'lines judged') : progress('line recorded', 'lines recorded'),
          onWarning: (text) => warnings.push(text),
        }),
      )
      if (isDry) return previewOf(result, warnings)
      // After the lines, so that the bank references in this file match rows too.
      const { importId: settlementImport, matched } = await inTransaction(db, async (client) =>
        importMatches(client, { now: await lockedAt(client), person }),
      )
      const { recorded, unchanged, exceptions } = result
      const rows = counted(matched, 'settlement row')
      const matches = matched > 0 ? `; ${rows} matched with payments, settlement import ${settlementImport}` : ''
      const message = `${counted(recorded, 'payment')} recorded, ${unchanged} unchanged; exceptions: ${countsText(exceptions)}${matches}.`
      const counts = { ...result, matched, settlementImport }
      return { data: document({ ...counts, warnings }, message), created: matched > 0 ? counts : result, warnings }
    },
  }),

  changeInSteps('payments forget-customers', 'Erase customer data', {
    note: 'Only --older-than-days 365 or more runs without confirmation.',
    fields: {
      which: oneOf([
        { olderThanDays: flag(daysFrom(1), 'N', 'Erase the data of orders older than N days') },
        { email: flag(text(254).transform(storedEmail), 'ADDRESS', 'Erase the data of this e-mail address') },
        { mobile: flag(mobileAsWritten, 'NUMBER', 'Erase the data of this mobile number') },
      ]),
      ...{ dryRun: DRY_RUN, yes: YES },
    },
    // The audit must not store the customer data that the command erases.
    audited: { email: withhold, mobile: withhold },
    asks: ({ which: { olderThanDays = 0 }, yes }) => !yes && olderThanDays < RETAINED_DAYS,
    async confirm({ which: { olderThanDays = RETAINED_DAYS, email, mobile } }, { db, now, withProgress }) {
      const before = new Date(now.getTime() - olderThanDays * DAY_MS)
      const customers = email !== undefined ? { email } : mobile !== undefined ? { mobile } : { before, expiredBy: now }
      const warnings = olderThanDays < RETAINED_DAYS ? [RETAIN_LONGER] : []
      const found = await withProgress((progress) =>
        countCustomers(db, customers, progress('intent found', 'intents found')),
      )
      const change = `erase the customer data of ${counted(found, 'intent')}`
      const data = document({ wouldForget: found, warnings }, `Would ${change}.`)
      const question = found > 0 ? change : undefined
      return { customers, data, question, figures: { intents: found }, warnings }
    },
    async run(_, { db, withProgress, noteInText, isConfirmed }, { customers, warnings, question }) {
      if (question !== undefined && !isConfirmed) noteInText(`${question} …`)
      const erased = await withProgress((progress) =>
        eraseCustomers(db, customers, progress('intent erased', 'intents erased')),
      )
      const message = `Customer data of ${counted(erased, 'intent')} erased.`
      return { data: document({ forgotten: erased, warnings }, message), created: { forgotten: erased }, warnings }
    },
  }),
]

/** Returns what an import would do. Its counts are not compared when it is run, because other reports may arrive meanwhile. */
function previewOf({ recorded, unchanged, exceptions }: DailyReportResult, warnings: readonly string[]) {
  const counts = { recorded, unchanged, ...exceptions }
  const message = `Dry run: nothing was stored. ${counted(recorded, 'payment')} would be recorded, ${unchanged} unchanged; exceptions: ${countsText(exceptions)}.`
  return {
    data: document({ recorded, unchanged, exceptions, warnings, dryRun: true }, message),
    ...{ figures: counts, warnings: [...warnings, MEANWHILE] },
  }
}

const MEANWHILE = 'Other reports of these payments may arrive meanwhile, so the import may count differently.'

/** Reads the clock when a report is stored, because a payment may become late, or its day may end, during a command. */
const STORING = { now: () => new Date(), barrier: timeOfChange }

const WHOSE_REPORT =
  'payments import requires --acquirer, because an acquirer account exists: name the account that the report is from, such as ' +
  '--acquirer setu:acme, --acquirer cashfree for the account of the environment, or --acquirer direct'

/** Returns what a status check uses. `made` is the number of the order's status checks if the acquirer limits them. */
async function planStatusCheck(orderId: string, context: Context) {
  const { acquirer, enquiries } = await findOrder(context.db, orderId, context.now)
  const client = await reachAccounts(context).clientOf(acquirer)
  const rules = statusCheckRulesOf(acquirer)
  if (!client || !rules)
    throw new CommandError(`the status cannot be checked at acquirer ${acquirer}: check its configuration`)
  const { most } = rules
  if (most === UNLIMITED) return { client, most, figures: { acquirer } }
  const made = enquiries ?? 0
  if (made >= most) throw new CommandError(`all ${most} status checks of the order are used up`)
  return { client, most, made, figures: { acquirer, 'status checks left': most - made } }
}

const RETAINED_DAYS = 365
const RETAIN_LONGER =
  'from 13 May 2027 at the latest, rule 8(3) of the DPDP Rules 2025 requires this data to be retained for one year: use 365 days or more'

function describeRecorded(recorded: Recorded | undefined): string {
  if (recorded === undefined) return 'The acquirer reports no final payment'
  if ('exception' in recorded) return `Stored as an exception: ${REJECTED[recorded.exception]}`
  return recorded.changed ? 'Recorded the acquirer’s report' : 'The acquirer reports nothing new'
}
