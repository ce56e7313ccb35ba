import { prepared } from '../db/prepared.ts'

/** What a list answers: the fields of its records, and the rows that it takes them from. */
type Description = {
  /**
   * Name, SQL, and what the column holds: a moment, free text, or else what JSON and the text format of COPY spell alike, which
   * is ASCII without quotes, backslashes and control characters. `{mid}` stands for the merchant, whom a subquery has to name:
   * else Citus asks every shard. No column is null.
   */
  fields: readonly (readonly [name: string, sql: string, holds?: 'moment' | 'free text'])[]
  /** Tables, with their joins. */
  from: string
  /** Whose row it is, when it happened, and its UTR in byte order. An index has these three. */
  mid: string
  at: string
  utr: string
}

export type List = ReturnType<typeof defineList>

/** The lines of a list are those of COPY's text format, with moments in UTC; `toRecord` of a form reads them. */
export function defineList({ fields, from, mid, at, utr }: Description) {
  // Moments become text in UTC, in the style that PostgreSQL has by itself: to_json took it 0.3 µs longer for each.
  const columns = fields.map(([, sql, holds]) => (holds === 'moment' ? `${sql} at time zone 'UTC'` : sql))
  const copied = columns.map((sql, index) => (fields[index]?.[2] === 'free text' ? escaped(sql) : sql))
  const rows = (first: string, until: string) => `
    from ${from}
   where ${mid} = {mid} and ${at} >= to_timestamp(${first}) and ${at} < to_timestamp(${until})`
  const order = `${at}, ${utr}`

  return {
    fields,

    /**
     * One row: how many records there are, counted until `$4` + 1, and their lines in one text, unless there are more than `$4`.
     * `$1` is the mid, `$2` and `$3` are as for `copy`. To count in the index first would spare a long list these rows, and took
     * PostgreSQL a third longer for a list of 30.
     */
    short: prepared(
      `select count(*)::integer as count, case when count(*) <= $4 then string_agg(line, E'\\n') end as lines
         from (select concat_ws(E'\\t', ${copied}) as line ${rows('$2', '$3')} order by ${order} limit $4 + 1) l`.replaceAll(
        '{mid}',
        '$1',
      ),
    ),

    /**
     * The records from `from` until before `until`, oldest first, then by UTR in byte order; all as SQL, because COPY takes no
     * parameters. Moments are seconds since 1970, because a list may begin in the year 1, whose dates ISO 8601 and PostgreSQL
     * spell differently in UTC.
     */
    copy: (mid: string, from: number, until: number) =>
      `copy (select ${columns} ${rows(String(from), String(until))} order by ${order}) to stdout`.replaceAll(
        '{mid}',
        () => mid,
      ),
  }
}

/** SQL of free text as COPY's text format has it, of which only these three would be read wrongly. */
const escaped = (sql: string) => String.raw`replace(replace(replace(${sql}, '\', '\\'), E'\t', '\t'), E'\n', '\n')`

/** How the records of a list are written. */
export type Form = {
  type: string
  /** What stands around the records, and between two. */
  frame: (found: boolean) => { begin: string; between: string; end: string }
  /** Writes the record of a line that was read as Latin 1. */
  toRecord: (line: string) => string
}

type Spelling = {
  /** What stands in a record before each value, and at its end. */
  before: readonly string[]
  end: string
  /** Writes a value that is not free text, and one that is. */
  plain?: (value: string) => string
  free: (value: string) => string
}

/** JSON.stringify made a list of 1,000,000 take a fifth longer, and `line.split` a quarter. */
function toRecordOf({ fields }: Fields, { before, end, plain, free }: Spelling): Form['toRecord'] {
  const held = fields.map(([, , holds]) => holds)
  return (line) => {
    let record = ''
    let begin = 0
    for (let index = 0; index < before.length; index++) {
      const tab = line.indexOf('\t', begin)
      const value = line.slice(begin, tab < 0 ? line.length : tab)
      const holds = held[index]
      record += before[index]
      if (holds === 'moment') record += toUtcIso(value)
      else if (holds === 'free text' && !SPELLED_ALIKE.test(value)) record += free(uncopied(value))
      else record += plain === undefined ? value : plain(value)
      begin = tab + 1
    }
    return record + end
  }
}

type Fields = Pick<List, 'fields'>

/** JSON with `around` before and after the records. */
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

/** RFC 4180. A value that a spreadsheet would take for a formula gets a leading `'`, unless it is an amount. */
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

const FORMULA = /^[=+\-@\t\r]/
const AMOUNT = /^-?\d+\.\d\d$/
const QUOTED = /[",\r\n]/

/** `2026-01-02 03:04:05.6` as `2026-01-02T03:04:05.600Z`; beyond milliseconds it is cut. */
function toUtcIso(text: string): string {
  const day = text.slice(0, 10)
  // Nearly all are whole seconds.
  if (text.length === WHOLE_SECONDS) return `${day}T${text.slice(11)}.000Z`
  return `${day}T${text.slice(11, 19)}.${text.slice(20, 23).padEnd(3, '0')}Z`
}

const WHOLE_SECONDS = '2026-01-02 03:04:05'.length

/** What COPY and JSON spell alike: printable ASCII but quotes and backslashes. */
const SPELLED_ALIKE = /^[ !#-[\]-~]*$/

/** The text format of COPY puts a backslash before a backslash, and letters in the place of these control characters. */
const COPIED: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

const uncopied = (copied: string) =>
  Buffer.from(copied, 'latin1')
    .toString()
    .replace(/\\(.)/gu, (_, letter: string) => COPIED[letter] ?? letter)
