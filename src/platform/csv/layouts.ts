import type { Queryable } from '../db/pool.ts'
import { isLikeDay, timeReader } from './days.ts'

/** Layouts of the files that banks and acquirers send: which of their columns is which of ours, and how they write days and words. */
export type Layout = {
  name: string
  /** Pairs of our column and the bank's, such as `['amount', 'Net Amount']`. A bank's column `Dr / Cr#2` is the second of this name. */
  columns: [string, string][]
  /** How days are written, such as `dd/mm/yyyy` or `dd-mmm-yy`. */
  date: string
  /** The bank's words for each of our statuses, and for IGNORED; without words every row has the status. */
  statuses: Partial<Record<string, string[]>>
  /** The merchant of every row, where the file has no column for it. */
  mid: string | null
}

/** The status of rows that are left out: their money is not paid out, and they may lack the payout's reference. */
export const IGNORED = 'IGNORED'

/** A reference or an id, whose digit tells it from the words of a footer, such as `Total (2)` or `Page 1 of 2`. */
export const ONE_NAME = /^[\w.-]*\d[\w.-]*$/

/**
 * Columns of a statement. `sign` says CR or DR beside `amount`, a second `balance` the same of the balance; several columns may hold
 * a `reference`.
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

/** Whether the layout is one of an acquirer's list of payments. */
export const isOfPayments = ({ columns }: Pick<Layout, 'columns'>) => columns.some(([ours]) => ours === 'paid_at')

/** Whether the layout is one of an account's statements; else it is one of settlement files, unless it is one of payments. */
export const isOfStatements = ({ columns }: Pick<Layout, 'columns'>) => columns.some(([ours]) => ours === 'day')

/** How the fields of the bank's files become those of ours. Each function returns undefined for a field that breaks its rule. */
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
      time: `must be a day that exists, written ${date}`,
      day: `must be a day that exists, written ${date}`,
      status: `must be a word of the layout: ${[...statusOf.keys()].join(', ')}`,
    },
    isLikeDay: (field: string) => isLikeDay(field) || readTime(field) !== undefined,
  }
}

export type FieldReaders = ReturnType<typeof fieldReaders>

const LAYOUT = 'name, columns, date_form as date, statuses, mid'

export function createLayouts(db: Queryable) {
  return {
    /** False when there is one of this name. */
    async add({ name, columns, date, statuses, mid }: Layout): Promise<boolean> {
      const { rowCount } = await db.query(
        `insert into file_layouts (name, columns, date_form, statuses, mid)
         values ($1, $2, $3, $4, $5)
         on conflict (name) do nothing`,
        [name, JSON.stringify(columns), date, JSON.stringify(statuses), mid],
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
