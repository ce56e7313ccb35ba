import * as z from 'zod'
import { EXCEPTION_KINDS, NEXT_STEPS } from '../../gateway/payments/outcome.ts'
import { createExceptions, type PaymentException } from '../../gateway/payments/read-exceptions.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { counted, toDecimalText, toIndianRupees } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstTime } from '../../platform/time.ts'
import { timeOfChange } from './barrier.ts'
import { type Context, change, read } from './command.ts'
import { CommandError, existing } from './errors.ts'
import { flag, type InputOf, offering, oneOf, optional, toggle } from './field.ts'
import { ACQUIRER_FILTER, daysOf, EXCEPTION, FROM, inOrder, MID, MONTH, OPEN, REASON, TO, YES } from './fields.ts'
import { document, Money, type Result, rupees, table } from './result.ts'

const KIND = z.enum(EXCEPTION_KINDS, `must be one of: ${EXCEPTION_KINDS.join(', ')}`)

/** Filters for exceptions. The days are the IST days on which the exceptions were stored. */
const FILTERS = {
  kind: optional(offering(flag(KIND, 'KIND', 'Kind of exception', 'such as "double payment"'), EXCEPTION_KINDS)),
  ...{ mid: optional(MID), acquirer: ACQUIRER_FILTER },
  ...{ from: optional(FROM), to: optional(TO), month: optional(MONTH) },
}
const EVERY = toggle('Every open exception that the filters select')
type Filters = Partial<InputOf<typeof FILTERS>>

const daysError = ({ month, from, to }: Filters) =>
  month !== undefined && (from ?? to) !== undefined ? 'give either --month, or --from and --to' : inOrder({ from, to })

export const listExceptions = read('payments exceptions', 'List payment exceptions', {
  title: 'Exceptions',
  fields: { open: OPEN, ...FILTERS },
  check: daysError,
  async run({ open = false, ...filters }, { db }) {
    const exceptions = await createExceptions(db).list({ open, ...toMoments(filters) })
    return exceptionTable(exceptions, { empty: open ? 'No open exceptions.' : 'No exceptions.' })
  },
})

export const resolveExceptions = change('payments resolve', 'Resolve payment exceptions', {
  title: 'Resolve',
  note: 'With --all, the other filters select the open exceptions to resolve.',
  fields: {
    of: oneOf([{ exception: EXCEPTION }, { all: EVERY, ...FILTERS, yes: YES }], daysError),
    reason: REASON,
  },
  asks: ({ of: { all, yes } }) => Boolean(all && !yes),
  run: ({ of: { exception, all: _, yes: __, ...filters }, reason }, context) =>
    exception === undefined ? resolveAll(filters, reason, context) : resolveOne(exception, reason, context),
})

export const findException = async (db: Queryable, id: string) =>
  existing(await createExceptions(db).find(id), `exception ${id}`, 'payments exceptions')

type Resolving = Pick<Context, 'person'> & { client: Queryable }

async function resolveOne(id: string, reason: string, { client, person }: Resolving) {
  const now = await timeOfChange(client)
  const found = await findException(client, id)
  const [resolved] = await createExceptions(client).resolve([found], { reason, by: person, now })
  if (!resolved) {
    const { resolvedBy, resolvedAt, resolution } = await findException(client, id)
    const when = toIstTime(resolvedAt as Date)
    throw new CommandError(`exception ${id} was already resolved by ${resolvedBy} at ${when}: ${resolution}`)
  }
  const { mid, orderId, kind, amount, utr, receivedAt } = found
  const resolution = { resolution: reason, resolvedBy: person, resolvedAt: now }
  return {
    data: document({ id, mid, orderId, kind, ...resolution }, `Exception ${id}, ${kind}, resolved.`),
    figures: { kind, amount: rupees(amount), mid, orderId, utr, receivedAt },
  }
}

/** Resolves the open exceptions that the filters select. The operator confirms their number and sum. */
async function resolveAll(filters: Filters, reason: string, { client, person }: Resolving): Promise<Result> {
  const now = await timeOfChange(client)
  const exceptions = createExceptions(client)
  const open = await exceptions.list({ open: true, ...toMoments(filters) })
  const resolved = await exceptions.resolve(open, { reason, by: person, now })
  const created = { resolved: resolved.length, amount: toDecimalText(amountOf(resolved)) }
  return {
    ...{ data: document(created, `Resolved ${sumText(resolved)}.`), created },
    figures: {
      ...{ exceptions: resolved.length, amount: new Money(amountOf(resolved)) },
      newest: resolved.reduce<Date | null>((last, { receivedAt: at }) => (last && last > at ? last : at), null),
    },
    question: open.length > 0 ? `resolve ${sumText(open)}, with the reason "${reason}"` : undefined,
  }
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

export function exceptionTable(exceptions: PaymentException[], views: { title?: string; empty?: string } = {}) {
  const columns =
    'id, receivedAt, kind, ₹amount, nextStep, mid, orderId, refundId, status, utr, paidAt, acquirerAccount, toldBy, note, resolution, resolvedBy'
  const cells = (exception: PaymentException) => ({
    ...exception,
    note: exception.note ?? bodyLine(exception.body),
    nextStep: exception.resolution === null ? NEXT_STEPS[exception.kind] : null,
  })
  return table(columns, exceptions, {
    ...{ ...views, cells },
    links: ({ id, refundId }) => ({
      id: { name: 'payments find', flags: { exception: id } },
      ...(refundId !== null && { refundId: { name: 'refunds show', flags: { refund: refundId } } }),
    }),
    changes: ({ id }) => [{ exception: id }],
  })
}

/** Returns the first 60 characters of an unreadable body. `--json` prints the whole stored body. */
const bodyLine = (body: string | null) => body && [...body].slice(0, 60).join('')
