import * as z from 'zod'
import type { Queryable } from '../db/pool.ts'
import { readRupees } from '../money.ts'

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

export const DATE_FORM_RULE = 'must have d or dd, m, mm or mmm, and yy or yyyy, such as dd/mm/yyyy or d mmm yy'
const PARTS: Readonly<Record<string, string>> = {
  d: '(?<day>\\d{1,2})',
  dd: '(?<day>\\d{1,2})',
  m: '(?<month>\\d{1,2})',
  mm: '(?<month>\\d{1,2})',
  mmm: '(?<monthName>[a-z]{3})[a-z]{0,6}',
  yy: '(?<year>\\d\\d)',
  yyyy: '(?<year>20\\d\\d)',
}
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const CLOCK = '(?:[ T,]+(?<hour>\\d{1,2}):(?<minute>\\d\\d)(?::(?<second>\\d\\d))?(?:\\.\\d+)? *(?<half>[AP]M)?)?'

/**
 * Returns the reader of times in this form: it returns `YYYY-MM-DD HH:MM:SS`, 00:00:00 where the file has a day alone, or
 * undefined for a time that does not exist or has another form. Undefined for a form that breaks DATE_FORM_RULE.
 */
export function timeReader(form: string): ((text: string) => string | undefined) | undefined {
  const parts = form.match(/d+|m+|y+|[^dmy]/g) ?? []
  const kinds = parts
    .filter((part) => part in PARTS)
    .map((part) => part[0])
    .sort()
  if (kinds.join('') !== 'dmy' || !parts.every((part) => part in PARTS || /^[ /.,-]$/.test(part))) return undefined
  const pattern = new RegExp(`^${parts.map((part) => PARTS[part] ?? `\\${part}`).join('')}${CLOCK}$`, 'i')
  return (text) => {
    const found = pattern.exec(text)?.groups
    if (found === undefined) return undefined
    const { year = '', day = '', monthName, hour = '0', minute = '00', second = '00', half } = found
    const month = monthName ? MONTHS.indexOf(monthName.toLowerCase()) + 1 : Number(found.month)
    const hours = half ? (Number(hour) % 12) + (half.toLowerCase() === 'pm' ? 12 : 0) : Number(hour)
    const two = (part: number | string) => String(part).padStart(2, '0')
    const date = `20${year.slice(-2)}-${two(month)}-${two(day)}`
    const time = `${two(hours)}:${minute}:${second}`
    return z.regexes.date.test(date) && /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/.test(time) ? `${date} ${time}` : undefined
  }
}

/** A day in any form, or what is meant as one: a wrong day is a fault of its row, and not the end of the table. */
const LIKE_A_DAY = /^\d{1,4} ?[-/. ] ?[A-Za-z0-9]{1,9} ?[-/. ] ?\d{1,4}(?!\d)/

/** How the fields of the bank's files become those of ours. Each function returns undefined for a field that breaks its rule. */
export function fieldReaders({ date, statuses }: Layout) {
  const readTime = timeReader(date) ?? (() => undefined)
  const statusOf = new Map(
    Object.entries(statuses).flatMap(([status, words = []]) => words.map((word) => [word.toLowerCase(), status])),
  )
  const every = Object.entries(statuses).find(([, words]) => words?.length === 0)?.[0]
  return {
    time: readTime,
    day: (field: string) => readTime(field)?.slice(0, 10),
    rupees: readRupees,
    status: (field: string) => every ?? statusOf.get(field.toLowerCase()),
    rules: {
      time: `must be a day that exists, written ${date}`,
      day: `must be a day that exists, written ${date}`,
      rupees: 'must be rupees with at most two decimals, such as 1,450.50',
      status: `must be a word of the layout: ${[...statusOf.keys()].join(', ')}`,
    },
    isLikeDay: (field: string) => LIKE_A_DAY.test(field) || readTime(field) !== undefined,
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
