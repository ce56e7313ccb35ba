import * as z from 'zod'
import { DISPUTE_STATUSES, type DisputeReport, isFinal } from '../../gateway/disputes/dispute.ts'
import { createDisputes } from '../../gateway/disputes/record-dispute.ts'
import { findDispute, findPaymentOf, listDisputes, listStates } from '../../gateway/disputes/store.ts'
import { lockOrder } from '../../gateway/payments/reported-orders.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Queryable, Transactional } from '../../platform/db/pool.ts'
import { errorText, identifier, pastedUtr, text } from '../../platform/fields.ts'
import { lenientRefund, toIndianRupees } from '../../platform/money.ts'
import { dayText, MOMENT_RULE, startOfDay, toIstTime } from '../../platform/time.ts'
import { timeOfChange } from './barrier.ts'
import { change, read, withhold } from './command.ts'
import { CommandError, existing } from './errors.ts'
import { flag, type InputOf, offering, optional } from './field.ts'
import { ACQUIRER_FILTER, MID, moment, OPEN, ORDER_ID, SINCE } from './fields.ts'
import { disputeTable, findOrder } from './find-payments.ts'
import { document, record, rupees, table } from './result.ts'

const DISPUTE = flag(identifier, 'ID', 'Dispute', 'the acquirer’s id')
const NAMED = {
  dispute: { ...DISPUTE, record: { column: 'disputeId' } },
  mid: { ...MID, record: { column: 'mid' } },
  acquirer: { ...ACQUIRER_FILTER, record: { column: 'acquirer' } },
}
const oneStatus = z.enum(DISPUTE_STATUSES, errorText(`must be one of ${DISPUTE_STATUSES.join(', ')}`))
const STATUS = optional(offering(flag(oneStatus, 'STATUS', 'Status', 'such as "under review"'), DISPUTE_STATUSES))
const dayOrMoment = z.union([dayText.transform(startOfDay), moment], errorText(MOMENT_RULE))
const FACTS = {
  amount: optional(flag(lenientRefund, 'RUPEES', 'Disputed amount', 'in rupees')),
  kind: optional(flag(text(64), 'KIND', 'Kind', 'such as CHARGEBACK')),
  reason: optional(flag(text(255), 'TEXT', 'Reason', 'in the acquirer’s words')),
  respondBy: optional({ ...SINCE, label: 'Respond by', hint: 'IST' }),
}

export const listOfDisputes = read('disputes list', 'List disputes', {
  title: 'Disputes',
  fields: { open: OPEN, mid: optional(MID), acquirer: ACQUIRER_FILTER, status: STATUS },
  async run({ open = false, status, ...filter }, { db }) {
    const statuses = DISPUTE_STATUSES.filter((one) => (status ?? one) === one && !(open && isFinal(one)))
    return disputeTable(await listDisputes(db, { ...filter, statuses }), { empty: 'No disputes.' })
  },
})

export const disputeCommands = [
  listOfDisputes,

  read('disputes show', 'Show a dispute and its history', {
    title: 'Dispute',
    fields: NAMED,
    async run(named, { db }) {
      const dispute = await findNamed(db, named)
      const fields = { ...dispute, amount: rupees(dispute.amount) }
      const states = table(STATES, await listStates(db, dispute), { title: 'Reported states' })
      const { mid, disputeId, acquirer } = dispute
      const next = `Record a new state with ops disputes update --mid ${mid} --dispute ${disputeId} --acquirer ${acquirer}`
      return document({ ...fields, states }, record(fields), next, states)
    },
  }),

  change('disputes add', 'Record a dispute that the acquirer did not report', {
    title: 'Add dispute',
    note: 'Refunds of the payment that are not sent yet fail.',
    fields: {
      orderId: ORDER_ID,
      dispute: DISPUTE,
      utr: optional(flag(pastedUtr, 'UTR', 'UTR', 'default: the order’s own payment')),
      ...FACTS,
      opened: optional({ ...flag(dayOrMoment, 'TIME', 'Opened', 'IST; default: now'), example: '2026-11-26' }),
      status: STATUS,
    },
    permits: ({ status }) => status === 'SUCCESS',
    // The text of a reason, and the text pasted around a reference, may contain the customer's name.
    audited: { utr: (typed) => pastedUtr.parse(typed), reason: withhold },
    async run({ orderId, dispute: id, utr, opened: openedAt, status = 'open', ...facts }, context) {
      const { mid } = await findOrder(context.db, orderId, context.now)
      if (openedAt && openedAt > context.now) throw new CommandError(`--opened ${toIstTime(openedAt)} is after now`)
      return recordReport(context, { mid, isNew: true, id, orderId, utr, openedAt, status, ...facts })
    },
  }),

  change('disputes update', 'Record the new state or other facts of a dispute', {
    title: 'Update dispute',
    fields: { ...NAMED, status: STATUS, ...FACTS },
    check: ({ mid: _, dispute: __, acquirer: ___, ...facts }) =>
      Object.values(facts).every((one) => one === undefined) ? NO_FACTS : undefined,
    audited: { reason: withhold },
    async run({ mid, dispute, acquirer, ...facts }, context) {
      const { disputeId: id, orderId, utr, status } = await findNamed(context.client, { mid, dispute, acquirer })
      return recordReport(context, { mid, id, orderId, utr, ...facts, status: facts.status ?? status })
    },
  }),
]

