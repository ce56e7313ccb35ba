/** What a list answers: the fields of its records, and the rows that it takes them from. */
export type List = {
  /**
   * Name, SQL, and what the column holds: a moment, free text, or else what JSON and the text format of COPY spell alike, which
   * is ASCII without quotes, backslashes and control characters. `{mid}` stands for the merchant, whom a subquery has to name:
   * else Citus asks every shard.
   */
  fields: readonly (readonly [name: string, sql: string, holds?: 'moment' | 'free text'])[]
  /** Tables, with their joins. */
  from: string
  /** Whose row it is, when it happened, and its UTR in byte order. An index has these three. */
  mid: string
  at: string
  utr: string
}

/** What stands in a record before each value, and at its end. */
const frameOf = ({ fields }: List) => ({
  before: fields.map(([name], index) => `${index === 0 ? '{"' : '","'}${name}":"`),
  end: '"}',
})

/** Returns the function that makes a record, as JSON, of a row of a query, which gives a moment as a Date. */
export function recordOfRow(list: List): (row: readonly (string | Date)[]) => string {
  const { before, end } = frameOf(list)
  const spell = (value: string | Date) => (typeof value === 'string' ? inJson(value) : value.toISOString())
  return (row) => row.map((value, index) => before[index] + spell(value)).join('') + end
}

/**
 * Returns the function that makes the same record of a line of COPY, read as Latin 1, with moments in UTC. JSON.stringify made
 * a list of 1,000,000 take a fifth longer, and `line.split` a quarter.
 */
export function recordOfLine(list: List): (line: string) => string {
  const { before, end } = frameOf(list)
  const held = list.fields.map(([, , holds]) => holds)
  return (line) => {
    let record = ''
    let begin = 0
    for (let index = 0; index < before.length; index++) {
      const tab = line.indexOf('\t', begin)
      const value = line.slice(begin, tab < 0 ? line.length : tab)
      const holds = held[index]
      record += before[index]
      record += holds === undefined ? value : holds === 'moment' ? toUtcIso(value) : copiedInJson(value)
      begin = tab + 1
    }
    return record + end
  }
}

/** `2026-01-02 03:04:05.6` as `2026-01-02T03:04:05.600Z`; beyond milliseconds it is cut. */
function toUtcIso(text: string): string {
  const day = text.slice(0, 10)
  // Nearly all are whole seconds.
  if (text.length === WHOLE_SECONDS) return `${day}T${text.slice(11)}.000Z`
  return `${day}T${text.slice(11, 19)}.${text.slice(20, 23).padEnd(3, '0')}Z`
}

const WHOLE_SECONDS = '2026-01-02 03:04:05'.length

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)

/** What COPY and JSON spell alike: printable ASCII but quotes and backslashes. */
const SPELLED_ALIKE = /^[ !#-[\]-~]*$/

/** The text format of COPY puts a backslash before a backslash, and letters in the place of these control characters. */
const COPIED: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

function copiedInJson(copied: string): string {
  if (SPELLED_ALIKE.test(copied)) return copied
  const text = Buffer.from(copied, 'latin1').toString()
  return inJson(text.replace(/\\(.)/gu, (_, letter: string) => COPIED[letter] ?? letter))
}
