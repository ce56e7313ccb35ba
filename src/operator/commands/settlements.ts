import { Readable } from 'node:stream'
import * as z from 'zod'
import { countUnknown, type Importing, type ImportResult, importSettlements } from '../../books/settlements/import.ts'
import { listImports, lockSettlements, type NotUndone, undoImport } from '../../books/settlements/imports.ts'
import {
  countInClosedMonths,
  type Pulled,
  readPages,
  storeRests,
  toSettlementFile,
} from '../../books/settlements/pull.ts'
import { AcquirerError } from '../../errors.ts'
import { accountName } from '../../gateway/acquirers/accounts.ts'
import { SETTLED_NAMES, settledReader } from '../../gateway/acquirers/acquirers.ts'
import { CsvFileError } from '../../platform/csv/csv.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { waitForReplica } from '../../platform/db/replica.ts'
import { errorText, matching } from '../../platform/fields.ts'
import { counted, type Paise, toIndianRupees, totalText } from '../../platform/money.ts'
import { startOfDay, toIstDay, toIstTime } from '../../platform/time.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { type ChangingContext, changeInSteps, read } from './command.ts'
import { CommandError } from './errors.ts'
import { flag, offering, optional } from './field.ts'
import { ACQUIRER_ACCOUNT, ANY_ACCOUNT, bothDaysOf, DRY_RUN, numbered, PERIOD } from './fields.ts'
import { FILE, readFile, rejectedLines } from './file.ts'
import { layoutOf } from './layout-fields.ts'
import { findLayout } from './layouts.ts'
import { document, Money, type Output, rupees, table } from './result.ts'

const ROWS = matching(/^[0-9]{1,9}$/, 'must be a number of rows').transform(Number)
const NUMBER_RULE = 'must be the number of an import, as listed by ops settlements imports'
const ACQUIRER_RULE = `must be ${SETTLED_NAMES.join(' or ')}: for other acquirers, import the file with ops settlements import`

const SETTLED = z.enum(SETTLED_NAMES, errorText(ACQUIRER_RULE))

