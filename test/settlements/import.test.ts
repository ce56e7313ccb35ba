import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CsvFileError } from '../../src/csv.ts'
import type { Database } from '../../src/db/pool.ts'
import { createMerchants } from '../../src/merchants/merchants.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { unique } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date'
const NOW = new Date('2026-02-01T00:00:00Z')

let db: Database
let drop: () => Promise<void>

beforeAll(async () => {
  const database = await createTestDatabase()
  drop = database.drop
  db = testPool(database.url, 5)
})

afterAll(async () => {
  await db.end()
  await drop()
})

async function newMid(): Promise<string> {
  const mid = unique('M')
  await createMerchants(db).add({ mid, name: 'Chai', vpa: 'chai@examplebank', mcc: '5814', dynamicQr: 'link' }, NOW)
  return mid
}

const load = (csv: string | Buffer, now = NOW) => importFile(db, Readable.from([Buffer.from(csv)]), { now })

const file = (...lines: string[]) => [HEADER, ...lines, ''].join('\n')

const line = (
  mid: string,
  utr: string,
  { amount = '10.00', bank = 'B1', status = 'SUCCESS', at = '2026-01-01 09:00:00' } = {},
) => [mid, amount, utr, bank, status, at].join(',')

async function stored(mid: string) {
  const { rows } = await db.query(
    `select utr, amount::text, bank_reference_number as bank, status, initiated_at, created_at
       from settlements where mid = $1 order by utr`,
    [mid],
  )
  return rows
}

async function faultsOf(csv: string | Buffer): Promise<CsvFileError> {
  const error = await load(csv).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof CsvFileError) return error
  throw error ?? new Error('the file was imported')
}

describe('a good file', () => {
  it('is stored to the last digit, times without a zone being Indian, created_at the time of import', async () => {
    const mid = await newMid()
    expect(await load(file(line(mid, 'U1', { amount: '123456789012.05' })))).toEqual({
      inserted: 1,
      unchanged: 0,
      updated: 0,
    })
    expect(await stored(mid)).toEqual([
      {
        utr: 'U1',
        amount: '123456789012.05',
        bank: 'B1',
        status: 'SUCCESS',
        initiated_at: new Date('2026-01-01T03:30:00Z'),
        created_at: NOW,
      },
    ])
  })

  it('may begin with a byte order mark, end its lines with CRLF, quote its fields and leave lines empty', async () => {
    const mid = await newMid()
    const csv = `\ufeff${HEADER}\r\n\r\n"${mid}","10.00","U1","B1","SUCCESS","2026-01-01 09:00:00"\r\n\r\n`
    expect(await load(csv)).toEqual({ inserted: 1, unchanged: 0, updated: 0 })
  })

  it('may name its columns in another order and say when each row was created', async () => {
    const mid = await newMid()
    const header = 'created_at,status,initiation_date,bank_reference_number,utr,amount,mid'
    await load(`${header}\n2026-01-02T00:00:00Z,SUCCESS,2026-01-01 09:00:00,B1,U1,5,${mid}\n`)
    expect(await stored(mid)).toMatchObject([{ amount: '5.00', created_at: new Date('2026-01-02T00:00:00Z') }])
  })

  it('of no rows imports nothing', async () => {
    expect(await load(HEADER)).toEqual({ inserted: 0, unchanged: 0, updated: 0 })
  })

  it('may be larger than one batch, and tells how far it is', async () => {
    const mid = await newMid()
    const rows = Array.from({ length: 25_000 }, (_, index) => line(mid, `U${index}`))
    const progress: number[] = []
    const csv = Readable.from(rows.map((row, index) => (index === 0 ? `${HEADER}\n${row}\n` : `${row}\n`)))
    const result = await importFile(db, csv, { now: NOW, onProgress: (linesRead) => progress.push(linesRead) })
    expect(result).toEqual({ inserted: 25_000, unchanged: 0, updated: 0 })
    expect(progress).toEqual([10_000, 20_000, 25_001])
  })
})

