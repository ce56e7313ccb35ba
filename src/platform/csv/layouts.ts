import type { Queryable } from '../db/pool.ts'
import { query } from '../db/query.ts'
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

const LAYOUT = 'name, columns, date_format as date, statuses, mid, negative_below, ignored_lines'

export function createLayouts(db: Queryable) {
  return {
    /** Stores a layout. Returns false if a layout with this name already exists. */
    async add({ columns, statuses, ...layout }: Layout): Promise<boolean> {
      const values = { ...layout, columns: JSON.stringify(columns), statuses: JSON.stringify(statuses) }
      return (await ADD(db, values)).length === 1
    },

    list: () => LIST(db, {}),
    find: async (name: string) => (await FIND(db, { name }))[0],
    remove: async (name: string) => (await REMOVE(db, { name })).length === 1,
  }
}

type StoredLayout = Omit<Layout, 'columns' | 'statuses'> & Record<'columns' | 'statuses', string>

const ADD = query<object, StoredLayout>(`
  insert into file_layouts (name, columns, date_format, statuses, mid, negative_below, ignored_lines)
  values (:name, :columns, :date, :statuses, :mid, :negativeBelow, :ignoredLines)
  on conflict (name) do nothing
  returning name`)

const LIST = query<Layout, object>(`select ${LAYOUT} from file_layouts order by name`)
const FIND = query<Layout, { name: string }>(`select ${LAYOUT} from file_layouts where name = :name`)
const REMOVE = query<object, { name: string }>('delete from file_layouts where name = :name returning name')
