import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CsvFileError, readBatches } from '../../src/csv.ts'
import type { Database } from '../../src/db/pool.ts'
import { createMerchants } from '../../src/merchants/merchants.ts'
import { SETTLEMENT_FILE } from '../../src/settlements/csv.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { runs } from '../support/generated.ts'
import { unique } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'

const REQUIRED = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date'] as const
const COLUMNS = [...REQUIRED, 'created_at', 'fee', 'tax', 'payment_utr'] as const
const NOW = new Date('2026-02-01T00:00:00Z')
/** A field that no column takes. */
const BAD = '\u00a7'

type Row = Record<(typeof COLUMNS)[number], string>
/** How a program may write the same rows. */
type Style = {
  quoted: boolean[]
  eol: '\n' | '\r\n'
  bom: boolean
  blankEvery: number
  endsWithEol: boolean
  chunk: number
}

const from = (units: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...units), minLength: min, maxLength: max })
const two = (number: number) => String(number).padStart(2, '0')
const moment = fc
  .tuple(
    fc.integer({ min: 2000, max: 2099 }),
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 28 }),
    fc.nat({ max: 86_399 }),
  )
  .chain(([year, month, day, second]) => {
    const date = `${year}-${two(month)}-${two(day)}`
    const time = `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`
    return fc.constantFrom(
      `${date} ${time}`,
      `${date}T${time}Z`,
      `${date}T${time}.123456+05:30`,
      `${date}T${time}-0800`,
    )
  })
const anyAmount = fc
  .tuple(fc.integer({ min: 0, max: 999_999_999_999 }), fc.constantFrom('', '.5', '.05', '.99'))
  .map((parts) => parts.join(''))
const anyUtr = from('AZaz09', 1, 35)
const anyRow: fc.Arbitrary<Row> = fc.record({
  mid: fc.constantFrom('M1', 'M2'),
  amount: anyAmount,
  utr: anyUtr,
  bank_reference_number: from('Az09 ./_-', 1, 64),
  status: fc.constantFrom('SUCCESS', 'PENDING', 'FAILED'),
  initiation_date: moment,
  created_at: fc.oneof(fc.constant(''), moment),
  fee: fc.oneof(fc.constant(''), anyAmount),
  tax: fc.oneof(fc.constant(''), anyAmount),
  payment_utr: fc.oneof(fc.constant(''), anyUtr),
})
const anyRows = fc.uniqueArray(anyRow, { selector: ({ mid, utr }) => `${mid} ${utr}`, maxLength: 25 })
const anyStyle: fc.Arbitrary<Style> = fc.record({
  quoted: fc.array(fc.boolean(), { minLength: 1, maxLength: 11 }),
  eol: fc.constantFrom('\n', '\r\n'),
  bom: fc.boolean(),
  blankEvery: fc.nat({ max: 4 }),
  endsWithEol: fc.boolean(),
  chunk: fc.integer({ min: 1, max: 200 }),
})
/** What stands in a wrong field: any text at all, with what a reader of CSV trips over. */
const anyText = fc.oneof(
  fc.string({
    unit: fc.constantFrom('"', ',', '\n', '\r', '\r\n', '\t', '\\', '\\.', '\0', 'a', 'é', '𝒳', '\ufeff'),
    maxLength: 12,
  }),
  fc.string({ unit: 'binary', maxLength: 12 }),
)

/** A CSV file as RFC 4180 has it, and the line on which each of the records begins. */
function write(
  records: readonly (readonly string[])[],
  style: Style,
): { file: Readable; text: string; lines: number[] } {
  const { quoted, eol, bom, blankEvery, endsWithEol, chunk } = style
  let fieldCount = 0
  const field = (value: string) => {
    const mustBeQuoted = /[",\r\n]/.test(value) || value === ''
    const isQuoted = quoted[fieldCount++ % quoted.length] || mustBeQuoted
    return isQuoted ? `"${value.split('"').join('""')}"` : value
  }
  const lines: number[] = []
  let text = ''
  for (const [index, record] of records.entries()) {
    if (index > 0 && blankEvery > 0 && index % blankEvery === 0) text += eol
    lines.push(text.split('\n').length)
    text += record.map(field).join(',')
    if (endsWithEol || index < records.length - 1) text += eol
  }
  const bytes = Buffer.from((bom ? '\ufeff' : '') + text)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, i) =>
    bytes.subarray(i * chunk, (i + 1) * chunk),
  )
  return { file: Readable.from(chunks), text, lines }
}

