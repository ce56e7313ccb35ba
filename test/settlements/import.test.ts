import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { CsvFileError } from '../../src/platform/csv/csv.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { newMerchant } from '../support/service.ts'
import { importFile } from '../support/settlements.ts'

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date,created_at,fee,tax,payment_utr,value_date'
const NOW = new Date('2026-02-01T00:00:00Z')

let db: Database

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
})

const newMid = async () => (await newMerchant(db)).mid

const load = (csv: string, importing: Partial<Parameters<typeof importFile>[2]> = {}) =>
  importFile(db, Readable.from([Buffer.from(csv)]), { now: NOW, ...importing })

const file = (...lines: string[]) => [HEADER, ...lines, ''].join('\n')

/** The columns of a row except mid and utr; columns not given have the values of a typical row. */
type Said = Record<'amount' | 'bank_reference_number' | 'status' | 'initiation_date', string> &
  Record<'created_at' | 'fee' | 'tax' | 'payment_utr' | 'value_date', string>
const USUAL: Said = {
  ...{ amount: '10.00', bank_reference_number: 'B1', status: 'SUCCESS', initiation_date: '2026-01-01 09:00:00' },
  ...{ created_at: '', fee: '', tax: '', payment_utr: '', value_date: '' },
}

const line = (mid: string, utr: string, said: Partial<Said> = {}) => {
  const { amount, ...rest } = { ...USUAL, ...said }
  return [mid, amount, utr, ...Object.values(rest)].join(',')
}

/** Number of rows that an import stores in one batch. */
const BATCH_ROWS = 10_000

const manyLines = (mid: string, count: number) => Array.from({ length: count }, (_, index) => line(mid, `U${index}`))

async function stored(mid: string) {
  const { rows } = await db.query(
    `select (amount_paise * 0.01)::text as amount, bank_reference_number, status, initiated_at, created_at,
            (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax, payment_utr
       from settlements where mid = $1 order by utr`,
    [mid],
  )
  return rows
}

/** Returns the row as it is stored at time `NOW`. */
const settlement = (said: Partial<Said>) => {
  const { initiation_date: _, value_date: __, ...all } = { ...USUAL, ...said }
  const times = { initiated_at: new Date('2026-01-01T03:30:00Z'), created_at: NOW }
  return { ...all, ...times, fee: all.fee || null, tax: all.tax || null, payment_utr: all.payment_utr || null }
}

async function errorsOf(csv: string, importing = {}): Promise<CsvFileError> {
  const error = await load(csv, importing).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof CsvFileError) return error
  throw error ?? new Error('the file was imported')
}

const known = (what: string) => `this mid and utr are stored with another ${what}`
const OF_ITS_OWN = ': give each row its own utr'
const noWay = (way: string) =>
  `status cannot change from ${way}: remove the line if its file is older than the last import, otherwise ask the bank for a new utr`

