import * as z from 'zod'
import { createExceptions } from '../../gateway/payments/read-exceptions.ts'
import { createRefund, type RefundResult } from '../../gateway/refunds/create-refund.ts'
import { retryRefund } from '../../gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../gateway/refunds/record-update.ts'
import { REASON_CHARACTERS, type Refund, type RefundUpdate, toRefundData } from '../../gateway/refunds/refund.ts'
import { returnRefund } from '../../gateway/refunds/return-refund.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Database } from '../../platform/db/pool.ts'
import { identifier, pastedUtr, text } from '../../platform/fields.ts'
import { lenientRefund, toIndianRupees } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import type { Result } from '../terminal/print.ts'
import { timeOfChange } from './barrier.ts'
import { type ChangingContext, changingCommand, command, withhold } from './command.ts'
import { CommandError } from './errors.ts'
import { exceptionId } from './exceptions.ts'
import { findOrder, ourOrderId, ourRefundId, refundTable } from './find-payments.ts'
import { document, Money, type RecordData, record } from './result.ts'

const Which = z.object({ refund: ourRefundId })

export const refundCommands = [
  command('refunds list', 'List refunds', {
    usage: '[--open] [--mid MID] [--acquirer ACQUIRER[:ACCOUNT]]',
    schema: z.object({ open: z.boolean().default(false), mid: identifier.optional(), acquirer: text(100).optional() }),
    console: 'read',
    async run(filter, { db }) {
      return refundTable(await listRefunds(db, filter), { empty: 'No refunds.' })
    },
  }),

  command('refunds show', 'Show a refund', {
    usage: '--refund ID',
    schema: Which,
    console: 'read',
    run: async ({ refund: id }, { db }) => shownRefund(await findRefund(db, id)),
  }),

  changingCommand('refunds create', 'Create a refund', {
    usage: '(--order-id ID [--amount RUPEES] --note TEXT | --exception ID [--note TEXT])',
    note: 'With --exception, the whole double or late payment is refunded.',
    schema: z
      .object({
        orderId: ourOrderId.optional(),
        exception: exceptionId.optional(),
        amount: lenientRefund.optional(),
        note: text(100, 3).optional(),
      })
      .refine(
        ({ orderId, exception, amount, note }) =>
          exception === undefined ? orderId !== undefined && note !== undefined : !orderId && amount === undefined,
        'give --order-id and --note, or --exception without --amount to refund its whole payment',
      ),
    console: 'act',
    // Withholds the note, because the audit is never erased and a note may name the customer.
    audited: { note: withhold },
    async run({ orderId = '', exception, amount, note }, { db, now, person }) {
      const request =
        exception === undefined
          ? { mid: (await findOrder(db, orderId, now)).mid, orderId, note: note as string, amount }
          : await ofException(db, exception, note)
      const created = await createRefund(db, { ...request, createdBy: person }, now)
      if ('rejected' in created) throw new CommandError(REJECTED[created.rejected])
      const { refund } = created
      const next =
        refund.acquirer === 'direct'
          ? `Refund the customer at the bank, then run ops refunds done --refund ${refund.ourRefundId} --reference RRN`
          : `The service sends it to ${refund.acquirer}.`
      const message = `Refund ${refund.ourRefundId} of ${toIndianRupees(refund.amount)} created. ${next}`
      return {
        data: document(toRefundData(refund), message),
        created: { refundId: refund.ourRefundId, mid: refund.mid },
      }
    },
  }),

  changingCommand('refunds retry', 'Send a refund with unknown outcome again', {
    usage: '--refund ID',
    note: 'Check with the bank first: run this command only if the bank has not carried out the refund.',
    schema: Which,
    console: 'act',
    async run({ refund: id }, { db, now }) {
      const found = await findRefund(db, id)
      const isScheduled = await retryRefund(db, found, now)
      const refund = await findRefund(db, id)
      if (!isScheduled) {
        rejectFinal(refund)
        throw new CommandError(
          `refund ${id} has no open exception "refund unsure": only a refund with an unknown outcome can be sent again`,
        )
      }
      return document(toRefundData(refund), `Refund ${id} scheduled to be sent again.`)
    },
  }),

  changingCommand('refunds done', 'Mark a refund as carried out by the bank', {
    usage: '--refund ID --reference RRN',
    schema: Which.extend({ reference: pastedUtr }),
    console: 'act',
    // The audit stores only the reference, because the text pasted around it may contain the customer's name.
    audited: { reference: (typed) => pastedUtr.parse(typed) },
    run: ({ refund, reference }, context) => endByPerson(refund, { status: 'SUCCESS', reference }, context),
  }),

  changingCommand('refunds fail', 'Mark a refund as failed', {
    usage: '--refund ID --reason TEXT',
    schema: Which.extend({ reason: text(REASON_CHARACTERS) }),
    console: 'act',
    run: ({ refund, reason }, context) => endByPerson(refund, { status: 'FAIL', reference: '', reason }, context),
  }),

  changingCommand('refunds returned', 'Record that the bank returned a refund', {
    usage: '--refund ID --reference RRN --reason TEXT',
    note: 'For refunds through direct that were marked as done. The whole amount can be refunded again.',
    schema: Which.extend({ reference: pastedUtr, reason: text(REASON_CHARACTERS) }),
    console: 'act',
    audited: { reference: (typed) => pastedUtr.parse(typed) },
    async run({ refund: id, reference, reason }, { db, person }) {
      const returned = { reference, reason, returnedBy: person }
      const recording = { now: () => new Date(), barrier: timeOfChange }
      const { refund, isReturned } = await returnRefund(db, await findRefund(db, id), returned, recording)
      if (!isReturned) rejectReturn(refund)
      return shownRefund(refund)
    },
  }),
]

