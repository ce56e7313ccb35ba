import { escapeLiteral } from 'pg'
import { prepared } from '../db/prepared.ts'
import { toDecimalText } from '../money.ts'

type Description = {
  /**
   * Name, SQL and contents of each field. The contents are paise, a moment, a moment or null, or free text. By default,
   * the contents are ASCII without quotes, backslashes and control characters, which JSON and COPY's text format write
   * identically. Only the column of a `moment or null` may be null.
   *
   * In all SQL of a list, `{mid}` stands for the value `mid` of a request; an absent value is an empty text. Every
   * subquery must contain `{mid}`, so that the query reads one shard.
   */
  fields: readonly (readonly [name: string, sql: string, holds?: 'paise' | 'moment' | 'moment or null' | 'free text'])[]
  /** SQL for the tables with their joins. */
  from: string
  where: string
  /**
   * SQL condition that few of the rows of `where` may satisfy, so that PostgreSQL may read many rows before it finds a
   * record. PostgreSQL plans a list with a filter for the values of each request.
   */
  filter?: string
  /** Whether the response begins although no record was found for `firstRecordMs`. */
  beginsEmpty?: boolean
  /** SQL of the columns by which the records are sorted. One index must have these columns, after those of `where`. */
  order: string
}

/** Largest numbers of records in a list that is sent in one piece, and of rows that its filter may read. */
export type ShortLimits = { shortRows: number; filteredRows: number }

/**
 * The values of a request. Moments are seconds since 1970, because ISO 8601 and PostgreSQL write year 1 differently.
 */
export type ListValues = Readonly<Record<string, string | undefined>>

/** Formats a moment as a value of a request. */
export const secondsOf = (moment: Date) => String(moment.getTime() / 1000)

export type List = ReturnType<typeof defineList>

/**
 * Defines a list. The SQL of the list yields lines in COPY's text format with moments in UTC. A form's `toRecord` reads
 * these lines.
 */
export function defineList({ fields, from, where, filter = 'true', beginsEmpty = false, order }: Description) {
  const isFiltered = filter !== 'true'
  const columns = fields.map(([, sql, holds]) => {
    // Moments are in PostgreSQL's text form, because to_json takes longer. toUtcIso converts the moments to ISO 8601.
    if (holds === 'moment') return `${sql} at time zone 'UTC'`
    return holds === 'moment or null' ? `coalesce((${sql} at time zone 'UTC')::text, '')` : sql
  })
  const copied = columns.map((sql, index) => (fields[index]?.[2] === 'free text' ? escaped(sql) : sql))
  const line = `concat_ws(E'\\t', ${copied})`
  const short = `
    select case when count(*) <= {read} and count(line) <= {most} then coalesce(string_agg(line, E'\\n'), '') end as lines
      from (select case when ${filter} then ${line} end as line
              from ${from} where ${where} order by ${order} limit {read} + 1) l`
  const all = `select ${columns} from ${from} where ${where} and ${filter} order by ${order}`
  const names = [...new Set(Array.from(short.matchAll(VALUE), ([, name = '']) => name))]
  const statement = prepared(short.replaceAll(VALUE, (_, name: string) => `$${names.indexOf(name) + 1}`))

  return {
    fields,
    isFiltered,
    beginsEmpty,

    /** SQL that returns the lines of the records in one text, or null for a list that exceeds the limits. */
    short(values: ListValues, { shortRows, filteredRows }: ShortLimits) {
      const read = isFiltered ? filteredRows : shortRows
      const given: ListValues = { ...values, most: String(shortRows), read: String(read) }
      const query = statement(...names.map((name) => given[name] ?? ''))
      return isFiltered ? { ...query, name: undefined } : query
    },

    /** SQL for all records. It contains the values, because COPY accepts no parameters. */
    copy: (values: ListValues) =>
      `copy (${all}) to stdout`.replaceAll(VALUE, (_, name: string) => escapeLiteral(values[name] ?? '')),
  }
}

/** SQL condition: the moment is from `{from}` until before `{until}`. */
export const isInDays = (moment: string) => `${moment} >= to_timestamp({from}) and ${moment} < to_timestamp({until})`

const VALUE = /\{(\w+)\}/g

/** SQL for free text in COPY's text format. Only the three characters that `uncopied` would misread are escaped. */
const escaped = (sql: string) => String.raw`replace(replace(replace(${sql}, '\', '\\'), E'\t', '\t'), E'\n', '\n')`

