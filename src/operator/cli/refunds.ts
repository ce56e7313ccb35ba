import * as z from 'zod'
import { createExceptions } from '../../gateway/payments/read-exceptions.ts'
import { createRefund, type RefundResult } from '../../gateway/refunds/create-refund.ts'
import { retryRefund } from '../../gateway/refunds/due-refunds.ts'
import { createRefundUpdates } from '../../gateway/refunds/record-update.ts'
import { REASON_CHARACTERS, type Refund, type RefundUpdate, toRefundData } from '../../gateway/refunds/refund.ts'
import { isLeftToPerson, listRefunds } from '../../gateway/refunds/store.ts'
import type { Database } from '../../platform/db/pool.ts'
import { identifier, matching, pastedUtr, text } from '../../platform/fields.ts'
import { shopRefund, toIndianText } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { type ChangingContext, changingCommand, command, withhold } from './command.ts'
import { document, Money, type RecordData, record, table } from './data.ts'
import { CommandError } from './errors.ts'
import { exceptionId } from './exceptions.ts'
import { findOrder, ourOrderId } from './find-payments.ts'
import type { Result } from './output.ts'

const Which = z.object({
  refund: matching(/^[0-9a-f]{32}$/, 'must be our refundId, of 32 hex digits'),
})

export const refundCommands = [
  command('refunds list', 'List refunds, or those without an end', {
    usage: '[--open] [--mid M1] [--acquirer setu|setu:acme]',
    schema: z.object({ open: z.boolean().default(false), mid: identifier.optional(), acquirer: text(100).optional() }),
    async run(filter, { db }) {
      const columns = 'refundId, madeAt, mid, orderId, acquirer, amount, status, reference, endedAt, reason'
      const cells = ({ ourRefundId, createdAt, amount, ...refund }: Refund) => ({
        ...refund,
        refundId: ourRefundId,
        madeAt: createdAt,
        amount: new Money(amount, true),
      })
      return table(columns, await listRefunds(db, filter), { empty: 'no refunds', cells, json: toRefundData })
    },
  }),

  command('refunds show', 'Show one refund', {
    usage: '--refund ID',
    schema: Which,
    run: async ({ refund: id }, { db }) => shownRefund(await findRefund(db, id)),
  }),

  changingCommand('refunds create', 'Send money of a payment back to the customer', {
    usage: '(--order-id ID [--amount N] --note TEXT | --exception ID [--note TEXT])',
    schema: z
      .object({
        orderId: ourOrderId.optional(),
        exception: exceptionId.optional(),
        amount: shopRefund.optional(),
        note: text(100, 3).optional(),
      })
      .refine(
        ({ orderId, exception, amount, note }) =>
          exception === undefined ? orderId !== undefined && note !== undefined : !orderId && amount === undefined,
        'give --order-id and --note, or --exception, whose whole payment goes back',
      ),
    // The audit must not store a note, because it may name the customer, and the audit is never erased.
    audited: { note: withhold },
    async run({ orderId = '', exception, amount, note }, { db, now, person }) {
      const request =
        exception === undefined
          ? { mid: (await findOrder(db, orderId)).mid, orderId, note: note as string, amount }
          : await ofException(db, exception, note)
      const made = await createRefund(db, { ...request, createdBy: person }, now)
      if ('refused' in made) throw new CommandError(REFUSED[made.refused])
      const { refund } = made
      const next =
        refund.acquirer === 'direct'
          ? `send it at the bank, then: ops refunds done --refund ${refund.ourRefundId} --reference RRN`
          : `the service asks ${refund.acquirer} for it`
      const message = `refund ${refund.ourRefundId} of ${toIndianText(refund.amount)} is made: ${next}`
      return {
        data: document(toRefundData(refund), message),
        made: { refundId: refund.ourRefundId, mid: refund.mid },
      }
    },
  }),

  changingCommand('refunds retry', 'Send an unsure refund again', {
    usage: '--refund ID   (the bank has not made it)',
    schema: Which,
    async run({ refund: id }, { db, now }) {
      const refund = await findRefund(db, id)
      refuseEnded(refund)
      if (!(await retryRefund(db, refund, now))) {
        throw new CommandError(`${id} is not unsure: only such a refund may be sent again`)
      }
      return document(toRefundData(refund), `${id} is sent again`)
    },
  }),

  changingCommand('refunds done', 'Say that the bank has made a refund', {
    usage: '--refund ID --reference RRN',
    schema: Which.extend({ reference: pastedUtr }),
    // Around the reference, the pasted text may name the customer.
    audited: { reference: (typed) => pastedUtr.parse(typed) },
    run: ({ refund, reference }, context) => endByPerson(refund, { status: 'SUCCESS', reference }, context),
  }),

  changingCommand('refunds fail', 'Say that the bank will not make a refund', {
    usage: '--refund ID --reason "the account is closed"',
    schema: Which.extend({ reason: text(REASON_CHARACTERS) }),
    run: ({ refund, reason }, context) => endByPerson(refund, { status: 'FAIL', reference: '', reason }, context),
  }),
]