async function findRefund(db: Database, id: string): Promise<Refund> {
  const [refund] = await listRefunds(db, { ourRefundId: id })
  if (refund === undefined) throw new CommandError(`refund ${id} does not exist: see ops refunds list`)
  return refund
}

async function endByPerson(id: string, update: RefundUpdate, { db, person }: ChangingContext): Promise<Result> {
  const recording = { source: person, by: 'person', now: () => new Date(), barrier: timeOfChange } as const
  const ended = await createRefundUpdates(db).record(await findRefund(db, id), update, recording)
  const { refund, rejected, exception } = ended as NonNullable<typeof ended>
  if (rejected === 'final') rejectFinal(refund)
  if (rejected !== undefined) {
    throw new CommandError(
      `${refund.acquirer} still reports the status of refund ${id}: wait for its final status or for an exception`,
    )
  }
  return {
    data: shownRefund(refund),
    ...(exception && { warnings: [`exception ${exception}: see ops payments exceptions --open`] }),
  }
}

function rejectFinal({ ourRefundId, status, reference, reason, endedAt }: Refund): void {
  if (endedAt === null) return
  const detail = status === 'SUCCESS' ? `reference ${reference || 'unknown'}` : reason
  throw new CommandError(
    `refund ${ourRefundId} already has the final status ${status} since ${toIstTime(endedAt)}: ${detail}`,
  )
}

function rejectReturn(refund: Refund): never {
  if (refund.status === 'FAIL') rejectFinal(refund)
  const { ourRefundId: id, acquirer } = refund
  if (acquirer === 'direct') throw new CommandError(`refund ${id} is still open: run ops refunds fail --refund ${id}`)
  throw new CommandError(
    `refund ${id} was sent by ${acquirer}: only a refund through direct can be recorded as returned`,
  )
}

/**
 * Returns the refund request that resolves an exception. The request contains the UTR for a double payment, but not for
 * a late payment.
 */
async function ofException(db: Database, id: string, note: string | undefined) {
  const found = await createExceptions(db).find(id)
  if (!found) throw new CommandError(`exception ${id} does not exist: see ops payments exceptions`)
  const { mid, orderId, kind, utr, resolution, resolvedBy } = found
  if (kind !== 'double payment' && kind !== 'late payment') {
    throw new CommandError(
      `exception ${id} is of kind ${kind}: only a double payment or a late payment can be refunded`,
    )
  }
  // The refund that resolved the exception may have been returned: the exception stays resolved, and its payment is
  // refunded again.
  const ofOrder = resolution === null ? [] : await listRefunds(db, { mid, orderId })
  if (resolution !== null && !ofOrder.some((one) => one.exceptionId === id && one.succeededAt !== null))
    throw new CommandError(`exception ${id} was already resolved by ${resolvedBy}: ${resolution}`)
  const own = kind === 'double payment' ? { utr: utr.toUpperCase() } : {}
  return { mid, orderId, note: note ?? kind, amount: undefined, exceptionId: id, ...own }
}

const REJECTED: Record<Extract<RefundResult, { rejected: string }>['rejected'], string> = {
  'unknown order': 'the order does not exist',
  'not successful': 'the order has no successful payment: see ops payments show',
  'refund_id exists': 'the refund already exists',
  exceeds: 'the amount exceeds the unrefunded rest of the payment: see its refunds with ops payments show',
  'too many': 'the payment already has 100 refunds, the maximum',
}

function shownRefund(refund: Refund): RecordData {
  const { requested: _, dueAt: __, refundId, ourRefundId, ...rest } = refund
  const fields = { refundId: ourRefundId, refund_id: refundId, ...rest, amount: new Money(refund.amount, true) }
  return document(toRefundData(refund), record(fields))
}
