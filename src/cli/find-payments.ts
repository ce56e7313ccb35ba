import * as z from 'zod'
import { createExceptions, type PaymentException } from '../books/exceptions.ts'
import {
  createPaymentHistory,
  type PaymentHistory,
  type SettledPayment,
  type Sought,
} from '../books/payment-history.ts'
import { stepsOf } from '../books/payment-steps.ts'
import { errorText, identifier, text, utr } from '../fields.ts'
import { dayText, nextDay, startOfDay } from '../ist.ts'
import { shopAmountText, toJsonNumber } from '../money.ts'
import { isOrderId } from '../payments/intent.ts'
import { command } from './command.ts'
import { exceptionTable } from './exceptions.ts'
import { CommandFault } from './faults.ts'
import { record, table } from './output.ts'

const ORDER_ID_RULE = 'must be our orderId, 32 hex digits'
export const orderId = z.string(errorText(ORDER_ID_RULE)).refine(isOrderId, ORDER_ID_RULE)

export const findPaymentCommands = [
  command({
    name: 'payments find',
    usage: '(--utr U | --order-id ID | --merchant-order-id ID | --amount N --on YYYY-MM-DD) [--mid M1]',
    schema: z
      .object({
        utr: utr.optional(),
        orderId: orderId.optional(),
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
      .refine(({ amount, on }) => (amount === undefined) === (on === undefined), 'give --amount and --on together'),
    async run(input, { db, now }) {
      const histories = createPaymentHistory(db)
      const found: PaymentHistory[] = []
      for (const orderId of await histories.search(toSought(input), input.mid)) {
        const history = await histories.find(orderId)
        if (history) found.push(history)
      }
      const { utr } = input
      // A UTR may be that of no order that we know.
      const others =
        utr === undefined || found.length > 0
          ? { exceptions: [], settlements: [] }
          : {
              exceptions: await createExceptions(db).ofNoOrder(utr),
              settlements: await histories.settlementsOf(input.mid, [utr]),
            }
      return {
        json: { payments: found.map((history) => toJson(history, now)), ...others },
        text: describeFound(found, others, now),
      }
    },
  }),

  command({
    name: 'payments show',
    usage: '--order-id ID',
    schema: z.object({ orderId }),
    async run({ orderId }, { db, now }) {
      const found = await createPaymentHistory(db).find(orderId)
      if (!found) throw new CommandFault('there is no such order')
      return { json: toJson(found, now), text: describe(found, now) }
    },
  }),
]

function toSought({ utr, orderId, merchantOrderId, amount, on }: SearchInput): Sought {
  if (utr !== undefined) return { utr }
  if (orderId !== undefined) return { orderId }
  if (merchantOrderId !== undefined) return { merchantOrderId }
  const from = startOfDay(on as string)
  return { amount: amount as number, from, until: nextDay(from) }
}

type SearchInput = {
  utr?: string | undefined
  orderId?: string | undefined
  merchantOrderId?: string | undefined
  amount?: number | undefined
  on?: string | undefined
}

const toJson = (history: PaymentHistory, now: Date) => ({
  ...history,
  amount: toJsonNumber(history.amount),
  steps: stepsOf(history, now),
})

/** One payment with all its steps, several in a line each. */
function describeFound(
  found: PaymentHistory[],
  { exceptions, settlements }: { exceptions: PaymentException[]; settlements: SettledPayment[] },
  now: Date,
): string {
  const [only, ...more] = found
  if (only && more.length === 0) return describe(only, now)
  if (only) {
    const columns = ['createdAt', 'mid', 'orderId', 'merchantOrderId', 'amount', 'status', 'utr'] as const
    const rows = found.map((history) => ({ ...history, amount: toJsonNumber(history.amount) }))
    return table([...columns], rows, '')
  }
  if (exceptions.length === 0 && settlements.length === 0) return 'no payment found'
  const columns = ['initiatedAt', 'mid', 'utr', 'paymentUtr', 'amount', 'fee', 'tax', 'status'] as const
  return [
    'no order of ours; but it is told of in',
    '',
    exceptionTable(exceptions, 'no exceptions'),
    '',
    table([...columns], settlements, 'no settlements'),
  ].join('\n')
}

function describe(history: PaymentHistory, now: Date): string {
  const { changes: _, exceptions: __, webhooks: ___, settlements: ____, ...intent } = history
  const fields = record({ ...intent, amount: toJsonNumber(intent.amount) })
  return [fields, '', table(['at', 'by', 'what'], stepsOf(history, now), '')].join('\n')
}