export const settlementCommands = [
  changeInSteps('settlements import', 'Import a settlement file', {
    title: 'Import settlements',
    isLong: true,
    note: 'Without --layout, FILE is CSV with the columns mid, amount, utr, bank_reference_number, status, initiation_date and optionally created_at, fee, tax, payment_utr, value_date, order_id, acquirer_payment_id, event, instrument.',
    fields: {
      ...{ file: FILE, layout: optional(layoutOf('settlements')), acquirer: optional(ACQUIRER_ACCOUNT) },
      rows: optional(flag(ROWS, 'N', 'Expected number of rows', 'otherwise the import fails')),
      total: optional(flag(totalText, 'RUPEES', 'Expected sum of all amounts', 'in rupees; otherwise it fails')),
      dryRun: DRY_RUN,
    },
    async run({ file, layout: layoutName, acquirer: account, ...trailer }, context) {
      const layout = layoutName === undefined ? undefined : await findLayout(context.db, layoutName, 'settlements')
      const warnings: string[] = []
      const onWarning = (text: string) => warnings.push(text)
      const output = await readFile(file, context, (csv, progress, name) => {
        const importing = { file: name, account, layout, onWarning, onProgress: progress('line') }
        return importFrom(context, csv, importing, async (result, client) => {
          compare(trailer, result)
          const [found] = await countUnknown(client, { importId: result.import })
          const figures = { ...found }
          const preview = context.change.isDry && { json: figures, text: `, ${found?.unknown} unknown` }
          return { warnings, figures, ...preview }
        })
      })
      return shownToPartners(output, context)
    },
  }),

  changeInSteps('settlements pull', 'Import settlements from an acquirer’s API', {
    title: 'Import from an acquirer',
    isLong: true,
    fields: {
      acquirer: offering(flag(SETTLED, 'ACQUIRER', 'Acquirer', SETTLED_NAMES.join(', ')), SETTLED_NAMES),
      ...{ account: ANY_ACCOUNT, period: PERIOD },
    },
    async run({ acquirer, account, period }, context) {
      const { from, to } = bothDaysOf(period)
      const { db, now, sleep, withProgress } = context
      if (startOfDay(to) > now) throw new CommandError(`--to must not be after today, ${toIstDay(now)}`)
      const { accounts, http } = reachAccounts(context)
      const name = accountName(acquirer, account)
      const advice = await accounts.adviceOn(name)
      const found = await accounts.find(name)
      const read = found && settledReader(found, http)
      if (!read || advice) throw new CommandError(`acquirer account ${name} is not configured: ${advice}`)
      const pulled: Pulled = { orders: [], notStored: new Map(), rests: new Map() }
      const output = await withProgress(async (progress) => {
        const pages = await readPages(read({ from, to }, sleep), progress('event'))
        const lines = toSettlementFile(db, pages, { acquirer: name, ...pulled })
        const importing = { file: `${name} ${from}..${to}`, account: name }
        return importFrom(context, Readable.from(lines), importing, async ({ import: importId }, client) => {
          await storeRests(client, importId, name, pulled.rests)
          const [{ rows } = { rows: 0 }] = await countInClosedMonths(client, { importId })
          const { notStored, text } = describeNotStored(pulled)
          const inClosed = rows > 0 ? `; ${counted(rows, 'row')} inserted on days of closed months` : ''
          const figures = { inClosedMonths: rows, 'not stored': text || null }
          const more = text && `; not stored: ${text}`
          return { json: { notStored, inClosedMonths: rows }, text: `${inClosed}${more}`, figures }
        })
      }).catch((error) => {
        throw explainPull(error, pulled.orders)
      })
      return shownToPartners(output, context)
    },
  }),

  read('settlements imports', 'List settlement imports', {
    title: 'Settlements',
    async run(_, { db }) {
      return table('import, at, person, file, rows, matched, ₹amount, undone, sha256', await listImports(db, {}), {
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

  changeInSteps('settlements undo', 'Undo a settlement import', {
    title: 'Undo',
    fields: { import: numbered('Number of the import', NUMBER_RULE), dryRun: DRY_RUN },
    async run({ import: importId }, context) {
      const output = await context.change(async (client) => {
        const now = await lockedAt(client)
        const undone = await undoImport(client, importId, { ...context, now })
        if ('rejected' in undone) throw new CommandError(explain(importId, undone))
        const { removed, restored } = undone
        const message = `Import ${importId} undone: ${removed} removed, ${restored} restored.`
        const figures = { removed, restored }
        return { data: document({ import: importId, ...figures }, message), created: figures, figures }
      })
      return shownToPartners(output, context)
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

/** Additions to an import's result: `json` for JSON output, `text` for text output, `figures` for the operator. */
type Reported = { json?: object; text?: string | undefined; warnings?: readonly string[]; figures?: Output['figures'] }

type End = (result: ImportResult, client: Queryable) => Reported | Promise<Reported>
type Source = Omit<Importing, 'now' | 'person'>

/** Imports settlements in one transaction. `end` is the last step, and may throw to roll the import back. */
function importFrom({ change, person }: ChangingContext, csv: Readable, importing: Source, end: End): Promise<Output> {
  return change(async (client) => {
    const notes: string[] = []
    const onNote = (text: string) => notes.push(text)
    const result = await importSettlements(client, csv, { ...importing, onNote, now: await lockedAt(client), person })
    const { json, text = '', warnings: doubts = [], figures } = await end(result, client)
    const { amount, insertedAmount, ...counts } = result
    const warnings = [...doubts, ...notes]
    const { import: importId, ...rows } = counts
    const { inserted, unchanged, updated, matched } = rows
    const amounts = { insertedAmount: new Money(insertedAmount), amount: new Money(amount) }
    const created = { ...counts, ...amounts }
    const sum = inserted > 0 ? `, ${toIndianRupees(insertedAmount)}` : ''
    const matches = matched > 0 ? `, ${matched} matched with payments` : ''
    const message = `Import ${importId}: ${inserted} inserted${sum}, ${unchanged} unchanged, ${updated} updated${matches}${text}.`
    const data = document({ ...created, ...json, warnings }, message)
    return { data, created, warnings, figures: { ...rows, ...amounts, ...figures } }
  })
}

/**
 * Returns the output once the replica that serves the partners' lists has the change. Prints a note if the replica lags
 * behind.
 */
async function shownToPartners(output: Output, { config: { databaseReadUrl }, db, change, note }: ChangingContext) {
  if (!change.isDry && databaseReadUrl !== undefined && !(await waitForReplica(db, databaseReadUrl)))
    note('stored, but the replica at DATABASE_READ_URL lags behind: partners see the change later')
  return output
}

/** Returns the events that settlements do not store, for JSON output and as a text, which is empty if there are none. */
function describeNotStored({ notStored: events }: Pulled) {
  const all = [...events].map(([what, one]) => ({ what, ...one }))
  const texts = all.map(({ what, events, amount }) => `${events} ${what} (${toIndianRupees(amount)})`)
  return { notStored: all.map((one) => ({ ...one, amount: new Money(one.amount) })), text: texts.join(', ') }
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