describe('a row of a stored settlement', () => {
  it.each<[Partial<Said>, Partial<Said>, 'unchanged' | 'updated' | { fault: string }]>([
    [{}, { amount: '10', initiation_date: '2026-01-01T03:30:00.000Z' }, 'unchanged'],
    [{}, { created_at: '2026-01-20T00:00:00Z' }, 'unchanged'],
    [{ fee: '4.00', tax: '0.00', payment_utr: 'P1' }, {}, 'unchanged'],
    [{ status: 'PENDING' }, { status: 'PENDING' }, 'unchanged'],
    [{ status: 'PENDING' }, { status: 'SUCCESS' }, 'updated'],
    [{ status: 'PENDING' }, { status: 'FAILED' }, 'updated'],
    // The bank reverses the payout.
    [{}, { status: 'FAILED' }, 'updated'],
    [{}, { fee: '4.00', tax: '0.72', payment_utr: 'P1' }, 'updated'],
    [{ status: 'PENDING', fee: '1.00' }, { status: 'PENDING', tax: '0.18' }, 'updated'],
    [{}, { status: 'PENDING' }, { fault: noWay('SUCCESS to PENDING') }],
    [{ status: 'FAILED' }, {}, { fault: noWay('FAILED to SUCCESS') }],
    [{ status: 'FAILED' }, { status: 'PENDING' }, { fault: noWay('FAILED to PENDING') }],
    [{}, { amount: '10.01' }, { fault: known('amount') }],
    [{}, { bank_reference_number: 'B2' }, { fault: known('bank_reference_number') }],
    [{}, { initiation_date: '2026-01-01 09:00:01' }, { fault: known('initiation_date') }],
    [
      {},
      { amount: '9', status: 'FAILED', bank_reference_number: 'B2' },
      {
        fault: known('amount and bank_reference_number'),
      },
    ],
    [{ fee: '4.00' }, { fee: '4.01' }, { fault: known('fee') }],
    [{ tax: '1.00' }, { tax: '1.01' }, { fault: known('tax') }],
    [
      { tax: '1.00', payment_utr: 'P1' },
      { amount: '9', tax: '2', payment_utr: 'P2' },
      {
        fault: known('amount and tax and payment_utr') + OF_ITS_OWN,
      },
    ],
    // The bank repeats the UTR of its payout for each payment in it.
    [{ payment_utr: 'P1' }, { payment_utr: 'P2' }, { fault: known('payment_utr') + OF_ITS_OWN }],
  ])(
    'settlements import reads a settlement reported as %j and then as %j with the outcome %j, in one file and in two files',
    async (first, second, outcome) => {
      for (const earlier of [1, 0]) {
        const mid = await newMid()
        if (earlier) await load(file(line(mid, 'U1', first)))
        const lines = [line(mid, 'U1', first), line(mid, 'U1', second)].slice(earlier)
        if (typeof outcome === 'object') {
          expect((await errorsOf(file(...lines))).errors).toEqual([{ line: lines.length + 1, text: outcome.fault }])
          continue
        }
        const counts = { inserted: 1 - earlier, unchanged: 0, updated: 0, [outcome]: 1 }
        expect(await load(file(...lines))).toEqual(counts)
        expect(await stored(mid)).toEqual([settlement(outcome === 'updated' ? { ...first, ...second } : first)])
        expect(await load(file(line(mid, 'U1', second)))).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
      }
    },
  )

  it('settlements import combines the rows of one settlement in file order, and fills fields that earlier rows left empty', async () => {
    const mid = await newMid()
    const said = [{ status: 'PENDING' }, { status: 'PENDING', fee: '4.00' }, { tax: '1.00' }, { payment_utr: 'P1' }]
    const lines = said.map((one) => line(mid, 'U1', one))
    expect(await load(file(...lines))).toEqual({ inserted: 1, unchanged: 0, updated: 3 })
    expect(await stored(mid)).toEqual([settlement({ fee: '4.00', tax: '1.00', payment_utr: 'P1' })])
    const again = [...said, { status: 'PENDING' }].map((one) => line(mid, 'U2', one))
    const { errors } = await errorsOf(file(...again))
    expect(errors).toEqual([{ line: 6, text: noWay('SUCCESS to PENDING') }])
  })
})