async function findRefund(db: Database, id: string): Promise<Refund> {
  const [refund] = await listRefunds(db, { ourRefundId: id })
  if (refund === undefined) throw new CommandError(`there is no refund ${id}: see ops refunds list`)
  return refund
}

async function endByPerson(id: string, update: RefundUpdate, { db, now, person }: ChangingContext): Promise<Result> {
  const before = await findRefund(db, id)
  refuseEnded(before)
  if (!(await isLeftToPerson(db, before))) {
    throw new CommandError(
      `${before.acquirer} still says what becomes of ${id}: wait for its end, or for an exception of it`,
    )
  }
  const ended = await createRefundUpdates(db).record(before, update, person, now)
  const refund = ended?.refund as Refund
  // An unchanged refund was ended meanwhile by another person or by the acquirer.
  if (!ended?.changed) refuseEnded(refund)
  return {
    data: shownRefund(refund),
    ...(ended?.exception && { warnings: [`exception: ${ended.exception}, see ops payments exceptions --open`] }),
  }
}

function refuseEnded({ ourRefundId, status, reference, reason, endedAt }: Refund): void {
  if (endedAt === null) return
  const detail = status === 'SUCCESS' ? `reference ${reference || 'unknown'}` : reason
  throw new CommandError(`${ourRefundId} has ended as ${status} at ${toIstTime(endedAt)}: ${detail}`)
}

/** The request for a refund that ends an exception: with the UTR of a double payment, without UTR for a late one. */
async function ofException(db: Database, id: string, note: string | undefined) {
  const found = await createExceptions(db).find(id)
  if (!found) throw new CommandError(`there is no exception ${id}: see ops payments exceptions`)
  const { mid, orderId, kind, utr, resolution, resolvedBy } = found
  if (kind !== 'double payment' && kind !== 'late payment') {
    throw new CommandError(`${id} is no double and no late payment, but: ${kind}`)
  }
  if (resolution !== null) throw new CommandError(`${id} was resolved by ${resolvedBy}: ${resolution}`)
  const own = kind === 'double payment' ? { utr: utr.toUpperCase() } : {}
  return { mid, orderId, note: note ?? kind, amount: undefined, exceptionId: id, ...own }
}

const REFUSED: Record<Extract<RefundResult, { refused: string }>['refused'], string> = {
  'unknown order': 'there is no such order',
  'not successful': 'no payment of the order is known: see ops payments show',
  'refund_id exists': 'the refund was made already',
  exceeds: 'it exceeds what is left of the payment: ops payments show names its refunds',
  'too many': 'the payment has a hundred refunds, which is all that it may have',
}

function shownRefund(refund: Refund): RecordData {
  const { requested: _, dueAt: __, refundId, ourRefundId, ...rest } = refund
  const fields = { refundId: ourRefundId, refund_id: refundId, ...rest, amount: new Money(refund.amount, true) }
  return document(toRefundData(refund), record(fields))
}
