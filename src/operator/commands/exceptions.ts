import * as z from 'zod'
import { EXCEPTION_KINDS, NEXT_STEPS } from '../../gateway/payments/outcome.ts'
import { createExceptions, type PaymentException } from '../../gateway/payments/read-exceptions.ts'
import { errorText, identifier, text } from '../../platform/fields.ts'
import { counted, toDecimalText, toIndianRupees } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstTime } from '../../platform/time.ts'
import { type Result, requireConfirmation } from '../terminal/print.ts'
import { timeOfChange } from './barrier.ts'
import { type ChangingContext, changingCommand, command } from './command.ts'
import { DAYS, daysOf, inOrder } from './days.ts'
import { CommandError } from './errors.ts'
import { document, type TableData, table } from './result.ts'

const EXCEPTION_RULE = 'must be the id of an exception, 12 hex digits'
export const exceptionId = z
  .string(errorText(EXCEPTION_RULE))
  .toLowerCase()
  .regex(/^[0-9a-f]{12}$/, EXCEPTION_RULE)

/** Filters for exceptions. The days are the IST days on which the exceptions were stored. */
const Filters = z.object({
  kind: z.enum(EXCEPTION_KINDS, `must be one of: ${EXCEPTION_KINDS.join(', ')}`).optional(),
  mid: identifier.optional(),
  acquirer: text(100).optional(),
  ...DAYS,
})
type Filters = z.output<typeof Filters>

const FILTERS = '[--kind KIND] [--mid MID] [--acquirer ACQUIRER[:ACCOUNT]] [--from DAY] [--to DAY] [--month YYYY-MM]'

export const exceptionCommands = [
  command('payments exceptions', 'List payment exceptions', {
    usage: `[--open] ${FILTERS}`,
    schema: Filters.extend({ open: z.boolean().default(false) }).superRefine(inOrder),
    console: 'read',
    async run({ open, ...filters }, { db }) {
      const exceptions = await createExceptions(db).list({ open, ...toMoments(filters) })
      return exceptionTable(exceptions, { empty: open ? 'No open exceptions.' : 'No exceptions.' })
    },
  }),

  changingCommand('payments resolve', 'Resolve payment exceptions', {
    usage: `(--exception ID | --all ${FILTERS} [--yes]) --reason TEXT`,
    note: 'With --all, the other filters select the open exceptions to resolve.',
    schema: Filters.extend({
      exception: exceptionId.optional(),
      all: z.boolean().default(false),
      reason: text(255),
      yes: z.boolean().default(false),
    })
      .superRefine(inOrder)
      .refine(
        ({ exception, all, kind, mid, acquirer, from, to, month }) =>
          exception === undefined
            ? all
            : !all && [kind, mid, acquirer, from, to, month].every((filter) => filter === undefined),
        'give either --exception, or --all with filters',
      ),
    console: 'act',
    run: ({ exception, all: _, reason, yes, ...filters }, context) =>
      exception === undefined ? resolveAll(filters, { reason, yes }, context) : resolveOne(exception, reason, context),
  }),
]

const resolveOne = (id: string, reason: string, { change, person }: ChangingContext) =>
  change(async (client) => {
    const now = await timeOfChange(client)
    const exceptions = createExceptions(client)
    const found = await exceptions.find(id)
    if (!found) throw new CommandError(`exception ${id} does not exist: see ops payments exceptions`)
    const [resolved] = await exceptions.resolve([found], { reason, by: person, now })
    if (!resolved) {
      const { resolvedBy, resolvedAt, resolution } = (await exceptions.find(id)) as PaymentException
      const when = toIstTime(resolvedAt as Date)
      throw new CommandError(`exception ${id} was already resolved by ${resolvedBy} at ${when}: ${resolution}`)
    }
    const { mid, orderId, kind } = found
    const resolution = { resolution: reason, resolvedBy: person, resolvedAt: now }
    return document({ id, mid, orderId, kind, ...resolution }, `Exception ${id}, ${kind}, resolved.`)
  })

/**
 * Resolves exactly the exceptions whose count and sum the operator confirmed, and no exception that was stored after
 * the confirmation.
 */
async function resolveAll(
  filters: Filters,
  { reason, yes }: { reason: string; yes: boolean },
  { db, change, person, terminal }: ChangingContext,
): Promise<Result> {
  const open = await createExceptions(db).list({ open: true, ...toMoments(filters) })
  if (open.length > 0 && !yes) {
    await requireConfirmation(terminal, `resolve ${sumText(open)}, with the reason "${reason}"`)
  }
  return change(async (client) => {
    const now = await timeOfChange(client)
    const resolved = await createExceptions(client).resolve(open, { reason, by: person, now })
    const created = { resolved: resolved.length, amount: toDecimalText(amountOf(resolved)) }
    return { data: document(created, `Resolved ${sumText(resolved)}.`), created }
  })
}

function toMoments({ kind, mid, acquirer, ...typed }: Filters) {
  const { from, to } = daysOf(typed)
  return {
    ...{ kind, mid, acquirerAccount: acquirer },
    from: from === undefined ? undefined : startOfDay(from),
    until: to === undefined ? undefined : nextDay(startOfDay(to)),
  }
}

/** Formats the number and sum of exceptions, such as `2 exceptions, ₹400.00`. */
const sumText = (exceptions: PaymentException[]) =>
  `${counted(exceptions.length, 'exception')}, ${toIndianRupees(amountOf(exceptions))}`

const amountOf = (exceptions: PaymentException[]): bigint =>
  exceptions.reduce((sum, { amount }) => sum + BigInt(amount ?? 0), 0n)

export function exceptionTable(
  exceptions: PaymentException[],
  views: { title?: string; empty?: string } = {},
): TableData {
  const columns =
    'id, receivedAt, kind, ₹amount, nextStep, mid, orderId, status, utr, paidAt, acquirerAccount, toldBy, note, resolution, resolvedBy'
  const cells = (exception: PaymentException) => ({
    ...exception,
    note: exception.note ?? bodyLine(exception.body),
    nextStep: exception.resolution === null ? NEXT_STEPS[exception.kind] : null,
  })
  return table(columns, exceptions, {
    ...{ ...views, cells },
    links: ({ id }) => ({ id: { name: 'payments find', flags: { exception: id } } }),
    changes: ({ id }) => [{ exception: id }],
  })
}

/** Returns the first 60 characters of an unreadable body. `--json` prints the whole stored body. */
const bodyLine = (body: string | null) => body && [...body].slice(0, 60).join('')