describe('the value date of a settlement', () => {
  // This is the 31st in UTC and the 1st in IST.
  const now = new Date('2026-01-31T20:00:00Z')
  const TODAY = '2026-02-01'
  const [VALUE, OTHER] = [{ value_date: '2026-01-03' }, { value_date: '2026-01-04' }]
  const [PENDING, FAILED] = [{ status: 'PENDING' }, { status: 'FAILED' }]
  // In UTC this is still the day before.
  const AT_NIGHT = { initiation_date: '2026-01-03 00:30:00' }

  async function valueDates(mid: string) {
    const { rows } = await db.query<{ day: string | null }>(
      'select value_date::text as day from settlements where mid = $1 order by utr',
      [mid],
    )
    return rows.map(({ day }) => day)
  }

  it.each<[Partial<Said>, Partial<Said>, 'unchanged' | 'updated' | 'fault', string | null]>([
    [{}, {}, 'unchanged', null],
    [{ value_date: '03-01-2026' }, VALUE, 'unchanged', '2026-01-03'],
    [VALUE, {}, 'unchanged', '2026-01-03'],
    [PENDING, {}, 'updated', TODAY],
    [PENDING, VALUE, 'updated', '2026-01-03'],
    [{ ...PENDING, ...VALUE }, {}, 'updated', '2026-01-03'],
    // Neither a pending nor a failed settlement has a value date.
    [PENDING, { ...PENDING, ...VALUE }, 'unchanged', null],
    [PENDING, { ...FAILED, ...VALUE }, 'updated', null],
    [{}, { ...FAILED, ...VALUE }, 'updated', null],
    [AT_NIGHT, { ...AT_NIGHT, ...FAILED, ...VALUE }, 'updated', null],
    [VALUE, FAILED, 'updated', '2026-01-03'],
    // The settlement already has the day of its initiation as value date.
    [AT_NIGHT, { ...AT_NIGHT, ...VALUE }, 'updated', '2026-01-03'],
    [AT_NIGHT, { ...AT_NIGHT, ...OTHER }, 'fault', null],
    [VALUE, OTHER, 'fault', '2026-01-03'],
    [VALUE, { ...FAILED, ...OTHER }, 'fault', '2026-01-03'],
    [{ ...PENDING, ...VALUE }, OTHER, 'fault', '2026-01-03'],
  ])(
    'settlements import reads a row with %j and a later row with %j with the outcome %j and the value date %j',
    async (first, second, outcome, day) => {
      for (const earlier of [1, 0]) {
        const mid = await newMid()
        if (earlier) await load(file(line(mid, 'U1', first)), { now })
        const lines = [line(mid, 'U1', first), line(mid, 'U1', second)].slice(earlier)
        if (outcome === 'fault') {
          const fault = { line: lines.length + 1, text: known('value_date') }
          expect((await errorsOf(file(...lines), { now })).errors).toEqual([fault])
          expect(await valueDates(mid)).toEqual([day].slice(0, earlier))
          continue
        }
        const counts = { inserted: 1 - earlier, unchanged: 0, updated: 0, [outcome]: 1 }
        expect(await load(file(...lines), { now })).toEqual(counts)
        expect(await valueDates(mid)).toEqual([day])
        // A repeated import of the same line changes nothing.
        const again = await load(file(line(mid, 'U1', second)))
        expect(again).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
        expect(await valueDates(mid)).toEqual([day])
      }
    },
  )

  it('the ledger dates a settlement on its value date, otherwise on the IST day of its initiation', async () => {
    const mid = await newMid()
    const rows = ['U1', 'U2', 'U3', 'U4'].map((utr) => line(mid, utr, PENDING))
    await load(file(...rows, line(mid, 'U5', AT_NIGHT), line(mid, 'U6', { ...AT_NIGHT, ...OTHER })), { now })
    await load(file(line(mid, 'U1', VALUE), line(mid, 'U2'), line(mid, 'U3', { ...FAILED, ...VALUE })), { now })
    const { rows: counted } = await db.query<{ row: string }>(
      `select concat_ws(' ', name, day, replaced_at = 'infinity') as row from ledger
        where kind = 'settlement' and mid = $1 order by name`,
      [mid],
    )
    expect(counted.map(({ row }) => row)).toEqual([
      ...['U1 2026-01-03 t', `U2 ${TODAY} t`, 'U5 2026-01-03 t', 'U6 2026-01-04 t'],
    ])
  })
})

describe('the acquirer account of a settlement', () => {
  const ANOTHER = 'this mid and utr are stored for another acquirer account: import the file with that account'

  async function accounts(mid: string) {
    const { rows } = await db.query<{ row: string }>(
      `select utr || coalesce(' ' || account, '') as row from settlements where mid = $1 order by utr`,
      [mid],
    )
    return rows.map(({ row }) => row)
  }

  it('settlements import stores the acquirer account with each new row, including deductions, and does not change the account when the row is imported again', async () => {
    const mid = await newMid()
    const csv = file(line(mid, 'U1'), line(mid, 'U1', { amount: '-5.00' }))
    await load(csv, { account: 'setu:acme' })
    for (const account of ['setu:acme', undefined]) {
      expect(await load(csv, { account })).toEqual({ inserted: 0, unchanged: 2, updated: 0 })
      expect(await accounts(mid)).toEqual(['U1 setu:acme', 'U1R1 setu:acme'])
    }
    await load(file(line(mid, 'U1', { status: 'FAILED' }), line(mid, 'U2')))
    expect(await accounts(mid)).toEqual(['U1 setu:acme', 'U1R1 setu:acme', 'U2'])
  })

  it('settlements import adds the acquirer account to stored settlements without an acquirer account when a file repeats the settlements', async () => {
    const mid = await newMid()
    await load(file(line(mid, 'U1'), line(mid, 'U2')))
    const again = file(line(mid, 'U1'), line(mid, 'U1'), line(mid, 'U3'))
    expect(await load(again, { account: 'setu' })).toEqual({ inserted: 1, unchanged: 1, updated: 1 })
    expect(await accounts(mid)).toEqual(['U1 setu', 'U2', 'U3 setu'])
    expect(await load(again, { account: 'setu' })).toEqual({ inserted: 0, unchanged: 3, updated: 0 })
  })

  it('settlements import rejects a row that repeats or changes a settlement of another acquirer account', async () => {
    const mid = await newMid()
    await load(file(line(mid, 'U1'), line(mid, 'U2', { status: 'PENDING' }), line(mid, 'U3')), { account: 'setu' })
    const later = [line(mid, 'U4'), line(mid, 'U1'), line(mid, 'U2'), line(mid, 'U3', { amount: '9' })]
    const { errors } = await errorsOf(file(...later), { account: 'setu:acme' })
    expect(errors).toEqual([3, 4, 5].map((line) => ({ line, text: ANOTHER })))
    expect(await accounts(mid)).toEqual(['U1 setu', 'U2 setu', 'U3 setu'])
  })
})