describe('a repeat', () => {
  it('changes nothing, however its amounts, times and created_at are written', async () => {
    const mid = await newMid()
    await load(file(line(mid, 'U1'), line(mid, 'U2')))
    const before = await stored(mid)
    const again = `${HEADER},created_at
${line(mid, 'U1', { amount: '10', at: '2026-01-01T03:30:00.000Z' })},2026-01-20T00:00:00Z
${line(mid, 'U2')},
${line(mid, 'U3')},
`
    expect(await load(again, new Date('2026-03-01T00:00:00Z'))).toEqual({ inserted: 1, unchanged: 2, updated: 0 })
    expect((await stored(mid)).slice(0, 2)).toEqual(before)
  })

  it.each(['SUCCESS', 'FAILED'])('moves a pending settlement on to %s, once', async (status) => {
    const mid = await newMid()
    await load(file(line(mid, 'U1', { status: 'PENDING' })))
    expect(await load(file(line(mid, 'U1', { status })))).toEqual({ inserted: 0, unchanged: 0, updated: 1 })
    expect(await load(file(line(mid, 'U1', { status })))).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
    expect(await stored(mid)).toMatchObject([{ status }])
  })

  it('never takes a final status back', async () => {
    const mid = await newMid()
    await load(file(line(mid, 'U1'), line(mid, 'U2', { status: 'FAILED' })))
    const { faults } = await faultsOf(
      file(line(mid, 'U1', { status: 'PENDING' }), line(mid, 'U2', { status: 'SUCCESS' })),
    )
    expect(faults).toEqual([
      { line: 2, text: 'status cannot go from SUCCESS to PENDING' },
      { line: 3, text: 'status cannot go from FAILED to SUCCESS' },
    ])
  })

  it('with another amount, bank reference or date is refused, each by name', async () => {
    const mid = await newMid()
    await load(file(line(mid, 'U1')))
    const { faults } = await faultsOf(
      file(
        line(mid, 'U1', { amount: '10.01' }),
        line(mid, 'U1', { bank: 'B2' }),
        line(mid, 'U1', { at: '2026-01-01 09:00:01' }),
        line(mid, 'U1', { amount: '9', bank: 'B2', status: 'FAILED' }),
      ),
    )
    expect(faults.map(({ text }) => text.replace('this mid and utr are known with another ', ''))).toEqual([
      'amount',
      'bank_reference_number',
      'initiation_date',
      'amount and bank_reference_number',
    ])
  })

  it('inside one file follows the same rules in the order of the file', async () => {
    const mid = await newMid()
    const pending = line(mid, 'U1', { status: 'PENDING' })
    expect(await load(file(pending, pending, line(mid, 'U1'), line(mid, 'U1'), line(mid, 'U2')))).toEqual({
      inserted: 2,
      unchanged: 2,
      updated: 1,
    })
    const { faults } = await faultsOf(
      file(line(mid, 'U3', { status: 'PENDING' }), line(mid, 'U3'), line(mid, 'U3', { status: 'PENDING' })),
    )
    expect(faults).toEqual([{ line: 4, text: 'status cannot go from SUCCESS to PENDING' }])
    const contradiction = await faultsOf(file(line(mid, 'U4'), line(mid, 'U4', { amount: '11.00' })))
    expect(contradiction.faults.map(({ line }) => line)).toEqual([3])
  })
})

