import { createExceptions } from '../../gateway/payments/read-exceptions.ts'
import { createRefund, findPayment, type RefundResult } from '../../gateway/refunds/create-refund.ts'
import { retryRefund } from '../../gateway/refunds/pending-refunds.ts'
import { createRefundUpdates, returnRefund } from '../../gateway/refunds/record-update.ts'
import { REASON_CHARACTERS, type Refund, type RefundUpdate, toRefundData } from '../../gateway/refunds/refund.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Queryable, Transactional } from '../../platform/db/pool.ts'
import { pastedUtr, text } from '../../platform/fields.ts'
import { addPaise, lenientRefund, toIndianRupees } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { timeOfChange } from './barrier.ts'
import { change, isOpen, read, withhold } from './command.ts'
import { CommandError, existing } from './errors.ts'
import { findException } from './exceptions.ts'
import { flag, oneOf, optional, type RecordFields, toggle } from './field.ts'
import { ACQUIRER_FILTER, amountText, EXCEPTION, MID, OPEN, ORDER_ID, REFUND } from './fields.ts'
import { findOrder, refundTable } from './find-payments.ts'
import { document, Money, type RecordData, type Result, record, rupees } from './result.ts'

const AMOUNT = {
  ...optional(flag(lenientRefund, 'RUPEES', 'Amount', 'in rupees; default: everything not refunded yet')),
  prefill: ({ refundable }: RecordFields) => amountText(refundable),
}
const NOTE = flag(text(100, 3), 'TEXT', 'Reason of the refund', '3 to 100 characters')
const RRN = flag(pastedUtr, 'RRN', 'Bank reference (RRN) of the refund')
/** The audit stores only the reference, because the text pasted around it may contain the customer's name. */
const audited = { reference: (typed: string) => pastedUtr.parse(typed) }

export const listOfRefunds = read('refunds list', 'List refunds', {
  title: 'Refunds',
  fields: { open: OPEN, mid: optional(MID), acquirer: ACQUIRER_FILTER },
  run: async ({ open = false, ...filter }, { db }) =>
    refundTable(await listRefunds(db, { open, ...filter }), { empty: 'No refunds.' }),
})

export const refundCommands = [
  listOfRefunds,

  read('refunds show', 'Show a refund', {
    title: 'Refund',
    fields: { refund: REFUND },
    run: async ({ refund: id }, { db }) => shownRefund(await findRefund(db, id)),
  }),

  change('refunds create', 'Create a refund', {
    title: 'Refund',
    note: 'With --exception, the whole double or late payment is refunded.',
    fields: {
      of: oneOf([
        { orderId: ORDER_ID, amount: AMOUNT, note: NOTE },
        { exception: EXCEPTION, note: optional(NOTE) },
      ]),
      despiteDispute: optional(toggle('Despite an open dispute')),
    },
    isUsual: true,
    permits: (record) =>
      isOpen(record) &&
      (record.refundable instanceof Money ? record.refundable.paise > 0 : REFUNDED_KINDS.includes(record.kind)),
    // Withholds the note, because the audit is never erased and a note may name the customer.
    audited: { note: withhold },
    async run({ of: { orderId, exception, amount, note }, despiteDispute }, { client, db, now, person }) {
      const request =
        exception === undefined
          ? { mid: (await findOrder(db, orderId, now)).mid, orderId, note, amount }
          : await ofException(client, exception, note)
      const created = await createRefund(client, { ...request, createdBy: person, despiteDispute }, now)
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
        ...(await effectOf(client, refund, exception)),
      }
    },
  }),

  change('refunds retry', 'Send a refund with unknown outcome again', {
    title: 'Retry',
    note: 'Check with the bank first: run this command only if the bank has not carried out the refund.',
    fields: { refund: REFUND },
    permits: (record) => isOpen(record) && record.acquirer !== 'direct',
    async run({ refund: id }, { client, now, person }) {
      const { mid, ourRefundId } = await findRefund(client, id)
      const scheduled = await retryRefund(client, { mid, ourRefundId, person, now })
      const refund = await findRefund(client, id)
      if (scheduled.length === 0) {
        rejectFinal(refund)
        throw new CommandError(`refund ${id} ${NOT_UNSURE}`)
      }
      const data = document(toRefundData(refund), `Refund ${id} scheduled to be sent again.`)
      return { data, figures: figuresOf(refund) }
    },
  }),

  change('refunds done', 'Mark a refund as carried out by the bank', {
    title: 'Mark as done',
    fields: { refund: REFUND, reference: RRN },
    audited,
    run: ({ refund, reference }, context) => endByPerson(refund, { status: 'SUCCESS', reference }, context),
  }),

  change('refunds fail', 'Mark a refund as failed', {
    title: 'Mark as failed',
    fields: { refund: REFUND, reason: reason('Why the refund failed') },
    run: ({ refund, reason }, context) => endByPerson(refund, { status: 'FAIL', reference: '', reason }, context),
  }),

  change('refunds returned', 'Record that the bank returned a refund', {
    title: 'Record return',
    note: 'For refunds through direct that were marked as done. The whole amount can be refunded again.',
    fields: {
      refund: REFUND,
      reference: { ...RRN, label: 'Bank reference (RRN) of the return' },
      reason: reason('Why the bank returned the refund'),
    },
    permits: ({ acquirer, status }) => acquirer === 'direct' && status === 'SUCCESS',
    audited,
    async run({ refund: id, reference, reason }, { client, person }) {
      const returned = { reference, reason, returnedBy: person }
      const recording = { now: () => new Date(), barrier: timeOfChange }
      const { refund, isReturned } = await returnRefund(client, await findRefund(client, id), returned, recording)
      if (!isReturned) rejectReturn(refund)
      return { data: shownRefund(refund), figures: figuresOf(refund) }
    },
  }),
]

