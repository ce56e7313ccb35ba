import type { Readable } from 'node:stream'
import * as z from 'zod'
import {
  LAYOUT_COLUMNS,
  NAMING_COLUMNS,
  REQUIRED_COLUMNS,
  SETTLEMENT_COLUMNS,
  settlementFile,
} from '../../books/settlements/csv.ts'
import { SUMMED_COLUMNS } from '../../books/settlements/row-money.ts'
import { statementFile } from '../../books/statements/format.ts'
import { dayFile, ORDER_COLUMNS } from '../../gateway/payments/day-file-format.ts'
import { FINAL_STATUSES } from '../../gateway/payments/outcome.ts'
import { type Batch, CsvFileError, storeBatches } from '../../platform/csv/csv.ts'
import { DATE_FORM_RULE, timeReader } from '../../platform/csv/days.ts'
import type { CsvFormat } from '../../platform/csv/header.ts'
import {
  createLayouts,
  IGNORED,
  isOfPayments,
  isOfStatements,
  type Layout,
  PAYMENT_COLUMNS,
  STATEMENT_COLUMNS,
} from '../../platform/csv/layouts.ts'
import type { Database } from '../../platform/db/pool.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { counted, type Paise, toDecimalText } from '../../platform/money.ts'
import { atomicCommand, command } from './command.ts'
import { document, record, table } from './data.ts'
import { CommandError } from './errors.ts'
import { FILE, readFile, refusedLines } from './file.ts'
import type { Output } from './output.ts'

/** Rows that `try` shows. */
const ROWS_SHOWN = 5

const OURS = [...new Set<string>([...SETTLEMENT_COLUMNS, ...LAYOUT_COLUMNS, ...STATEMENT_COLUMNS, ...PAYMENT_COLUMNS])]
const COLUMN_RULE = `must be a column of ours, = and the file's name for it, such as amount="Net Amount"; ours are ${OURS.join(', ')}`
const STATUSES = ['SUCCESS', 'PENDING', 'FAILED', IGNORED]
const PAYMENT_STATUSES = [...FINAL_STATUSES, IGNORED]
const STATUS_RULE =
  "must be SUCCESS, PENDING, FAILED or IGNORED (of payments SUCCESS, FAIL, REJECT or IGNORED) with the file's words, such as SUCCESS=Success,Settled, or one but IGNORED alone where every row has it"

/** The rule, or where it is the file's name that stands first, the right order. */
const columnFault = ([first, second]: [string, string]) =>
  OURS.includes(second)
    ? `must be ours = theirs: our column comes first, such as --column "${second}=${first}"`
    : COLUMN_RULE

/** `ours=theirs`, with nothing for `theirs` where `=` is missing. */
const pair = (ours: readonly string[], rule: string, faultOf: (typed: [string, string]) => string = () => rule) =>
  z
    .string(errorText(rule))
    .transform((typed): [string, string] => [typed.split('=', 1)[0] as string, /=(.*)/.exec(typed)?.[1]?.trim() ?? ''])
    .refine(([name]) => ours.includes(name), { error: ({ input }) => faultOf(input as [string, string]) })

const Fields = z.object({
  name: identifier,
  column: z.array(
    pair(OURS, COLUMN_RULE, columnFault).refine(([, theirs]) => theirs !== '', COLUMN_RULE),
    errorText(COLUMN_RULE),
  ),
  date: z.string(errorText(DATE_FORM_RULE)).refine((form) => timeReader(form) !== undefined, DATE_FORM_RULE),
  status: z
    .array(
      pair([...STATUSES, ...PAYMENT_STATUSES], STATUS_RULE).refine(
        ([ours, words]) => ours !== IGNORED || words !== '',
        STATUS_RULE,
      ),
    )
    .default([]),
  mid: identifier.optional(),
})

const toLayout = ({ name, column: columns, date, status, mid }: z.output<typeof Fields>): Layout => ({
  ...{ name, columns, date, mid: mid ?? null },
  statuses: Object.fromEntries(status.map(([ours, words]) => [ours, words === '' ? [] : words.split(/ *, */)])),
})

