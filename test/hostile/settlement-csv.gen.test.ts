import { Readable } from 'node:stream'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { CsvFileError } from '../../src/platform/csv/csv.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { runs } from '../support/generated.ts'
import { importFile } from '../support/settlements.ts'

const REQUIRED = ['mid', 'amount', 'utr', 'bank_reference_number', 'status', 'initiation_date'] as const
const OPTIONAL = ['created_at', 'fee', 'tax', 'payment_utr', 'value_date'] as const
const COLUMNS = [...REQUIRED, ...OPTIONAL] as const
const NOW = new Date('2026-02-01T00:00:00Z')
/** A field that every column rejects. */
const BAD = '\u00a7'

type Column = (typeof COLUMNS)[number]
type Row = Record<Column, string>
/** Ways in which a program may write the same rows. */
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
const moment = fc
  .date({ min: new Date('2000-01-01T00:00:00Z'), max: new Date('2099-12-31T23:59:59Z'), noInvalidDate: true })
  .chain((date) => {
    const [day, time] = date.toISOString().slice(0, 19).split('T')
    return fc.constantFrom(`${day} ${time}`, `${day}T${time}Z`, `${day}T${time}.123456+05:30`, `${day}T${time}-0800`)
  })
const anyDay = fc
  .date({ min: new Date('2000-01-01T00:00:00Z'), max: new Date('2099-12-31T23:59:59Z'), noInvalidDate: true })
  .chain((date) => {
    const [year, month, day] = date.toISOString().slice(0, 10).split('-')
    return fc.constantFrom(`${year}-${month}-${day}`, `${day}-${month}-${year}`)
  })
const anyAmount = fc
  .tuple(fc.integer({ min: 0, max: 99_999_999_999 }), fc.constantFrom('', '.5', '.05', '.99'))
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
  value_date: fc.oneof(fc.constant(''), anyDay),
})
const anyRows = fc.uniqueArray(anyRow, { selector: ({ mid, utr }) => `${mid} ${utr}`, maxLength: 25 })
const anyStyle: fc.Arbitrary<Style> = fc.record({
  quoted: fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
  eol: fc.constantFrom('\n', '\r\n'),
  bom: fc.boolean(),
  blankEvery: fc.nat({ max: 4 }),
  endsWithEol: fc.boolean(),
  chunk: fc.integer({ min: 1, max: 200 }),
})
/** The content of an invalid field: any text, including characters with a meaning in CSV. */
const anyText = fc.oneof(
  fc.string({
    unit: fc.constantFrom('"', ',', '\n', '\r', '\r\n', '\t', '\\', '\\.', '\0', 'a', 'é', '𝒳', '\ufeff'),
    maxLength: 12,
  }),
  fc.string({ unit: 'binary', maxLength: 12 }),
)

/** A CSV file according to RFC 4180, and the line on which each of the records begins. */
function write(records: readonly (readonly string[])[], style: Style): { file: Readable; lines: number[] } {
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
  return { file: Readable.from(chunks), lines }
}

const fieldsOf = (row: Row, columns: readonly Column[]) => columns.map((name) => row[name])

const anyWrong = (columns: readonly Column[]) =>
  fc.oneof(
    fc
      .tuple(anyRow, fc.nat({ max: columns.length - 1 }), anyText)
      .map(([row, at, text]) => fieldsOf(row, columns).with(at, BAD + text)),
    fc.array(anyText, { minLength: 2, maxLength: 6 }),
    anyRow.map((row) => fieldsOf(row, columns).slice(0, -1)),
    anyRow.map((row) => [...fieldsOf(row, columns), '']),
    // The database detects it, and the line number identifies it.
    anyRow.map((row) => fieldsOf({ ...row, mid: 'NOBODY' }, columns)),
  )
/** Rows under their columns, and the positions of errors among them: none in half of the files. */
const anyFile = fc
  .subarray([...OPTIONAL])
  .map((optional): Column[] => [...REQUIRED, ...optional])
  .chain((columns) => fc.shuffledSubarray(columns, { minLength: columns.length }))
  .chain((columns) =>
    fc.record({
      columns: fc.constant(columns),
      rows: anyRows,
      wrong: fc.oneof(fc.constant([]), fc.array(fc.tuple(fc.nat({ max: 25 }), anyWrong(columns)), { maxLength: 15 })),
    }),
  )

describe('generated settlement file', () => {
  let db: Database
  beforeAll(async () => {
    db = (await createTestDatabase()).db
    for (const mid of ['M1', 'M2']) {
      await createMerchants(db).add({ mid, name: 'Chai', vpa: 'chai@examplebank', mcc: '5814', dynamicQr: 'link' }, NOW)
    }
  })

  async function stored(): Promise<unknown[]> {
    const { rows } = await db.query(
      `select mid, utr, (amount_paise * 0.01)::text as amount, bank_reference_number, status, initiated_at, created_at,
              (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax,
              payment_utr, value_date::text
         from settlements order by mid collate "C", utr`,
    )
    return rows
  }

  const moneyOf = (text: string) => {
    const [whole = '', decimals = ''] = text.split('.')
    return `${whole}.${decimals.padEnd(2, '0')}`
  }
  const dayOf = (text: string) => (text === '' ? null : text.replace(/^(..)-(..)-(....)$/, '$3-$2-$1'))
  const momentOf = (text: string) =>
    new Date(text.includes('T') ? text.replace('-0800', '-08:00') : `${text.replace(' ', 'T')}+05:30`)

  it('stores a settlement file in any valid notation to the last digit, or rejects the file and names each invalid line', async () => {
    await fc.assert(
      fc.asyncProperty(anyFile, anyStyle, async ({ columns, rows, wrong }, style) => {
        await db.query('truncate settlements')
        const said = (row: Row) => COLUMNS.map((name) => [name, columns.includes(name) ? row[name] : ''])
        const mine = rows.map((row): Row => Object.fromEntries(said(row)))
        const records = mine.map((row) => ({ fields: fieldsOf(row, columns), isWrong: false }))
        for (const [at, fields] of wrong) records.splice(at, 0, { fields, isWrong: true })
        const all = [columns, ...records.map(({ fields }) => fields)]
        const { file, lines } = write(all, style)
        const outcome = await importFile(db, file, { now: NOW }).catch((error: unknown) => error)
        if (wrong.length > 0) {
          const wrongLines = lines.slice(1).filter((_, i) => records[i]?.isWrong)
          expect(outcome).toBeInstanceOf(CsvFileError)
          expect(outcome).toMatchObject({ count: wrong.length, errors: wrongLines.map((line) => ({ line })) })
          expect(await stored()).toEqual([])
          return
        }
        expect(outcome).toEqual({ inserted: rows.length, unchanged: 0, updated: 0 })
        const key = (row: Row) => `${row.mid} ${row.utr}`
        const inOrder = mine.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
        expect(await stored()).toEqual(
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
            value_date: dayOf(row.value_date),
          })),
        )
        const { file: again } = write(all, { ...style, bom: !style.bom, quoted: [true] })
        expect(await importFile(db, again, { now: NOW })).toEqual({
          inserted: 0,
          unchanged: rows.length,
          updated: 0,
        })
      }),
      { numRuns: runs(300) },
    )
  }, 900_000)
})