function reason(label: string) {
  return flag(text(REASON_CHARACTERS), 'TEXT', label, 'such as "the account is closed"')
}

/** What an operator confirms of a change to a refund. */
const figuresOf = ({ mid, orderId, amount, acquirer, status }: Refund) => ({
  ...{ amount: rupees(amount), status, mid, orderId, acquirer },
})

/**
 * Returns what an operator confirms of a new refund: its amount, and what else of the payment is refunded. Warns of
 * other payments of the order that wait for a refund, because their customers may be refunded twice.
 */
async function effectOf(client: Queryable, refund: Refund, exception = '') {
  const { mid, orderId, utr, ourRefundId, amount, acquirer } = refund
  const ofOrder = await listRefunds(client, { mid, orderId })
  const others = ofOrder.filter((one) => one.utr === utr && one.ourRefundId !== ourRefundId)
  const sumOf = (status: Refund['status']) =>
    new Money(others.reduce((sum, one) => (one.status === status ? addPaise(sum, one.amount) : sum), 0))
  const { left = 0, isDisputed = false } = (await findPayment(client, { mid, orderId, utr })) ?? {}
  const open = (await createExceptions(client).ofOrder(mid, orderId)).filter(
    ({ id, kind, resolution }) => resolution === null && id !== exception && REFUNDED_KINDS.includes(kind),
  )
  return {
    figures: {
      amount: new Money(amount),
      ...{ refunded: sumOf('SUCCESS'), refundsOpen: sumOf('PENDING'), 'left after this refund': new Money(left) },
      ...{ mid, orderId, UTR: utr, acquirer },
    },
    warnings: open
      .map(
        ({ id, kind, amount: paid }) =>
          `the order also has an open ${kind} of ${toIndianRupees(paid ?? 0)}: if this refund is meant for it, use ops refunds create --exception ${id} instead`,
      )
      .concat(isDisputed ? ['a dispute of the payment is open: the bank may return the money a second time'] : []),
  }
}

const REFUNDED_KINDS: readonly unknown[] = ['double payment', 'late payment']

async function findRefund(db: Queryable, id: string): Promise<Refund> {
  const [refund] = await listRefunds(db, { ourRefundId: id })
  return existing(refund, `refund ${id}`, 'refunds list')
}

type Changing = { client: Transactional; person: string }

async function endByPerson(id: string, update: RefundUpdate, { client, person }: Changing): Promise<Result> {
  const recording = { source: person, by: 'person', now: () => new Date(), barrier: timeOfChange } as const
  const ended = await createRefundUpdates(client).record(await findRefund(client, id), update, recording)
  const { refund, rejected, exception } = ended as NonNullable<typeof ended>
  if (rejected === 'final') rejectFinal(refund)
  if (rejected !== undefined)
    throw new CommandError(
      `${refund.acquirer} still reports the status of refund ${id}: wait for its final status or for an exception`,
    )
  return {
    ...{ data: shownRefund(refund), figures: figuresOf(refund) },
    ...(exception && { warnings: [`exception ${exception}: see ops payments exceptions --open`] }),
  }
}

const NOT_UNSURE = 'has no open exception "refund unsure": only a refund with an unknown outcome can be sent again'

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
async function ofException(db: Queryable, id: string, note: string | undefined) {
  const { mid, orderId, kind, utr, resolution, resolvedBy } = await findException(db, id)
  if (!REFUNDED_KINDS.includes(kind))
    throw new CommandError(
      `exception ${id} is of kind ${kind}: only a double payment or a late payment can be refunded`,
    )
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
  disputed:
    'a dispute of the payment is open, and the bank may return the money: add --despite-dispute to refund it nevertheless, or see ops disputes list',
  'refund_id exists': 'the refund already exists',
  exceeds: 'the amount exceeds the unrefunded rest of the payment: see its refunds with ops payments show',
  'too many': 'the payment already has 100 refunds, the maximum',
}

function shownRefund(refund: Refund): RecordData {
  const { requested: _, dueAt: __, refundId, ourRefundId, ...rest } = refund
  const fields = { refundId: ourRefundId, refund_id: refundId, ...rest, amount: new Money(refund.amount, true) }
  return document(toRefundData(refund), record(fields))
}