describe('a row with a negative amount', () => {
  /** Returns UTR, amount and payment UTR of the merchant's negative rows. */
  async function deductions(mid: string) {
    const { rows } = await db.query<{ row: string[] }>(
      `select array[utr, (amount_paise * 0.01)::text, payment_utr] as row from settlements where mid = $1 and amount_paise < 0 order by utr`,
      [mid],
    )
    return rows.map(({ row }) => row)
  }
  const back = (mid: string, utr: string, said: Partial<Said> = {}) => line(mid, utr, { amount: '-10.00', ...said })
  const addPayment = (mid: string, utr: string) =>
    db.query(
      `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
       values ($1, $2, 'o1', 1000, now(), 'first', 'direct', 'notification')`,
      [mid, utr],
    )

  it.each<[string, string, Partial<Said>, (mid: string) => unknown]>([
    ['has its own utr as payment_utr, in another case', 'u1', { payment_utr: 'U1' }, () => undefined],
    ['has the utr of a payment', 'u1', {}, (mid) => addPayment(mid, 'U1')],
    ['has the utr of a stored settlement', 'U1', {}, (mid) => load(file(line(mid, 'U1')))],
    ['has the utr of a stored settlement in lower case', 'U1', {}, (mid) => load(file(line(mid, 'u1')))],
  ])(
    "settlements import stores a negative row that %s under the payment's UTR with the suffix R1",
    async (_, utr, said, prepare) => {
      const mid = await newMid()
      await prepare(mid)
      const csv = file(back(mid, utr, { fee: '-4.00', tax: '-0.72', status: 'FAILED', ...said }))
      expect(await load(csv)).toEqual({ inserted: 1, unchanged: 0, updated: 0 })
      expect(await deductions(mid)).toEqual([['U1R1', '-10.00', 'U1']])
      expect(await load(csv)).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
    },
  )

  it("settlements import stores a negative row under the payment's UTR with a suffix, before or after the payment's row, in any batch", async () => {
    const mid = await newMid()
    const many = manyLines(mid, BATCH_ROWS)
    const csv = file(back(mid, 'U9999'), ...many, back(mid, 'U0'), back(mid, 'U5000'))
    expect(await load(csv)).toEqual({ inserted: BATCH_ROWS + 3, unchanged: 0, updated: 0 })
    expect(await deductions(mid)).toEqual(['U0', 'U5000', 'U9999'].map((utr) => [`${utr}R1`, '-10.00', utr]))
    expect(await load(csv)).toEqual({ inserted: 0, unchanged: BATCH_ROWS + 3, updated: 0 })
  })

  it('settlements import does not change the utr and payment_utr of a negative row that repeats no UTR, even once the payment is known', async () => {
    const mid = await newMid()
    await load(file(line(await newMid(), 'ARN2')))
    const csv = file(back(mid, 'ARN1', { payment_utr: 'P1' }), back(mid, 'ARN2'), line(mid, 'P1'))
    expect(await load(csv)).toEqual({ inserted: 3, unchanged: 0, updated: 0 })
    const own = [
      ['ARN1', '-10.00', 'P1'],
      ['ARN2', '-10.00', null],
    ]
    expect(await deductions(mid)).toEqual(own)
    const another = await errorsOf(file(back(mid, 'ARN2', { amount: '-9' })))
    expect(another.errors).toEqual([{ line: 2, text: known('amount') }])
    await addPayment(mid, 'ARN2')
    expect(await load(csv)).toEqual({ inserted: 0, unchanged: 3, updated: 0 })
    expect(await deductions(mid)).toEqual(own)
  })

  it('settlements import numbers different negative rows of one payment and stores identical rows once', async () => {
    const mid = await newMid()
    const rows = [
      ...[line(mid, 'U1'), back(mid, 'U1'), back(mid, 'U1', { amount: '-9' }), back(mid, 'U1')],
      back(mid, 'U1', { bank_reference_number: 'B2' }),
    ]
    expect(await load(file(...rows))).toEqual({ inserted: 4, unchanged: 1, updated: 0 })
    const later = [back(mid, 'u1', { initiation_date: '2026-01-02 09:00:00' }), ...rows.toReversed()]
    expect(await load(file(...later))).toEqual({ inserted: 1, unchanged: 5, updated: 0 })
    expect(await deductions(mid)).toEqual([
      ['U1R1', '-10.00', 'U1'],
      ['U1R2', '-9.00', 'U1'],
      ['U1R3', '-10.00', 'U1'],
      ['U1R4', '-10.00', 'U1'],
    ])
    // The row as fetchSettlementList returns it.
    const exported = back(mid, 'U1R2', { amount: '-9', payment_utr: 'U1' })
    expect(await load(file(exported))).toEqual({ inserted: 0, unchanged: 1, updated: 0 })
    const failed = back(mid, 'U1', { amount: '-9', status: 'FAILED' })
    expect(await load(file(failed))).toEqual({ inserted: 0, unchanged: 0, updated: 1 })
  })

  it('settlements import reports invalid negative rows by line number, together with errors in other rows', async () => {
    const mid = await newMid()
    const long = 'U'.repeat(34)
    const lines = [
      back(mid, long, { payment_utr: long }),
      back('NOBODY', 'U2'),
      line(mid, 'U3', { fee: '-1', tax: '-1' }),
      line(mid, 'U4'),
      back(mid, 'ARN1'),
      back(mid, 'ARN1', { amount: '-9' }),
    ]
    expect((await errorsOf(file(...lines))).errors).toEqual([
      {
        line: 2,
        text: expect.stringMatching(/exceeds 35 characters with the suffix R and a number: give the row its own utr/),
      },
      { line: 3, text: 'mid is not a known merchant: correct it, or add the merchant first' },
      {
        line: 4,
        text: expect.stringMatching(
          /^fee must not be negative .*, tax must not be negative unless amount is negative$/,
        ),
      },
      { line: 7, text: known('amount') },
    ])
    expect(await stored(mid)).toEqual([])
  })
})