const ASK_ACQUIRER = 'a final or newer report states this: ask the acquirer which one is valid'
const STATES = 'recordedAt, status, statedAt, reportedBy'
const UNKNOWN_PAYMENT = 'the order has no such payment: see ops payments show, or record it with ops payments confirm'
const NO_FACTS = 'give at least one of --status, --amount, --kind, --reason and --respond-by'

async function findNamed(db: Queryable, { mid, dispute: disputeId, acquirer }: InputOf<typeof NAMED>) {
  const [found, another] = await listDisputes(db, { mid, disputeId, acquirer })
  if (another) throw new CommandError(`dispute ${disputeId} exists at several acquirer accounts: add --acquirer`)
  return existing(found, `dispute ${disputeId} of merchant ${mid}`, 'disputes list')
}

type Reported = DisputeReport & { mid: string; isNew?: true; reason: string | undefined }

/**
 * Stores an operator's report of a dispute, or throws. Returns what the operator confirms. Locks the order first, so that
 * nothing else changes the refunds that are counted.
 */
async function recordReport(
  { client, person }: { client: Transactional & Queryable; person: string },
  { mid, isNew, reason: reasonText, ...report }: Reported,
) {
  const { id, orderId, amount = 0 } = report
  await timeOfChange(client)
  await lockOrder(client, { mid, orderId })
  const [payment] = await findPaymentOf(client, { mid, orderId, utr: report.utr })
  if (payment === undefined) throw new CommandError(UNKNOWN_PAYMENT)
  if (amount > payment.amount)
    throw new CommandError(`the payment is only ${toIndianRupees(payment.amount)}: check --amount`)
  const { acquirer, utr } = payment
  const key = { mid, acquirer, disputeId: id }
  if (isNew && (await findDispute(client, key)))
    throw new CommandError(`dispute ${id} is already recorded: run ops disputes update --mid ${mid} --dispute ${id}`)
  const countOpen = async () =>
    (await listRefunds(client, { mid, orderId })).filter((one) => one.utr === utr && one.endedAt === null).length
  const openBefore = await countOpen()
  const kinds: string[] = []
  const disputes = createDisputes(client, { onException: (kind) => kinds.push(kind) })
  const reporting = { source: person, now: () => new Date(), barrier: timeOfChange }
  const recorded = await disputes.record(acquirer, { ...report, utr, reasonText }, reporting)
  const dispute = await findDispute(client, key)
  if (dispute === undefined) throw new CommandError('the payment already has 20 disputes: see ops disputes list')
  const { status, updatedAt } = dispute
  const isOther = status !== report.status || (report.amount ?? dispute.amount) !== dispute.amount
  if ('exception' in recorded || isOther)
    throw new CommandError(`dispute ${id} is ${status} since ${toIstTime(updatedAt)}: ${ASK_ACQUIRER}`)
  const open = await countOpen()
  return {
    data: document({ ...dispute, amount: rupees(dispute.amount) }, `Dispute ${id} of order ${orderId}: ${status}.`),
    created: { mid },
    figures: {
      ...{ amount: rupees(dispute.amount), status, mid, orderId, UTR: utr, acquirer },
      ...{ 'refunds that fail': openBefore - open, 'refunds that continue': open },
    },
    warnings: kinds.map((kind) => `new exception "${kind}": see ops payments exceptions --open`),
  }
}
