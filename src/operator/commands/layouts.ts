import type { Readable } from 'node:stream'
import { SETTLEMENT_COLUMNS, settlementFile } from '../../books/settlements/csv.ts'
import { statementFile } from '../../books/statements/format.ts'
import { dailyReport } from '../../gateway/payments/daily-report-format.ts'
import { type Batch, CsvFileError, storeBatches } from '../../platform/csv/csv.ts'
import type { CsvFormat } from '../../platform/csv/header.ts'
import { createLayouts, type Layout, PAYMENT_COLUMNS } from '../../platform/csv/layouts.ts'
import type { Database } from '../../platform/db/pool.ts'
import { counted, type Paise, toDecimalText } from '../../platform/money.ts'
import { change, read } from './command.ts'
import { CommandError } from './errors.ts'
import { FILE, readFile, rejectedLines } from './file.ts'
import { filesOf, LAYOUT_FIELDS, layoutError, layoutOf, OURS, toLayout } from './layout-fields.ts'
import { document, type Output, record, table } from './result.ts'

/** Number of rows that `try` prints. */
const ROWS_SHOWN = 5
const REMOVE = 'ops settlements layout remove'

export const layoutCommands = [
  change('settlements layout add', 'Add a layout for bank or acquirer files', {
    note: `COLUMN is one of ${OURS.join(', ')}. The column day makes it a layout of bank statements, the column paid_at of daily transaction reports.`,
    fields: LAYOUT_FIELDS,
    check: layoutError,
    async run(fields, { client }) {
      const layout = toLayout(fields)
      const { name } = layout
      if (!(await createLayouts(client).add(layout)))
        throw new CommandError(`layout ${name} already exists: remove it first with ${REMOVE} --name ${name}`)
      return { data: document(layout, record(toShown(layout))), created: { name } }
    },
  }),

  read('settlements layout list', 'List file layouts', {
    title: 'File layouts',
    async run(_, { db }) {
      const columns = 'name, of, columns, date, statuses, mid, negativeBelow, ignoredLines'
      return table(columns, await createLayouts(db).list(), { empty: 'No layouts.', cells: toShown })
    },
  }),

  change('settlements layout remove', 'Remove a layout; imported data stays', {
    fields: { name: LAYOUT_FIELDS.name },
    async run({ name }, { client }) {
      if (!(await createLayouts(client).remove(name))) throw unknownLayout(name)
      return { data: document({ name }, `Layout ${name} removed.`), created: { name } }
    },
  }),

  read('settlements layout try', 'Preview how a layout reads a file', {
    note: 'The preview shows the first rows and every error. Nothing is stored.',
    fields: { file: FILE, layout: layoutOf() },
    run: async ({ file, layout }, context) => {
      const found = await findLayout(context.db, layout)
      return readFile(file, context, (csv) => tryLayout(csv, found))
    },
  }),
]

/** Aliases of the layout commands, because operators search for statement layouts among the `statements` commands. */
export const statementLayoutCommands = layoutCommands.map((one) => ({
  ...one,
  name: one.name.replace('settlements', 'statements'),
  title: '',
  summary: `${one.summary} (alias)`,
  note: [`Alias of ops ${one.name}.`, one.note ?? ''].join(' ').trimEnd(),
}))

const toShown = ({ columns, statuses, ...layout }: Layout) => ({
  ...layout,
  of: filesOf({ columns }),
  columns: columns.map((names) => names.join('=')),
  statuses: Object.entries(statuses).map(([ours, words = []]) => `${ours}=${words.join()}`),
})

/** Throws a CommandError if the layout does not exist, or if it is for a kind of file other than `required`. */
export async function findLayout(db: Database, name: string, required?: ReturnType<typeof filesOf>): Promise<Layout> {
  const layout = await createLayouts(db).find(name)
  if (layout === undefined) throw unknownLayout(name)
  const files = filesOf(layout)
  if (required && files !== required)
    throw new CommandError(`${name} is a layout of ${files}, not of ${required}: see ops settlements layout list`)
  return layout
}

const unknownLayout = (name: string) =>
  new CommandError(`layout ${name} does not exist: see ops settlements layout list`)

async function tryLayout(csv: Readable, layout: Layout): Promise<Output> {
  const { columns, format, toShow = (row) => row, balances, notes } = readingOf(layout)
  const copied: string[] = []
  let rows = 0
  const storeFirst = async (batch: Batch) => {
    rows += batch.rowCount
    if (copied.length < ROWS_SHOWN) copied.push(...batch.rows.split('\n', ROWS_SHOWN - copied.length).filter(Boolean))
    return batch.isWholeFile ? (balances?.end().errors ?? []) : []
  }
  const warnings: string[] = []
  const errors: string[] = []
  try {
    await storeBatches(csv, format, storeFirst, (text) => warnings.push(text))
    warnings.push(...(notes?.() ?? []))
  } catch (error) {
    if (!(error instanceof CsvFileError)) throw error
    const { message, details } = rejectedLines(error)
    errors.push(message, ...details)
  }
  const read = copied.map((row) => {
    const fields = toShow(row.split('\t'))
    return Object.fromEntries(columns.map((name, index) => [name, shownField(name, fields[index])]))
  })
  const shown = columns.filter((name) => read.some((row) => row[name]))
  const first = table(shown.join(', '), read, 'No rows could be read.')
  const data = document({ rows, first, faults: errors, warnings }, first, counted(rows, 'row'))
  return { data, warnings: [...errors, ...warnings] }
}

/** Formats a field in rupees for the operator, because rows for COPY contain paise. */
function shownField(name: string, copied = '\\N'): string | null {
  if (copied === '\\N') return null
  return ['amount', 'fee', 'tax'].includes(name) ? toDecimalText(Number(copied)) : copied
}

/** How a layout reads files. `toShow` converts the fields in a row for COPY to the fields in `columns`. */
type Reading = {
  columns: string[]
  format: CsvFormat
  toShow?: (copied: readonly string[]) => readonly string[]
  balances?: ReturnType<typeof statementFile>['balances']
  notes?: () => string[]
}

function readingOf(layout: Layout): Reading {
  const files = filesOf(layout)
  if (files === 'payments') return { columns: ['line', ...PAYMENT_COLUMNS], format: dailyReport(layout) }
  if (files === 'settlements') return { columns: ['line', ...SETTLEMENT_COLUMNS], ...settlementFile(layout) }
  const known = { references: new Set<string>(), amounts: new Set<Paise>() }
  const all = { importId: 0, from: '2000-01-01', to: '2099-12-31', known, matchedBefore: '' }
  return {
    columns: ['line', 'day', 'amount', 'references'],
    ...statementFile(layout, all),
    toShow: ([line = '', , day = '', paise = '', references = '']) =>
      [line, day, paise].concat(references.slice(1, -1).replaceAll(',', ' ')),
  }
}
