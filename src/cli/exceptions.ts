import * as z from 'zod'
import { createExceptions, type PaymentException } from '../books/exceptions.ts'
import { errorText, text } from '../fields.ts'
import { toIstTime } from '../ist.ts'
import { changingCommand, command } from './command.ts'
import { CommandFault } from './faults.ts'
import { table } from './output.ts'

const EXCEPTION_RULE = 'must be the id of an exception, 12 hex digits'
const exceptionId = z
  .string(errorText(EXCEPTION_RULE))
  .toLowerCase()
  .regex(/^[0-9a-f]{12}$/, EXCEPTION_RULE)

export const exceptionCommands = [
  command({
    name: 'payments exceptions',
    usage: '[--open]',
    schema: z.object({ open: z.boolean().default(false) }),
    async run({ open }, { db }) {
      const exceptions = await createExceptions(db).list({ open })
      return { json: exceptions, text: exceptionTable(exceptions, open ? 'no open exceptions' : 'no exceptions') }
    },
  }),

  changingCommand({
    name: 'payments resolve',
    usage: '--exception ID --reason "refunded at the bank, RRN 523504870777"',
    schema: z.object({ exception: exceptionId, reason: text(255) }),
    run: ({ exception: id, reason }, { change, now, person }) =>
      change(async (client) => {
        const exceptions = createExceptions(client)
        const found = await exceptions.find(id)
        if (!found) throw new CommandFault(`there is no exception ${id}: see ops payments exceptions`)
        if (!(await exceptions.resolve(found, { reason, by: person, now }))) {
          const { resolvedBy, resolvedAt, resolution } = (await exceptions.find(id)) as PaymentException
          const when = toIstTime(resolvedAt as Date)
          throw new CommandFault(`${id} was resolved by ${resolvedBy} at ${when}: ${resolution}`)
        }
        const { mid, orderId, kind } = found
        return {
          json: { id, mid, orderId, kind, resolution: reason, resolvedBy: person, resolvedAt: now },
          text: `${id}, ${kind}, is resolved`,
        }
      }),
  }),
]

export function exceptionTable(exceptions: PaymentException[], none: string): string {
  const columns =
    'id, receivedAt, kind, mid, orderId, status, utr, amount, paidAt, toldBy, note, resolution, resolvedBy'
  const noted = exceptions.map((exception) => ({ ...exception, note: exception.note ?? bodyLine(exception.body) }))
  return table(columns, noted, none)
}

/** Of an unreadable body a line of the table shows 60 characters; `--json` shows all that is kept. */
const bodyLine = (body: string | null) => body && [...body].slice(0, 60).join('')