/** What the layout lacks to read a file; undefined when nothing. */
function lackOf(layout: Layout): string | undefined {
  const ours = layout.columns.map(([name]) => name)
  const severals = isOfStatements(layout) ? ['reference', 'balance'] : SUMMED_COLUMNS
  const twice = ours.find((name, index) => !severals.includes(name) && ours.indexOf(name) !== index)
  if (twice !== undefined) return `--column ${twice} is given twice`
  const summed = isOfStatements(layout) ? [] : SUMMED_COLUMNS
  const negated = layout.columns.find(([name, theirs]) => theirs.startsWith('-') && !summed.includes(name))
  if (negated)
    return `--column ${negated.join('=')}: only ${SUMMED_COLUMNS.join(', ')} of settlement files may have a minus before the file's name`
  const { known, others, statuses } = KINDS[filesOf(layout)]
  const foreign = ours.find((name) => !known.includes(name))
  if (foreign !== undefined) return `--column ${foreign} is for ${others}`
  const status = Object.keys(layout.statuses).find((name) => !statuses.includes(name))
  if (status !== undefined) return `--status ${status} is none of ${filesOf(layout)}: ${statuses.join(', ')}`
  if (isOfPayments(layout)) return lackOfPayments(layout, ours)
  const hasTwo = ['credit', 'debit'].some((name) => ours.includes(name))
  if (hasTwo && ['amount', 'sign'].some((name) => ours.includes(name)))
    return '--column credit and debit are the amount: give them, or amount, with sign where that is a column of its own'
  const given = [
    ...ours,
    ...(ours.some((name) => NAMING_COLUMNS.includes(name)) ? ['utr'] : []),
    ...(layout.mid === null ? [] : ['mid']),
    // A status without words is that of every row.
    ...(Object.values(layout.statuses).some((words) => words?.length === 0) ? ['status'] : []),
  ]
  const amounts = hasTwo ? ['credit', 'debit'] : ['amount']
  const required = isOfStatements(layout)
    ? ['reference', ...amounts]
    : REQUIRED_COLUMNS.flatMap((name) => (name === 'amount' ? amounts : [name]))
  const missing = required.filter((name) => !given.includes(name))
  return missing.length > 0 ? `--column ${missing.join(', ')} is missing` : undefined
}

function lackOfPayments({ mid, statuses }: Layout, ours: readonly string[]): string | undefined {
  if (mid !== null) return '--mid is for settlement files: a payment is of the merchant of its order'
  const given = [...ours, ...(Object.values(statuses).some((words) => words?.length === 0) ? ['status'] : [])]
  const oneOfs = [['status'], ['amount'], ['utr', 'acquirer_payment_id'], ORDER_COLUMNS]
  const missing = oneOfs.filter((oneOf) => !oneOf.some((name) => given.includes(name)))
  return missing.length > 0 ? `--column ${missing.map((oneOf) => oneOf.join(' or ')).join(', ')} is missing` : undefined
}

type Kind = { known: readonly string[]; statuses: readonly string[]; others: string }

/** The columns and statuses of each kind of files, and the files that other columns are for. */
const KINDS: Record<ReturnType<typeof filesOf>, Kind> = {
  payments: { known: PAYMENT_COLUMNS, statuses: PAYMENT_STATUSES, others: 'settlement files and bank statements' },
  'bank statements': { known: STATEMENT_COLUMNS, statuses: STATUSES, others: 'settlement files' },
  settlements: {
    known: [...SETTLEMENT_COLUMNS, ...LAYOUT_COLUMNS],
    statuses: STATUSES,
    others: 'bank statements, which have a day',
  },
}

export const layoutCommands = [
  atomicCommand('settlements layout add', 'Describe the files of a bank or acquirer', {
    usage:
      '--name hdfc --column amount="Net Amount" … --date dd/mm/yyyy [--status SUCCESS=Success,Settled …] [--mid M1]   (columns: ' +
      `${OURS.join(', ')}; a bank statement has day, a list of payments paid_at)`,
    schema: Fields.superRefine((fields, context) => {
      const message = lackOf(toLayout(fields))
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    }),
    async run(fields, { client }) {
      const layout = toLayout(fields)
      if (!(await createLayouts(client).add(layout))) {
        throw new CommandError(`there is a layout ${layout.name}: ops settlements layout remove --name ${layout.name}`)
      }
      return { data: document(layout, record(toShown(layout))), made: { name: layout.name } }
    },
  }),

  command('settlements layout list', 'List the layouts of files', {
    async run(_, { db }) {
      const columns = 'name, of, columns, date, statuses, mid'
      return table(columns, await createLayouts(db).list(), { empty: 'no layouts yet', cells: toShown })
    },
  }),

  atomicCommand('settlements layout remove', 'Forget a layout; what was imported by it stays', {
    usage: '--name hdfc',
    schema: z.object({ name: identifier }),
    async run({ name }, { client }) {
      if (!(await createLayouts(client).remove(name))) throw unknownLayout(name)
      return { data: document({ name }, `the layout ${name} is removed`), made: { name } }
    },
  }),

  command('settlements layout try', 'Show how a layout reads a file, and store nothing', {
    usage: 'FILE|- --layout hdfc',
    schema: z.object({ file: FILE, layout: identifier }),
    argument: 'file',
    run: async ({ file, layout }, { db, terminal }) => {
      const found = await findLayout(db, layout)
      return readFile(file, terminal, (csv) => tryLayout(csv, found))
    },
  }),
]

