import type { Queryable } from '../db/pool.ts'
import { isLikeDay, timeReader } from './days.ts'

/**
 * A layout describes the files that a bank or an acquirer sends. The layout maps the files' columns, date format and
 * statuses to the service's own.
 */
export type Layout = {
  name: string
  /**
   * Pairs of the service's column and the bank's, such as `['amount', 'Net Amount']`. The bank's column `Dr / Cr#2` is
   * the second column with the name `Dr / Cr`.
   */
  columns: [string, string][]
  /** The format of days, such as `dd/mm/yyyy` or `dd-mmm-yy`. */
  date: string
  /**
   * The bank's words for each of the service's statuses, and for IGNORED. A status that has no words applies to every
   * row.
   */
  statuses: Partial<Record<string, string[]>>
  /** The merchant of every row, if the file has no column for the merchant. */
  mid: string | null
  /** Titles, such as `Refunds`, below which the amounts of all rows are negative. */
  negativeBelow: string[]
  /** Lines between rows, by their only text, that mean nothing. */
  ignoredLines: string[]
}

/**
 * The status of rows that are skipped, because the money in such a row is not paid out, and the row may lack the
 * payout's reference.
 */
export const IGNORED = 'IGNORED'

/**
 * Columns of a statement. `sign` contains CR or DR for `amount`, and a second `balance` column contains CR or DR for
 * the balance. Several columns may contain a `reference`.
 */
export const STATEMENT_COLUMNS = ['day', 'reference', 'credit', 'debit', 'amount', 'sign', 'balance']

/** Columns of an acquirer's list of payments. */
export const PAYMENT_COLUMNS = [
  'order_id',
  'acquirer_reference',
  'acquirer_payment_id',
  'status',
  'utr',
  'amount',
  'paid_at',
  'reason',
  'code',
] as const

/** Whether the layout is for an acquirer's list of payments. */
export const isOfPayments = ({ columns }: Pick<Layout, 'columns'>) => columns.some(([ours]) => ours === 'paid_at')

/**
 * Whether the layout is for bank statements. A layout that is neither for statements nor for payments is for settlement
 * files.
 */
export const isOfStatements = ({ columns }: Pick<Layout, 'columns'>) => columns.some(([ours]) => ours === 'day')

/**
 * Returns parsers that convert the fields in a bank's file to the service's fields. Each parser returns undefined for a
 * field that violates the parser's rule.
 */
export function fieldReaders({ date, statuses }: Layout) {
  const readTime = timeReader(date) ?? (() => undefined)
  const comparable = (word: string) => word.replace(/\s+/g, ' ').toLowerCase()
  const statusOf = new Map(
    Object.entries(statuses).flatMap(([status, words = []]) => words.map((word) => [comparable(word), status])),
  )
  const every = Object.entries(statuses).find(([, words]) => words?.length === 0)?.[0]
  return {
    time: readTime,
    day: (field: string) => readTime(field)?.slice(0, 10),
    status: (field: string) => every ?? statusOf.get(comparable(field)),
    rules: {
      time: `must be an existing day in the format ${date}`,
      day: `must be an existing day in the format ${date}`,
      status: `must be a status of the layout: ${[...statusOf.keys()].join(', ')}`,
    },
    isLikeDay: (field: string) => isLikeDay(field) || readTime(field) !== undefined,
  }
}

export type FieldReaders = ReturnType<typeof fieldReaders>

const LAYOUT =
  'name, columns, date_format as date, statuses, mid, negative_below as "negativeBelow", ignored_lines as "ignoredLines"'

export function createLayouts(db: Queryable) {
  return {
    /** Stores a layout. Returns false if a layout with this name already exists. */
    async add({ name, columns, date, statuses, mid, negativeBelow, ignoredLines }: Layout): Promise<boolean> {
      const { rowCount } = await db.query(
        `insert into file_layouts (name, columns, date_format, statuses, mid, negative_below, ignored_lines)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (name) do nothing`,
        [name, JSON.stringify(columns), date, JSON.stringify(statuses), mid, negativeBelow, ignoredLines],
      )
      return rowCount === 1
    },

    async list(): Promise<Layout[]> {
      return (await db.query<Layout>(`select ${LAYOUT} from file_layouts order by name`)).rows
    },

    async find(name: string): Promise<Layout | undefined> {
      return (await db.query<Layout>(`select ${LAYOUT} from file_layouts where name = $1`, [name])).rows[0]
    },

    async remove(name: string): Promise<boolean> {
      return (await db.query('delete from file_layouts where name = $1', [name])).rowCount === 1
    },
  }
}