describe('an invalid settlement file', () => {
  it('settlements import rejects an amount above 10^11 rupees with its line number, and accepts exactly 10^11', async () => {
    const mid = await newMid()
    const amounts = ['100000000000', '100000000000.01', '-100000000000.01', '999999999999', '1000000000000']
    const lines = amounts.map((amount, index) => line(mid, `L${index}`, { amount }))
    const text = 'amount must be rupees such as 250 or -249.50, at most 100000000000'
    expect((await errorsOf(file(...lines))).errors).toEqual([3, 4, 5, 6].map((line) => ({ line, text })))
    expect(await load(file(lines[0] as string))).toMatchObject({ inserted: 1 })
  })

  it('settlements import rejects a file with invalid lines entirely, listing the first 20 and the total number', async () => {
    const mid = await newMid()
    const bad = Array.from({ length: 30 }, (_, index) =>
      index % 2 ? line('NOBODY', `N${index}`) : line(mid, `N${index}`, { amount: '-0' }),
    )
    // More than one batch, so that rows are stored before the first invalid line is read.
    const { errors, count, message } = await errorsOf(file(...manyLines(mid, BATCH_ROWS), ...bad))
    expect([count, message]).toEqual([30, '30 invalid lines, nothing was imported'])
    expect(errors.map(({ line }) => line)).toEqual(Array.from({ length: 20 }, (_, index) => BATCH_ROWS + index + 2))
    expect(errors[0]?.text).toMatch(/^amount must be/)
    expect(errors[1]?.text).toBe('mid is not a known merchant: correct it, or add the merchant first')
    expect(await stored(mid)).toEqual([])
  })

  it.each([
    ['no content', '', 1, 'the file is empty; its first line must name the columns'],
    [
      'missing, unknown and repeated columns',
      'mid,mid,amount,utr,status,initiation_date,gst\n',
      1,
      'column bank_reference_number is missing, column "gst" is unknown, column mid appears twice',
    ],
    [
      'a header in another format',
      'Txn Amount,UPI RRN\n195.00,523504870405\n',
      1,
      /^none of the columns mid, .* is in the header: use --layout to read another format$/,
    ],
    [
      'an invalid line after a stray quote',
      file(line('M1', 'U"1'), line('M1', 'U1', { amount: 'x' })),
      3,
      /^amount must/,
    ],
    ['an unquoted comma', file(line('M1', 'U1', { amount: '1,000.00' })), 2, 'has 12 fields, not 11'],
    [
      'every field invalid',
      file('M 1,x,,,done,,yesterday,x,x,-,x').replace('M1', ''),
      2,
      /^mid must.*, amount must.*, utr must.*, bank_ref.* must.*, status must be PENDING, SUCCESS or FAILED, initiation_date must.*, created_at must.*, fee must.*, tax must.*, payment_utr must.*, value_date must/,
    ],
    [
      'an invalid line after a line break in a field',
      file('"M\n1",x', line('M1', 'U1', { initiation_date: 'x' })),
      4,
      /^initiation_date must/,
    ],
    [
      'a line break in a field',
      file(line('M1', '"5\n"')),
      2,
      /^a line break is inside a field, or lines do not all end as/,
    ],
    [
      'CRLF and then LF',
      `${file(line('M1', 'U1')).replace('\n', '\r\n')}`,
      2,
      /^a line break is .* \(CRLF, LF or CR\): save/,
    ],
    ['LF and then CRLF', file(`${line('M1', 'U1', { payment_utr: 'P1' })}\r`), 2, /^a line break is inside/],
    ['CR as line end in one place', file(`${line('M1', 'U1')}\r${line('M1', 'U2')}`), 2, /^a line break is inside/],
    [
      'CRLF and then LF in many lines',
      file(...manyLines('M1', 100)).replace('\n', '\r\n'),
      2,
      /or lines do not all end as line 1 does/,
    ],
    ['semicolons', file('').replaceAll(',', ';'), 1, "fields are separated by ';': save the file with commas"],
    ['semicolons declared by sep=;', `sep=;\n${file('')}`, 1, "fields are separated by ';': save the file with commas"],
    ['tabs', file('').replaceAll(',', '\t'), 1, 'fields are separated by tabs: save the file with commas'],
    ['an invalid line after sep=,', `sep=,\n${file(line('M1', 'U1', { amount: 'x' }))}`, 3, /^amount must/],
    ['only sep=,', 'sep=,\r\n', 1, 'the file is empty; its first line must name the columns'],
    ['an unclosed quote', file(`M1,1,"${'M1,1\n'.repeat(100_000)}`), 2, /a quote is never closed/],
  ])('settlements import rejects a file with %s and names the line', async (_, csv, lineNumber, text) => {
    const { errors } = await errorsOf(csv)
    expect(errors.at(-1)).toEqual({
      line: lineNumber,
      text: typeof text === 'string' ? text : expect.stringMatching(text),
    })
  })

  const RUPEES = 'must be rupees such as 250 or -249.50, at most 100000000000'
  const NO_RUPEES = [
    ...['-0', '-0.00', '--1', '+1', '1.123456789012', '1.005', '1.', '.5', '1e3', '0x10', '1,000', ' ', ' 1', '1 '],
    ...['٣', 'NaN', '1000000000000', '\\N', '1\t2'],
  ]
  const UTR = 'must be 1 to 35 letters and digits'
  const NO_UTR = ['a b', '5-1', '1'.repeat(36), '\\N', '1\t2', 'é', ' 1']
  const MOMENT =
    'must be an existing time from 2000 to 2099: ISO 8601 with a time zone (2026-01-31T09:30:00Z), or YYYY-MM-DD HH:MM:SS for IST'
  const NO_MOMENT = [
    ...['31-02-2026', '2026-02-31T00:00:00Z', '2026-02-31 00:00:00', '2027-02-29 00:00:00', '2026-04-31T00:00:00Z'],
    ...['2026-00-10T00:00:00Z', '2026-13-10T00:00:00Z', '2026-01-00T00:00:00Z', '2026-01-31T24:00:00Z'],
    ...['2026-01-31T09:60:00Z', '2026-01-31T09:30:60Z', '2026-01-31T09:30:00', '2026-01-31T09:30:00+15:00'],
    ...['2026-01-31T09:30', '2026-01-31 09:30', '2026-01-31', '1026-01-31 09:30:00', 'now', 'infinity'],
  ]
  it.each([
    ['mid', 'must be 1 to 64 characters of A-Z a-z 0-9 _ -', ['', 'M 1', 'M\u0000\ufffd', 'M'.repeat(65), '\\N']],
    ['utr', UTR, ['', ...NO_UTR]],
    ['amount', RUPEES, ['', ...NO_RUPEES]],
    [
      'bank_reference_number',
      'must be 1 to 64 letters, digits, spaces or . / _ -',
      ['', '1'.repeat(65), 'é', '\\N', '\\N\t1'],
    ],
    ['status', 'must be PENDING, SUCCESS or FAILED', ['', 'success', 'done']],
    ['initiation_date', MOMENT, ['', ...NO_MOMENT]],
    ['created_at', MOMENT, NO_MOMENT],
    ['fee', RUPEES, NO_RUPEES],
    ['tax', RUPEES, NO_RUPEES],
    ['payment_utr', UTR, NO_UTR],
    [
      'value_date',
      'must be an existing day from 2000 to 2099: YYYY-MM-DD or dd-mm-yyyy',
      [
        '31-02-2026',
        '2026-02-31',
        '2026-1-1',
        '1999-12-31',
        '2100-01-01',
        '01-02-26',
        '2026-01-01 09:00:00',
        '\\N',
        ' ',
      ],
    ],
  ])(
    'settlements import rejects an invalid %s, which %s, with its line number and without repeating the value',
    async (column, rule, wrong) => {
      const lines = wrong.map((text) => {
        const { mid = 'M1', utr = 'U1', ...said }: Record<string, string> = { [column]: `"${text}"` }
        return line(mid, utr, said)
      })
      const errors = wrong.map((_, index) => ({ line: index + 2, text: `${column} ${rule}` }))
      expect(await errorsOf(file(...lines))).toMatchObject({ count: wrong.length, errors })
    },
  )

  it('settlements import stores nothing from a file whose stream fails, and leaves the connection usable', async () => {
    const mid = await newMid()
    async function* breakingOff() {
      yield file(...manyLines(mid, BATCH_ROWS + 1))
      throw new Error('the disk is gone')
    }
    await expect(importFile(db, Readable.from(breakingOff()), { now: NOW })).rejects.toThrow('the disk is gone')
    expect(await stored(mid)).toEqual([])
    expect(await load(file(line(mid, 'U1')))).toMatchObject({ inserted: 1 })
  })
})

