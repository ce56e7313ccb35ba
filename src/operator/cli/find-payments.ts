import * as z from 'zod'
import {
  createPaymentHistory,
  type PaymentHistory,
  type SettledPayment,
  type Sought,
} from '../../books/reconciliation/payment-history.ts'
import { stepsOf } from '../../books/reconciliation/payment-steps.ts'
import { isOrderId } from '../../gateway/payments/intent.ts'
import { createExceptions, type PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { toRefundData } from '../../gateway/refunds/refund.ts'
import type { Database } from '../../platform/db/pool.ts'
import { errorText, identifier, pastedUtr, text } from '../../platform/fields.ts'
import { shopAmountText, toIndianText, toJsonNumber } from '../../platform/money.ts'
import { dayText, nextDay, startOfDay } from '../../platform/time.ts'
import { command } from './command.ts'
import { CommandError } from './errors.ts'
import { exceptionTable } from './exceptions.ts'
import { forPeople, inRupees, record, table } from './output.ts'

const ORDER_ID_RULE = 'must be our orderId, of 32 hex digits'
export const ourOrderId = z.string(errorText(ORDER_ID_RULE)).refine(isOrderId, ORDER_ID_RULE)

const Search = z
  .object({
    utr: pastedUtr.optional(),
    orderId: ourOrderId.optional(),
    merchantOrderId: text(64).optional(),
    amount: shopAmountText.optional(),
    on: dayText.optional(),
    mid: identifier.optional(),
  })
  .refine(
    ({ utr, orderId, merchantOrderId, amount }) =>
      [utr, orderId, merchantOrderId, amount].filter((given) => given !== undefined).length === 1,
    'give one of --utr, --order-id, --merchant-order-id and --amount',
  )
  .refine(({ amount, on }) => (amount === undefined) === (on === undefined), 'give --amount and --on together')

export const findPaymentCommands = [
  command('payments find', 'Find a payment by UTR, order, or amount and day', {
    usage: '(--utr U | --order-id ID | --merchant-order-id ID | --amount N --on YYYY-MM-DD) [--mid M1]',
    schema: Search,
    async run(input, { db, now }) {
      const histories = createPaymentHistory(db)
      const sought = toSought(input)
      const { orderIds, more } = await histories.search(sought, input.mid)
      const found: PaymentHistory[] = []
      for (const orderId of orderIds) {
        const history = await histories.find(orderId)
        if (history && (input.mid ?? history.mid) === history.mid) found.push(history)
      }
      const others = {
        exceptions: 'utr' in sought || 'amount' in sought ? await createExceptions(db).ofNoOrder(sought) : [],
        // Settlements of all merchants, even with --mid: the payment may have been settled to another merchant.
        settlements: 'utr' in sought ? await histories.settlementsOf([sought.utr]) : [],
      }
      const json = { exceptions: others.exceptions.map(inRupees), settlements: others.settlements.map(inRupees) }
      return {
        json: { payments: found.map((history) => toJson(history, now)), more, ...json },
        text: describeFound(found, others, now),
        ...(more && { warnings: [`only the newest ${found.length} are shown: give --mid, or ask for less`] }),
      }
    },
  }),

  command('payments show', 'Show step by step what happened to an order', {
    usage: '--order-id ID',
    schema: z.object({ orderId: ourOrderId }),
    async run({ orderId }, { db, now }) {
      const found = await findOrder(db, orderId)
      return { json: toJson(found, now), text: describe(found, now) }
    },
  }),
]

export async function findOrder(db: Database, orderId: string): Promise<PaymentHistory> {
  const found = await createPaymentHistory(db).find(orderId)
  if (!found) throw new CommandError('there is no such order')
  return found
}

function toSought({ utr, orderId, merchantOrderId, amount, on }: z.output<typeof Search>): Sought {
  if (utr !== undefined) return { utr }
  if (orderId !== undefined) return { orderId }
  if (merchantOrderId !== undefined) return { merchantOrderId }
  const from = startOfDay(on as string)
  return { amount: amount as number, from, until: nextDay(from) }
}

const toJson = (history: PaymentHistory, now: Date) => ({
  ...history,
  amount: toJsonNumber(history.amount),
  exceptions: history.exceptions.map(inRupees),
  settlements: history.settlements.map(inRupees),
  refunds: history.refunds.map(toRefundData),
  steps: stepsOf(history, now),
})

/**
 * One payment with all its steps, or a table of several payments. Exceptions without an order follow, then settlements
 * of the UTR that are not among the steps.
 */
function describeFound(
  found: PaymentHistory[],
  { exceptions, settlements }: { exceptions: PaymentException[]; settlements: SettledPayment[] },
  now: Date,
): string {
  const [only, ...more] = found
  const columns = 'createdAt, mid, orderId, merchantOrderId, amount, status, acquirer, utr'
  const rows = found.map((history) => ({ ...history, amount: toIndianText(history.amount) }))
  const payments = only && more.length === 0 ? describe(only, now) : table(columns, rows, 'no payment found')
  const parts = [payments]
  if (exceptions.length > 0) parts.push('told of with an order that we do not know:', exceptionTable(exceptions, ''))
  const steps = found.length === 1 ? found.flatMap((history) => history.settlements) : []
  const others = settlements.filter(({ mid, utr }) => !steps.some((step) => step.mid === mid && step.utr === utr))
  const isOfFound = ({ mid }: SettledPayment) => found.length === 0 || found.some((history) => history.mid === mid)
  for (const [heading, ofHeading] of [
    ['settled:', others.filter(isOfFound)],
    ['settled to another merchant:', others.filter((settlement) => !isOfFound(settlement))],
  ] as const) {
    const rows = ofHeading.map((one) => forPeople(inRupees(one)))
    if (rows.length > 0) parts.push(heading, table(SETTLEMENT_COLUMNS, rows, ''))
  }
  return parts.join('\n\n')
}

const REFERENCE_UNKNOWN = 'utr is the acquirer’s payment id; bank reference not known yet'

const SETTLEMENT_COLUMNS = 'initiatedAt, mid, utr, paymentUtr, amount, fee, tax, status'

function describe(history: PaymentHistory, now: Date): string {
  const { changes: _, exceptions: __, webhooks: ___, ...rest } = history
  const { settlements: ____, refunds: _____, ...intent } = rest
  const isOnlyId = intent.utr !== null && intent.bankReference === null
  const bankReference = isOnlyId ? REFERENCE_UNKNOWN : intent.bankReference
  const fields = record({ ...intent, bankReference, amount: toIndianText(intent.amount) })
  return [fields, '', table('at, by, what', stepsOf(history, now), '')].join('\n')
}