/** The same commands, where people look for the layouts of bank statements. */
export const statementLayoutCommands = layoutCommands.map((one) => ({
  ...one,
  name: one.name.replace('settlements', 'statements'),
  summary: `The same as ${one.name}`,
}))

const toShown = ({ columns, statuses, ...layout }: Layout) => ({
  ...layout,
  of: filesOf({ columns }),
  columns: columns.map((names) => names.join('=')),
  statuses: Object.entries(statuses).map(([ours, words = []]) => `${ours}=${words.join()}`),
})

/** Throws a CommandError when there is none of this name, or one of other files than `wanted`. */
export async function findLayout(db: Database, name: string, wanted?: ReturnType<typeof filesOf>): Promise<Layout> {
  const layout = await createLayouts(db).find(name)
  if (layout === undefined) throw unknownLayout(name)
  if (wanted && filesOf(layout) !== wanted)
    throw new CommandError(`${name} is a layout of ${filesOf(layout)}, not of ${wanted}`)
  return layout
}

const filesOf = (layout: Pick<Layout, 'columns'>) =>
  isOfPayments(layout) ? 'payments' : isOfStatements(layout) ? 'bank statements' : 'settlements'

const unknownLayout = (name: string) => new CommandError(`there is no layout ${name}: see ops settlements layout list`)

async function tryLayout(csv: Readable, layout: Layout): Promise<Output> {
  const { columns, format, toShow, balances, notes } = formatOf(layout)
  const shown: string[] = []
  let rows = 0
  const keepFirst = async (batch: Batch) => {
    rows += batch.rowCount
    if (shown.length < ROWS_SHOWN) shown.push(...batch.rows.split('\n', ROWS_SHOWN - shown.length).filter(Boolean))
    return batch.isLast ? (balances?.end().faults ?? []) : []
  }
  const warnings: string[] = []
  const refused = await storeBatches(csv, format, keepFirst, (text) => warnings.push(text)).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof CsvFileError) return refusedLines(error)
      throw error
    },
  )
  const read = shown.map((row) => {
    const fields = toShow(row.split('\t')).map((field) => (field === '\\N' ? null : field))
    return Object.fromEntries(columns.map((name, index) => [name, shownField(name, fields[index] ?? null)]))
  })
  if (!refused) warnings.push(...notes())
  const faults = refused ? [refused.message, ...refused.details] : []
  const first = table(shownOf(columns, read).join(', '), read, 'no row could be read')
  const data = document({ rows, first, faults, warnings }, first, counted(rows, 'row'))
  return { data, warnings: [...faults, ...warnings] }
}

/** The format of the layout's files, the names of what it reads, and how a person sees the fields that COPY would get. */
/** COPY gets paise, a person sees rupees. */
const shownField = (name: string, copied: string | null) =>
  copied !== null && ['amount', 'fee', 'tax'].includes(name) ? toDecimalText(Number(copied)) : copied

/** The columns that one of the rows has. */
const shownOf = (columns: readonly string[], rows: readonly Record<string, string | null>[]) =>
  columns.filter((name) => rows.some((row) => row[name] !== null && row[name] !== ''))

function formatOf(layout: Layout): {
  columns: string[]
  format: CsvFormat
  toShow: (copied: readonly string[]) => readonly string[]
  balances?: ReturnType<typeof statementFile>['balances']
  notes: () => string[]
} {
  if (isOfPayments(layout))
    return {
      columns: ['line', ...PAYMENT_COLUMNS],
      format: dayFile(layout),
      toShow: (copied) => copied,
      notes: () => [],
    }
  if (!isOfStatements(layout))
    return { columns: ['line', ...SETTLEMENT_COLUMNS], toShow: (copied) => copied, ...settlementFile(layout) }
  const all = {
    importId: 0,
    from: '2000-01-01',
    to: '2099-12-31',
    known: { references: new Set<string>(), amounts: new Set<Paise>() },
    matchedBefore: '',
  }
  return {
    columns: ['line', 'day', 'amount', 'references'],
    notes: () => [],
    ...statementFile(layout, all),
    toShow: ([line = '', , day = '', paise = '', references = '']) => [
      ...[line, day, paise],
      references.slice(1, -1).replaceAll(',', ' '),
    ],
  }
}