it('settlements import accepts a file that starts with the line sep=,', async () => {
  const mid = await newMid()
  expect(await load(`\ufeffsep=,\r\n${file(line(mid, 'U1')).replaceAll('\n', '\r\n')}`)).toMatchObject({ inserted: 1 })
})

describe('files larger than a batch', () => {
  it('settlements import stores each row once when large files with the same rows in opposite order are imported concurrently', async () => {
    const mid = await newMid()
    const rows = manyLines(mid, BATCH_ROWS + 1)
    const results = await Promise.all([load(file(...rows)), load(file(...rows.toReversed())), load(file(...rows))])
    expect(results.map(({ inserted }) => inserted).sort()).toEqual([0, 0, rows.length])
    expect(results.map(({ unchanged }) => unchanged).sort()).toEqual([0, rows.length, rows.length])
  })

  it('settlements import reports progress on a large file, and shows no reader a part of the file', async () => {
    const mid = await newMid()
    const count = async () => {
      const { rows } = await db.query<{ count: number }>('select count(*)::int from settlements where mid = $1', [mid])
      return rows[0]?.count
    }
    const progress: number[] = []
    let done = false
    const importing = load(file(...manyLines(mid, BATCH_ROWS)), {
      onProgress: (linesRead) => progress.push(linesRead),
    }).finally(() => {
      done = true
    })
    const seen = new Set<number | undefined>()
    while (!done) seen.add(await count())
    await importing
    seen.add(await count())
    expect([...seen].sort()).toEqual([0, BATCH_ROWS])
    expect(progress).toEqual([BATCH_ROWS, BATCH_ROWS + 1])
  })
})