export type Form = {
  type: string
  /** The texts before the first record, between two records, and after the last record. */
  frame: (found: boolean) => { begin: string; between: string; end: string }
  /** Converts a line of COPY, decoded as Latin 1, to a record. */
  toRecord: (line: string) => string
}

type Format = {
  /** The text before each value of a record, such as its JSON name, in the order of the fields. */
  before: readonly string[]
  end: string
  /** `free` formats free text, and `plain` formats any other text. */
  plain?: (value: string) => string
  free: (value: string) => string
}

/** Returns a function that converts a line to a record without JSON.stringify and `line.split`, which take longer. */
function toRecordOf({ fields }: Fields, { before, end, plain, free }: Format): Form['toRecord'] {
  const held = fields.map(([, , holds]) => holds)
  return (line) => {
    let record = ''
    let begin = 0
    for (let index = 0; index < before.length; index++) {
      const tab = line.indexOf('\t', begin)
      const value = line.slice(begin, tab < 0 ? line.length : tab)
      const holds = held[index]
      record += before[index]
      if (holds === 'paise') record += inRupees(value)
      else if (holds === 'moment' || holds === 'moment or null') record += toUtcIso(value)
      else if (holds === 'free text' && !WRITTEN_ALIKE.test(value)) record += free(uncopied(value))
      else record += plain === undefined ? value : plain(value)
      begin = tab + 1
    }
    return record + end
  }
}

type Fields = Pick<List, 'fields'>

export const jsonForm = (list: Fields, around: (found: boolean) => [string, string]): Form => ({
  type: 'application/json; charset=utf-8',
  frame: (found) => {
    const [begin, end] = around(found)
    return { begin, between: ',', end }
  },
  toRecord: toRecordOf(list, {
    before: list.fields.map(([name], index) => `${index === 0 ? '{"' : '","'}${name}":"`),
    end: '"}',
    free: (text) => JSON.stringify(text).slice(1, -1),
  }),
})

/** The format of RFC 4180. A value that a spreadsheet would read as a formula gets a leading `'`, except an amount. */
export const csvForm = (list: Fields): Form => ({
  type: 'text/csv; charset=utf-8; header=present',
  frame: () => ({ begin: `${list.fields.map(([name]) => name)}\r\n`, between: '', end: '' }),
  toRecord: toRecordOf(list, {
    before: list.fields.map((_, index) => (index === 0 ? '' : ',')),
    end: '\r\n',
    plain: inCsv,
    free: inCsv,
  }),
})

function inCsv(value: string): string {
  const safe = FORMULA.test(value) && !AMOUNT.test(value) ? `'${value}` : value
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/**
 * The pattern includes the full-width forms of `=`, `+`, `-` and `@`, because spreadsheets read these forms like the
 * ASCII characters.
 */
const FORMULA = /^[=+\-@\t\r＝＋－＠]/
const AMOUNT = /^-?\d+\.\d\d$/
const QUOTED = /[",\r\n]/

/** Formats `58882` as `588.82`, and `-5` as `-0.05`. In PostgreSQL, `* 0.01` costs eight times as much. */
function inRupees(paise: string): string {
  if (paise.length < 4) return toDecimalText(Number(paise))
  const point = paise.length - 2
  return `${paise.slice(0, point)}.${paise.slice(point)}`
}

/** Formats `2026-01-02 03:04:05.6` as `2026-01-02T03:04:05.600Z`, and '' as ''. Microseconds are cut off. */
function toUtcIso(text: string): string {
  if (text === '') return ''
  const day = text.slice(0, 10)
  // Most moments have no fraction of a second.
  if (text.length === WHOLE_SECONDS) return `${day}T${text.slice(11)}.000Z`
  return `${day}T${text.slice(11, 19)}.${text.slice(20, 23).padEnd(3, '0')}Z`
}

const WHOLE_SECONDS = '2026-01-02 03:04:05'.length

/** Text that COPY and JSON write identically: printable ASCII without quotes and backslashes. */
const WRITTEN_ALIKE = /^[ !#-[\]-~]*$/

/**
 * The letters that COPY's text format writes after a backslash, and the control characters that the letters represent.
 */
const COPIED: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

const uncopied = (copied: string) =>
  Buffer.from(copied, 'latin1')
    .toString()
    .replace(/\\(.)/gu, (_, letter: string) => COPIED[letter] ?? letter)