const fieldsOf = (row: Row) => COLUMNS.map((name) => row[name])

/** What COPY reads back for a row, in the words of its text format. */
function copied(row: Row): string {
  const time = (text: string) => (text.includes('T') ? text : `${text.replace(' ', 'T')}+05:30`)
  const orNull = (text: string) => text || '\\N'
  const { mid, utr, amount, bank_reference_number, status, initiation_date, fee, tax } = row
  const times = [time(initiation_date), row.created_at === '' ? '\\N' : time(row.created_at)]
  const optional = [orNull(fee), orNull(tax), orNull(row.payment_utr.toUpperCase())]
  return [mid, utr, amount, bank_reference_number, status, ...times, ...optional].join('\t')
}

async function read(file: Readable) {
  const rows: string[] = []
  const faultyLines: number[] = []
  for await (const batch of readBatches(file, SETTLEMENT_FILE)) {
    rows.push(...batch.rows.split('\n').slice(0, -1))
    faultyLines.push(...batch.faults.map(({ line }) => line))
    expect(batch.rows.split('\n').length - 1).toBe(batch.rowCount)
  }
  return { rows, faultyLines }
}

describe('a generated settlement file', () => {
  it('is read row by row and line by line as it was written, however it was quoted, ended and cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(anyRows, anyStyle, async (rows, style) => {
        const { file, lines } = write([COLUMNS, ...rows.map(fieldsOf)], style)
        expect(await read(file)).toEqual({
          rows: rows.map((row, i) => `${lines[i + 1]}\t${copied(row)}`),
          faultyLines: [],
        })
      }),
      { numRuns: runs(300) },
    )
  })

  it('has each wrong line named by its number, whatever stands in it', async () => {
    const anyRecord = fc.oneof(
      anyRow.map(fieldsOf),
      fc
        .tuple(anyRow, fc.nat({ max: COLUMNS.length - 1 }), anyText)
        .map(([row, at, text]) => fieldsOf(row).with(at, BAD + text)),
      fc.array(anyText, { minLength: 2, maxLength: 6 }),
      anyRow.map((row) => fieldsOf(row).slice(0, -1)),
      anyRow.map((row) => [...fieldsOf(row), '']),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyRecord, { maxLength: 15 }), anyStyle, async (records, style) => {
        const { file, lines } = write([COLUMNS, ...records], style)
        const isGood = (record: readonly string[]) => record.length === COLUMNS.length && !record.join().includes(BAD)
        const { rows, faultyLines } = await read(file)
        expect(faultyLines).toEqual(lines.slice(1).filter((_, i) => !isGood(records[i] ?? [])))
        expect(rows.map((row) => Number(row.split('\t')[0]))).toEqual(
          lines.slice(1).filter((_, i) => isGood(records[i] ?? [])),
        )
      }),
      { numRuns: runs(300) },
    )
  })

  it('of any bytes is refused by line, or read: never another error, never a tab or line break in a row', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
      fc.array(anyText, { maxLength: 20 }).map((parts) => Buffer.from(parts.join(','))),
    )
    await fc.assert(
      fc.asyncProperty(bytes, fc.boolean(), async (body, headed) => {
        const file = Buffer.concat([Buffer.from(headed ? `${COLUMNS.join()}\n` : ''), body])
        const result = await read(Readable.from([file])).catch((error: unknown) => error)
        if (result instanceof CsvFileError) expect(result.count).toBeGreaterThan(0)
        else expect(result).toMatchObject({ rows: [] })
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('a generated settlement file on PostgreSQL', () => {
  let db: Database
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await createTestDatabase()
    drop = database.drop
    db = testPool(database.url, 2)
  })
  afterAll(async () => {
    await db.end()
    await drop()
  })

  async function newMids(): Promise<Record<string, string>> {
    const mids = { M1: unique('M'), M2: unique('M') }
    for (const mid of Object.values(mids)) {
      await createMerchants(db).add({ mid, name: 'Chai', vpa: 'chai@examplebank', mcc: '5814', dynamicQr: 'link' }, NOW)
    }
    return mids
  }

  async function stored(mids: Record<string, string>): Promise<unknown[]> {
    const { rows } = await db.query(
      `select mid, utr, amount::text, bank_reference_number, status, initiated_at, created_at, fee::text, tax::text,
              payment_utr
         from settlements where mid = any ($1) order by mid collate "C", utr`,
      [Object.values(mids)],
    )
    return rows
  }

  const moneyOf = (text: string) => {
    const [whole = '', decimals = ''] = text.split('.')
    return `${whole}.${decimals.padEnd(2, '0')}`
  }
  const momentOf = (text: string) =>
    new Date(text.includes('T') ? text.replace('-0800', '-08:00') : `${text.replace(' ', 'T')}+05:30`)

  it('is stored to the last digit, or names its wrong lines and stores nothing', async () => {
    await fc.assert(
      fc.asyncProperty(anyRows, anyStyle, fc.option(fc.nat({ max: 24 })), async (rows, style, badAt) => {
        const mids = await newMids()
        const mine = rows.map((row) => ({ ...row, mid: mids[row.mid] as string }))
        const records = mine.map((row, i) => (i === badAt ? fieldsOf(row).with(1, BAD) : fieldsOf(row)))
        const { file, lines } = write([COLUMNS, ...records], style)
        const outcome = await importFile(db, file, { now: NOW }).catch((error: unknown) => error)
        if (badAt !== null && badAt < rows.length) {
          expect(outcome).toMatchObject({ count: 1, faults: [{ line: lines[badAt + 1] }] })
          expect(outcome).toBeInstanceOf(CsvFileError)
          expect(await stored(mids)).toEqual([])
          return
        }
        expect(outcome).toEqual({ inserted: rows.length, unchanged: 0, updated: 0 })
        const key = (row: Row) => `${row.mid} ${row.utr}`
        const inOrder = mine.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
        expect(await stored(mids)).toEqual(
          inOrder.map((row) => ({
            mid: row.mid,
            utr: row.utr,
            amount: moneyOf(row.amount),
            bank_reference_number: row.bank_reference_number,
            status: row.status,
            initiated_at: momentOf(row.initiation_date),
            created_at: row.created_at === '' ? NOW : momentOf(row.created_at),
            fee: row.fee === '' ? null : moneyOf(row.fee),
            tax: row.tax === '' ? null : moneyOf(row.tax),
            payment_utr: row.payment_utr === '' ? null : row.payment_utr.toUpperCase(),
          })),
        )
        const { file: again } = write([COLUMNS, ...records], { ...style, bom: !style.bom, quoted: [true] })
        expect(await importFile(db, again, { now: NOW })).toEqual({
          inserted: 0,
          unchanged: rows.length,
          updated: 0,
        })
      }),
      { numRuns: runs(30) },
    )
  })

  it('of any bytes behind a good row stores that row, or nothing and says where', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array)),
      anyText.map((text) => Buffer.from(text)),
    )
    const outcomes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(anyRow, bytes, async (row, garbage) => {
        const mids = await newMids()
        const mine = fieldsOf({ ...row, mid: mids[row.mid] as string }).join()
        const file = Buffer.concat([Buffer.from(`${COLUMNS.join()}\n${mine}\n`), garbage])
        const outcome = await importFile(db, Readable.from([file]), { now: NOW }).catch((error: unknown) => error)
        const isRefused = outcome instanceof CsvFileError
        outcomes.add(isRefused ? 'refused' : 'stored')
        if (!isRefused) expect(outcome).toEqual({ inserted: 1, unchanged: 0, updated: 0 })
        else expect(outcome.faults[0]?.line).toBeGreaterThan(2)
        expect(await stored(mids)).toHaveLength(isRefused ? 0 : 1)
      }),
      { numRuns: runs(30) },
    )
    expect(outcomes).toContain('refused')
  })
})
