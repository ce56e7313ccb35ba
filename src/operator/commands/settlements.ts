import { Readable } from 'node:stream'
import * as z from 'zod'
import type { Days } from '../../books/ledger/bank-days.ts'
import { countUnknown, type Importing, type ImportResult, importSettlements } from '../../books/settlements/import.ts'
import { listImports, lockSettlements, type NotUndone, undoImport } from '../../books/settlements/imports.ts'
import {
  countInClosedMonths,
  type NotStored,
  type Pulled,
  readPages,
  storeRests,
  toSettlementFile,
} from '../../books/settlements/pull.ts'
import { AcquirerError } from '../../errors.ts'
import { accountName } from '../../gateway/acquirers/accounts.ts'
import { ACQUIRER_NAMES, SETTLED_NAMES, settledReader } from '../../gateway/acquirers/acquirers.ts'
import { CsvFileError } from '../../platform/csv/csv.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { waitForReplica } from '../../platform/db/replica.ts'
import { errorText, IDENTIFIER, IDENTIFIER_RULE, identifier, matching } from '../../platform/fields.ts'
import { counted, type Paise, toIndianRupees, totalText } from '../../platform/money.ts'
import { startOfDay, toIstDay, toIstTime } from '../../platform/time.ts'
import { FILE, readFile, rejectedLines } from '../terminal/file.ts'
import { type Output, printNote, withProgress } from '../terminal/print.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { type ChangingContext, type Context, changingCommand, command } from './command.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder, requireDays } from './days.ts'
import { CommandError } from './errors.ts'
import { findLayout } from './layouts.ts'
import { document, Money, rupees, table } from './result.ts'

const NUMBER_RULE = 'must be the number of an import, as listed by ops settlements imports'
const ACCOUNT_RULE = `must be one of ${ACQUIRER_NAMES.join(', ')}, optionally followed by :ACCOUNT; the account ${IDENTIFIER_RULE}`
const ACQUIRER_RULE = `must be ${SETTLED_NAMES.join(' or ')}: for other acquirers, import the file with ops settlements import`

/**
 * An acquirer such as `setu`, or an acquirer account such as `setu:acme`. The account `default` is the account in the
 * environment variables.
 */
export const acquirerAccount = z
  .string(errorText(ACCOUNT_RULE))
  .refine((typed) => {
    const [name = '', account = name, ...more] = typed.split(':')
    return ACQUIRER_NAMES.includes(name) && IDENTIFIER.test(account) && more.length === 0
  }, ACCOUNT_RULE)
  .transform((typed) => typed.replace(/:default$/, ''))

