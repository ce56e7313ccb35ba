import { accountCommands } from './accounts.ts'
import { listAudit } from './audit.ts'
import { bankHolidayCommands } from './bank-holidays.ts'
import { bookCommands } from './books.ts'
import { closeMonthCommands } from './close-month.ts'
import type { Command } from './command.ts'
import { databaseCommands } from './database.ts'
import { disputeCommands } from './disputes.ts'
import { listExceptions, resolveExceptions } from './exceptions.ts'
import { feeCommands, reconcileFees } from './fees.ts'
import { findPayments, listPayments, showPayment } from './find-payments.ts'
import { keyCommands } from './keys.ts'
import { layoutCommands, statementLayoutCommands } from './layouts.ts'
import { merchantCommands } from './merchants.ts'
import { partnerCommands } from './partners.ts'
import { paymentCommands } from './payments.ts'
import { reconcileCommands } from './reconcile.ts'
import { refundCommands } from './refunds.ts'
import { settlementCommands } from './settlements.ts'
import { statementCommands } from './statements.ts'
import { ledgerCommands } from './tally.ts'
import { showToday } from './today.ts'
import { webhookCommands } from './webhooks.ts'

/** The commands by the title of their group, in the order of the help and of the console's navigation. */
export const GROUPS: Readonly<Record<string, readonly Command[]>> = {
  Overview: [showToday, listAudit],
  Database: databaseCommands,
  'Merchants, partners and API keys': [...merchantCommands, ...partnerCommands, ...keyCommands],
  'Acquirer accounts': accountCommands,
  Payments: [findPayments, showPayment, listPayments, ...paymentCommands, listExceptions, resolveExceptions],
  Refunds: refundCommands,
  Disputes: disputeCommands,
  Webhooks: webhookCommands,
  Settlements: [...settlementCommands, ...layoutCommands],
  'Bank statements': [...statementCommands, ...statementLayoutCommands],
  Reconciliation: [...reconcileCommands, ...bookCommands, reconcileFees, ...feeCommands],
  'Month-end': [...closeMonthCommands, ...ledgerCommands],
  'Bank holidays': bankHolidayCommands,
}