describe('a bad file', () => {
  it('is refused whole, even if only its last line is wrong', async () => {
    const mid = await newMid()
    const good = Array.from({ length: 12_000 }, (_, index) => line(mid, `U${index}`))
    const { faults, count } = await faultsOf(file(...good, line(mid, 'LAST', { amount: '-1' })))
    expect({ count, line: faults[0]?.line }).toEqual({ count: 1, line: 12_002 })
    expect(await stored(mid)).toEqual([])
  })

  it('is told its first 20 bad lines by number, whatever is wrong with each, and how many there are', async () => {
    const mid = await newMid()
    const bad = Array.from({ length: 30 }, (_, index) =>
      index % 2 ? line('NOBODY', `U${index}`) : line(mid, `U${index}`, { amount: '1.123456789012' }),
    )
    const { faults, count, message } = await faultsOf(file(line(mid, 'OK'), ...bad))
    expect(count).toBe(30)
    expect(message).toBe('30 bad lines, nothing was imported')
    expect(faults.map(({ line }) => line)).toEqual(Array.from({ length: 20 }, (_, index) => index + 3))
    expect(faults[0]?.text).toMatch(/^amount must be/)
    expect(faults[1]?.text).toBe('mid is not a known merchant')
    expect(await stored(mid)).toEqual([])
  })

  it.each([
    ['an empty file', '', 1, /the file is empty/],
    ['a column missing', 'mid,amount,utr,status,initiation_date\n', 1, /^column bank_reference_number is missing$/],
    ['no header', 'M1,1,U1,B1,SUCCESS,2026-01-01 09:00:00\n', 1, /column mid is missing/],
    ['a quoted comma', `${HEADER}\nM1,"1,000.00",U1,B1,SUCCESS,2026-01-01 09:00:00\n`, 2, /^amount must be/],
    ['an unquoted comma', `${HEADER}\nM1,1,000.00,U1,B1,SUCCESS,2026-01-01 09:00:00\n`, 2, /^has 7 fields, not 6$/],
    ['a line too short', `${HEADER}\nM1,1\n`, 2, /^has 2 fields/],
    ['a day that does not exist', `${HEADER}\nM1,1,U1,B1,SUCCESS,2026-02-31 09:00:00\n`, 2, /^initiation_date must be/],
    ['a line break in a field', `${HEADER}\n"M\n1",1,U1,B1,SUCCESS,x\nM1,1,U1,B1,SUCCESS,x\n`, 4, /^initiation_date/],
    [
      'a quote that is never closed',
      `${HEADER}\nM1,1,"U1,B1,SUCCESS,2026-01-01 09:00:00\n`,
      2,
      /a quote is never closed/,
    ],
    [
      'a quote around the rest of a large file',
      `${HEADER}\n"${'M1,1\n'.repeat(100_000)}`,
      2,
      /a quote is never closed/,
    ],
    ['bytes that are not text', `${HEADER}\nM\u0000\ufffd,1,U1,B1,SUCCESS,2026-01-01 09:00:00\n`, 2, /^mid must be/],
    ['a tab and a backslash', `${HEADER}\nM1,1,U1,\\N\t1,SUCCESS,2026-01-01 09:00:00\n`, 2, /^bank_reference_number/],
  ])('with %s names the line', async (_, csv, lineNumber, text) => {
    const { faults } = await faultsOf(csv)
    expect(faults.at(-1)?.text).toMatch(text)
    expect(faults.at(-1)?.line).toBeGreaterThanOrEqual(lineNumber)
  })

  it('that breaks off while it is read leaves nothing behind, and the connection usable', async () => {
    const mid = await newMid()
    async function* breakingOff() {
      yield file(...Array.from({ length: 15_000 }, (_, index) => line(mid, `U${index}`)))
      throw new Error('the disk is gone')
    }
    await expect(importFile(db, Readable.from(breakingOff()), { now: NOW })).rejects.toThrow('the disk is gone')
    expect(await stored(mid)).toEqual([])
    expect(await load(file(line(mid, 'U1')))).toMatchObject({ inserted: 1 })
  })
})

describe('imports at once', () => {
  it('of the same rows in opposite order: each row is stored once, nobody deadlocks', async () => {
    const mid = await newMid()
    const rows = Array.from({ length: 21_000 }, (_, index) => line(mid, `U${index}`))
    const results = await Promise.all([load(file(...rows)), load(file(...rows.toReversed())), load(file(...rows))])
    expect(results.map(({ inserted }) => inserted).sort()).toEqual([0, 0, 21_000])
    expect(results.map(({ unchanged }) => unchanged).sort()).toEqual([0, 21_000, 21_000])
  })

  it('as a reader never sees half of one', async () => {
    const mid = await newMid()
    const count = async () => {
      const { rows } = await db.query<{ count: number }>('select count(*)::int from settlements where mid = $1', [mid])
      return rows[0]?.count
    }
    const rows = Array.from({ length: 30_000 }, (_, index) => line(mid, `U${index}`))
    let done = false
    const importing = load(file(...rows)).finally(() => {
      done = true
    })
    const seen = new Set<number | undefined>()
    while (!done) seen.add(await count())
    await importing
    seen.add(await count())
    expect([...seen].sort()).toEqual([0, 30_000])
  })
})