export const settlementCommands = [
  changingCommand('settlements import', 'Import a settlement file', {
    usage: `FILE|- [--layout LAYOUT] [--acquirer ACQUIRER[:ACCOUNT]] [--rows N] [--total RUPEES] [--dry-run]`,
    note: 'Without --layout, FILE is CSV with the columns mid, amount, utr, bank_reference_number, status, initiation_date and optionally created_at, fee, tax, payment_utr, value_date, order_id, acquirer_payment_id.',
    schema: z.object({
      file: FILE,
      layout: identifier.optional(),
      acquirer: acquirerAccount.optional(),
      rows: matching(/^[0-9]{1,9}$/, 'must be a number of rows')
        .transform(Number)
        .optional(),
      total: totalText.optional(),
      dryRun: z.literal(true).optional(),
    }),
    argument: 'file',
    console: 'act',
    async run({ file, layout: layoutName, acquirer: account, dryRun, ...trailer }, context) {
      const layout = layoutName === undefined ? undefined : await findLayout(context.db, layoutName, 'settlements')
      const warnings: string[] = []
      const onWarning = (text: string) => warnings.push(text)
      const output = await readFile(file, context.terminal, (csv, progress, name) => {
        const importing = { file: name, account, layout, onWarning, onProgress: progress('line') }
        return importFrom(context, csv, importing, async (result, client) => {
          compare(trailer, result)
          if (!dryRun) return { warnings }
          const [found] = await countUnknown(client, { importId: result.import })
          return { warnings, json: { ...found }, text: `, ${found?.unknown} unknown` }
        })
      })
      if (!dryRun) await showToPartners(context)
      return output
    },
  }),

  changingCommand('settlements pull', 'Import settlements from an acquirer’s API', {
    usage: `--acquirer ACQUIRER [--account NAME] (${DAYS_USAGE})`,
    schema: z
      .object({
        acquirer: z.enum(SETTLED_NAMES, errorText(ACQUIRER_RULE)),
        account: identifier.optional(),
        ...DAYS,
      })
      .superRefine(inOrder)
      .refine(...requireDays),
    console: 'act',
    async run({ acquirer, account, ...typed }, context) {
      const { from, to } = daysOf(typed) as Days
      const { db, now, sleep, terminal } = context
      if (startOfDay(to) > now) throw new CommandError(`--to must not be after today, ${toIstDay(now)}`)
      const { accounts, http } = reachAccounts(context)
      const name = accountName(acquirer, account)
      const advice = await accounts.adviceOn(name)
      const found = await accounts.find(name)
      const read = found && settledReader(found, http)
      if (!read || advice) throw new CommandError(`acquirer account ${name} is not configured: ${advice}`)
      const pulled: Pulled = { orders: [], notStored: new Map(), rests: new Map() }
      const output = await withProgress(terminal, async (progress) => {
        const pages = await readPages(read({ from, to }, sleep), progress('event'))
        const lines = toSettlementFile(db, pages, { acquirer: name, ...pulled })
        const importing = { file: `${name} ${from}..${to}`, account: name }
        return importFrom(context, Readable.from(lines), importing, async ({ import: importId }, client) => {
          await storeRests(client, importId, name, pulled.rests)
          const [{ rows } = { rows: 0 }] = await countInClosedMonths(client, { importId })
          const { json, text } = notStoredText(pulled.notStored)
          const inClosed = rows > 0 ? `; ${counted(rows, 'row')} inserted on days of closed months` : ''
          return { json: { ...json, inClosedMonths: rows }, text: `${inClosed}${text}` }
        })
      }).catch((error) => {
        throw explainPull(error, pulled.orders)
      })
      await showToPartners(context)
      return output
    },
  }),

  command('settlements imports', 'List settlement imports', {
    console: 'read',
    async run(_, { db }) {
      return table('import, at, person, file, rows, matched, ₹amount, undone, sha256', await listImports(db), {
        empty: 'No settlement imports.',
        changes: ({ importId }) => [{ import: String(importId) }],
        json: ({ importId, ...one }) => ({ import: importId, ...one, insertedAmount: rupees(one.insertedAmount) }),
        cells: ({ importId, inserted, unchanged, updated, undoneAt, undoneBy, ...one }) => ({
          ...one,
          import: importId,
          rows: inserted + unchanged + updated,
          undone: undoneAt && `${toIstTime(undoneAt)} by ${undoneBy}`,
        }),
      })
    },
  }),

  changingCommand('settlements undo', 'Undo a settlement import', {
    usage: '--import N [--dry-run]',
    schema: z.object({
      import: matching(/^[1-9][0-9]{0,8}$/, NUMBER_RULE).transform(Number),
      dryRun: z.literal(true).optional(),
    }),
    console: 'act',
    async run({ import: importId, dryRun }, context) {
      const output = await context.change(async (client) => {
        const now = await lockedAt(client)
        const undone = await undoImport(client, importId, { ...context, now })
        if ('rejected' in undone) throw new CommandError(explain(importId, undone))
        const { removed, restored } = undone
        const message = `Import ${importId} undone: ${removed} removed, ${restored} restored.`
        return { data: document({ import: importId, removed, restored }, message), created: { removed, restored } }
      })
      if (!dryRun) await showToPartners(context)
      return output
    },
  }),
]

/**
 * Locks the settlements and then returns the current time, so that the times of serialized changes are in the order of
 * the changes.
 */
export async function lockedAt(client: Queryable): Promise<Date> {
  await lockSettlements(client)
  return new Date()
}

/** Additions to an import's result: `json` for JSON output, and `text` for text output. */
type Reported = { json?: object; text?: string; warnings?: readonly string[] }

/** Imports settlements in one transaction. `end` is the last step, and may throw to roll the import back. */
function importFrom(
  { change, person }: ChangingContext,
  csv: Readable,
  importing: Omit<Importing, 'now' | 'person'>,
  end: (result: ImportResult, client: Queryable) => Reported | Promise<Reported>,
): Promise<Output> {
  return change(async (client) => {
    const notes: string[] = []
    const onNote = (text: string) => notes.push(text)
    const result = await importSettlements(client, csv, { ...importing, onNote, now: await lockedAt(client), person })
    const { json, text = '', warnings: doubts = [] } = await end(result, client)
    const { amount, insertedAmount, ...counts } = result
    const warnings = [...doubts, ...notes]
    const { import: importId, inserted, unchanged, updated, matched } = counts
    const created = { ...counts, insertedAmount: new Money(insertedAmount), amount: new Money(amount) }
    const sum = inserted > 0 ? `, ${toIndianRupees(insertedAmount)}` : ''
    const byReference = matched > 0 ? `, ${matched} matched by bank reference` : ''
    const message = `Import ${importId}: ${inserted} inserted${sum}, ${unchanged} unchanged, ${updated} updated${byReference}${text}.`
    return { data: document({ ...created, ...json, warnings }, message), created, warnings }
  })
}

/**
 * Waits until the replica that serves the partners' lists has the change, and prints a note if the replica lags behind.
 */
async function showToPartners({ config: { databaseReadUrl }, db, terminal }: Context): Promise<void> {
  if (databaseReadUrl === undefined || (await waitForReplica(db, databaseReadUrl))) return
  printNote(terminal, 'stored, but the replica at DATABASE_READ_URL lags behind: partners see the change later')
}

function notStoredText(notStored: NotStored): Reported {
  const all = [...notStored].map(([what, one]) => ({ what, ...one }))
  const texts = all.map(({ what, events, amount }) => `${events} ${what} (${toIndianRupees(amount)})`)
  const stored = all.map((one) => ({ ...one, amount: new Money(one.amount) }))
  return { json: { notStored: stored }, text: texts.length > 0 ? `; not stored: ${texts.join(', ')}` : '' }
}

/** Returns the error for a pull. A pull has no file, so the error names each line by its order. */
function explainPull(error: unknown, orders: readonly string[]): unknown {
  if (error instanceof CsvFileError) return rejectedLines(error, (line) => `order ${orders[line - 2]}`)
  if (!(error instanceof AcquirerError)) return error
  const { status, requestId } = error.facts
  const facts = [status && `status ${status}`, requestId && `request ${requestId}`].filter(Boolean).join(', ')
  const advice = error.outcome === 'unavailable' ? ': try again in a minute' : ''
  return new CommandError(`${error.message}${facts && ` (${facts})`}; nothing was imported${advice}`)
}

type Trailer = { rows?: number | undefined; total?: Paise | undefined }

/** Throws if the number or total of the file's rows differs from the values that the operator expects. */
function compare({ rows, total }: Trailer, { inserted, unchanged, updated, amount }: ImportResult): void {
  const count = inserted + unchanged + updated
  const differences: string[] = []
  if (rows !== undefined && rows !== count) differences.push(`${counted(count, 'row')}, not ${rows}`)
  if (total !== undefined && total !== amount)
    differences.push(`${toIndianRupees(amount)}, not ${toIndianRupees(total)}`)
  if (differences.length === 0) return
  const found = differences.join(' and ')
  throw new CommandError(
    `nothing was imported: the file has ${found}; correct --rows or --total, or download the file from the bank again`,
  )
}

function explain(importId: number, why: NotUndone): string {
  if (why.rejected === 'unknown') return `import ${importId} does not exist: see ops settlements imports`
  if (why.rejected === 'undone') return `import ${importId} was already undone by ${why.by} at ${toIstTime(why.at)}`
  const later = why.builtOn.length === 1 ? `import ${why.builtOn[0]}` : `imports ${why.builtOn.join(', ')}`
  return `${later} repeated or changed settlements of import ${importId}: undo import ${why.builtOn.at(-1)} first`
}
