import { describe, expect, it } from 'vitest'
import { isNothing, readPaise } from '../../src/platform/csv/amounts.ts'
import { isLikeDay, timeReader } from '../../src/platform/csv/days.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant, unique } from '../support/service.ts'

const { url, db } = await createTestDatabase()
const { mid } = await newMerchant(db)

const ops = (args: string[], input = '') => runOps(url, args, input)

/** Adds a layout with these columns and returns its name. */
async function newLayout(columns: Record<string, string>, ...flags: string[]) {
  const name = unique('layout')
  const columnFlags = Object.entries(columns).flatMap(([ours, theirs]) => ['--column', `${ours}=${theirs}`])
  const added = await ops(['settlements', 'layout', 'add', '--name', name, ...columnFlags, ...flags])
  expect(added).toMatchObject({ code: 0, stderr: '' })
  return name
}

const ACQUIRER = {
  ...{ amount: 'Net Amount', utr: 'UPI RRN', bank_reference_number: 'Settlement UTR', fee: 'MDR', tax: 'GST' },
  ...{ initiation_date: 'Settled On', status: 'Status' },
}
const acquirerLayout = () =>
  newLayout(
    ACQUIRER,
    '--date',
    'dd-mm-yyyy',
    '--status',
    'SUCCESS=Success,Settled',
    '--status',
    'FAILED=Failed',
    '--mid',
    mid,
  )

/** Returns an RRN that no other row has. */
let lastRrn = 523_000_000_000
const newRrn = () => String(++lastRrn)

const HEADER = 'Txn Amount,UPI RRN,Settlement UTR,MDR,GST,Net Amount,Settled On,Status'

async function imported(layout: string, file: string) {
  const { code, stdout, stderr } = await ops(['settlements', 'import', '-', '--layout', layout, '--json'], file)
  return code === 0 ? JSON.parse(stdout) : { code, stderr }
}

async function stored(utr: string) {
  const { rows } = await db.query(
    `select mid, (amount_paise * 0.01)::text as amount, bank_reference_number as reference, status,
            (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax, initiated_at as at
       from settlements where utr = $1`,
    [utr],
  )
  return rows[0]
}

describe('settlements import --layout', () => {
  it("settlements import --layout reads an acquirer's own digit groups, dates, status words, columns, and lines around the table", async () => {
    const [one, two] = [newRrn(), newRrn()]
    const file = `Settlement report,,,
Merchant: Chai "Point" & Co,,

"Txn Amount", "UPI RRN",Settlement UTR ,MDR,GST,Net  Amount,Settled On,Status,Store
"1,479.00",${one},AXISCN1169361047,24.15,4.35,"₹ 1,450.50 ",06-08-2026 10:00:00,Success,Indiranagar
"1,00,000.00",="${two}",AXISCN1169361047,0,0.00,1,00,000.00,6-8-2026,SETTLED,
`
    const layout = await acquirerLayout()
    expect(await imported(layout, file)).toEqual({
      code: 1,
      stderr: 'ops: 1 invalid line, nothing was imported; line 6: has 11 fields, not 9\n',
    })
    const mended = `${file.replace('0.00,1,00,000.00', '0.00,"1,00,000.00"')},,,,,,,,
Total,,,24.15,4.35,"1,01,450.50",,,
`
    expect(await imported(layout, mended)).toMatchObject({ inserted: 2, amount: '101450.50' })
    expect(await stored(one)).toEqual({
      ...{ mid, amount: '1450.50', reference: 'AXISCN1169361047', status: 'SUCCESS', fee: '24.15', tax: '4.35' },
      at: new Date('2026-08-06T04:30:00Z'),
    })
    expect(await stored(two)).toMatchObject({ amount: '100000.00', at: new Date('2026-08-05T18:30:00Z') })
    expect(await imported(layout, mended)).toMatchObject({ inserted: 0, unchanged: 2 })
  })

  it.each([
    ['tabs', '\t'],
    ['semicolons', ';'],
    ['vertical bars', '|'],
    ['tildes', '~'],
  ])('settlements import --layout reads fields separated by %s', async (_, separator) => {
    const rrn = newRrn()
    const file = `${HEADER}\n100,${rrn},B1,1,0.18,98.82,06-08-2026,Success\n`.replaceAll(',', separator)
    expect(await imported(await acquirerLayout(), file)).toMatchObject({ inserted: 1 })
  })

  it('settlements import --layout adds up several fee or tax columns, and drops the minus sign of deducted amounts', async () => {
    const [saved, given, broken] = [newRrn(), newRrn(), newRrn()]
    const { fee, tax, ...others } = ACQUIRER
    const more = ['fee=-MDR', 'fee=-Platform Fee', 'tax=-CGST', 'tax=-SGST', 'tax=-IGST']
    const flags = [...more.flatMap((pair) => ['--column', pair]), '--status', 'SUCCESS', '--mid', mid]
    const layout = await newLayout(others, '--date', 'dd-mm-yyyy', ...flags)
    const header = 'UPI RRN,Settlement UTR,MDR,Platform Fee,CGST,SGST,IGST,Net Amount,Settled On,Status'
    const file = `${header}
${saved},B1,-3.50,-0.50,-0.36,-0.36,,95.28,06-08-2026,Success
${given},B1,4.00,0.00,0.36,0.36,-,-95.28,06-08-2026,Success
`
    expect(await imported(layout, file)).toMatchObject({ inserted: 2 })
    expect(await stored(saved)).toMatchObject({ amount: '95.28', fee: '4.00', tax: '0.72' })
    expect(await stored(given)).toMatchObject({ amount: '-95.28', fee: '-4.00', tax: '-0.72' })
    const wrong = `${header}\n${broken},B1,3.50,0,-0.36,-0.3x,,95.28,06-08-2026,Success\n`
    expect((await imported(layout, wrong)).stderr).toMatch(/line 2: CGST \+ SGST \+ IGST \(tax\) must be rupees with/)
    const positive = wrong.replace('x', '6')
    expect((await imported(layout, positive)).stderr).toMatch(
      /line 2: MDR \+ Platform Fee \(fee\) must not be negative unless amount is negative/,
    )
  })

  it('settlements import --layout skips rows with an ignored status, even if the rows have no payout reference', async () => {
    const [paid, held] = [newRrn(), newRrn()]
    const words = ['--status', 'SUCCESS=Settled', '--status', 'IGNORED=On Hold,Processing']
    const layout = await newLayout(ACQUIRER, '--date', 'dd-mm-yyyy', ...words, '--mid', mid)
    const file = `${HEADER}
100,${held},-,,,,,ON HOLD
100,${paid},B1,1,0.18,98.82,06-08-2026,Settled
100,${newRrn()},-,0.00,0.00,0.00,06-08-2026,Processing
`
    expect(await imported(layout, file)).toMatchObject({ inserted: 1 })
    expect([await stored(held), (await stored(paid)).amount]).toEqual([undefined, '98.82'])
  })

  it('settlements import --layout skips ignored rows without date and reference, and page headings, between other rows', async () => {
    const [first, second] = [newRrn(), newRrn()]
    const words = ['--status', 'SUCCESS=Settled', '--status', 'IGNORED=On Hold']
    const layout = await newLayout(ACQUIRER, '--date', 'dd-mm-yyyy', ...words, '--mid', mid)
    const row = (rrn: string) => `100,${rrn},B1,1,0.18,98.82,06-08-2026,Settled`
    const lines = [HEADER, row(first), '250,,,2.50,0.45,247.05,,ON HOLD', 'Page 1 of 2,,,,,,,', HEADER, row(second), '']
    expect(await imported(layout, lines.join('\n'))).toMatchObject({ inserted: 2, amount: '197.64' })
    const open = lines.join('\n').replace('ON HOLD', '').replace(second, newRrn())
    expect(await imported(layout, open)).toEqual({
      code: 1,
      stderr:
        'ops: 1 invalid line, nothing was imported; line 6: is a row below the table, which ends in line 3. If the file contains two tables, import them as two files.\n',
    })
  })

  it('settlements import --layout rejects a title between rows, unless the layout makes the amounts below it negative or ignores it', async () => {
    const [paid, refunded, charged] = [newRrn(), newRrn(), newRrn()]
    const columns = {
      ...{ gross: 'Gross', amount: 'Net', fee: 'MDR' },
      ...{ utr: 'RRN', bank_reference_number: 'UTR', initiation_date: 'Paid On' },
    }
    const file = `RRN,Gross,MDR,Net,UTR,Paid On
PAYMENTS,,,,,
${paid},100.00,2.00,98.00,B1,06-08-2026
Chai Point,,,,,
REFUNDS,,,,,
${refunded},50.00,1.00,49.00,B1,06-08-2026
Refunds / Chargebacks,2,0.00,0.00,,
${charged},20.00,0.00,20.00,B1,06-08-2026
`
    const flags = ['--date', 'dd-mm-yyyy', '--status', 'SUCCESS', '--mid', mid]
    const title = (text: string) =>
      `"${text}" is the only text of a line between rows, and may be the title of the rows below: add --negative-below "${text}" to the layout if their amounts are deducted, otherwise --ignore-line "${text}"`
    expect(await imported(await newLayout(columns, ...flags), file)).toEqual({
      code: 1,
      stderr: `ops: 2 invalid lines, nothing was imported; line 4: ${title('Chai Point')}; line 7: ${title('Refunds / Chargebacks')}\n`,
    })
    const below = ['refunds', 'Refunds / Chargebacks'].flatMap((text) => ['--negative-below', text])
    const layout = await newLayout(columns, ...flags, ...below, '--ignore-line', 'Chai Point')
    expect(await imported(layout, file)).toMatchObject({ inserted: 3, amount: '29.00' })
    expect(await stored(paid)).toMatchObject({ amount: '98.00', fee: '2.00' })
    expect(await stored(refunded)).toMatchObject({ amount: '-49.00', fee: '-1.00' })
    expect(await stored(charged)).toMatchObject({ amount: '-20.00', fee: '0.00' })
    expect(JSON.parse((await ops(['settlements', 'layout', 'list', '--json'])).stdout)).toContainEqual(
      expect.objectContaining({
        name: layout,
        negativeBelow: ['refunds', 'Refunds / Chargebacks'],
        ignoredLines: ['Chai Point'],
      }),
    )
  })

  it('settlements import --layout rejects credits marked with Cr beside bare amounts', async () => {
    const { fee, tax, status, ...columns } = ACQUIRER
    const layout = await newLayout(columns, '--date', 'dd-mm-yyyy', '--status', 'SUCCESS', '--mid', mid)
    const row = (amount: string) => `${newRrn()},B1,${amount},06-08-2026`
    const file = ['UPI RRN,Settlement UTR,Net Amount,Settled On', row('98.00 Cr'), row('5.00-'), row('50.00'), ''].join(
      '\n',
    )
    expect((await imported(layout, file)).stderr).toBe(
      'ops: 1 invalid line, nothing was imported; line 4: Net Amount (amount): the amount has no Cr, unlike that of line 2, so it may be a debit: get a file that marks every amount, or with debits in a column of their own\n',
    )
  })

  it('settlements import --layout rejects a file that contains a layout column twice, unless the layout numbers the column', async () => {
    const rrn = newRrn()
    const file = `Net Amount,UPI RRN,Settlement UTR,MDR,GST,Net Amount,Settled On,Status\n100,${rrn},B1,1,0.18,98.82,06-08-2026,Success\n`
    expect((await imported(await acquirerLayout(), file)).stderr).toBe(
      'ops: 1 invalid line, nothing was imported; line 1: has Net Amount more than once: write Net Amount#1 or Net Amount#2 in the layout\n',
    )
    expect(await stored(rrn)).toBeUndefined()
    const words = ['--status', 'SUCCESS=Success', '--mid', mid]
    const numbered = { ...ACQUIRER, amount: 'Net Amount#2' }
    expect(await imported(await newLayout(numbered, '--date', 'dd-mm-yyyy', ...words), file)).toMatchObject({
      amount: '98.82',
    })
  })

  it("settlements import --layout reports invalid rows by line number and the file's own column names, and stores nothing", async () => {
    const row = (rrn: string, over: Record<number, string> = {}) =>
      Object.values({
        0: '100',
        1: rrn,
        2: 'B1',
        3: '1',
        4: '0.18',
        5: '98.82',
        6: '06-08-2026',
        7: 'Success',
        ...over,
      }).join()
    const good = newRrn()
    const lines = [
      'Report of August',
      HEADER,
      row(good),
      row(newRrn(), { 5: '98.825' }),
      row(newRrn(), { 5: '100000000000.01' }),
      row(newRrn(), { 6: '31-02-2026' }),
      row(newRrn(), { 7: 'Reversed' }),
      row('5.23E+11'),
      row('', { 6: '2026-08-06' }),
      'Total,,,,,98.82,,',
      row(newRrn()),
    ]
    const { code, stderr } = await imported(await acquirerLayout(), lines.join('\n'))
    expect(code).toBe(1)
    expect(stderr.trim().split('; ')).toEqual([
      'ops: 7 invalid lines, nothing was imported',
      'line 4: Net Amount (amount) must be rupees with at most two decimals, such as 1,450.50',
      'line 5: Net Amount (amount) must be at most 100000000000 rupees',
      'line 6: Settled On (initiation_date) must be an existing day in the format dd-mm-yyyy',
      'line 7: Status (status) must be a status of the layout: failed, success, settled',
      'line 8: UPI RRN was converted to a number by a spreadsheet and has lost digits: download the file again and open the column as text',
      'line 9: UPI RRN (utr) must be 1 to 35 letters and digits, Settled On (initiation_date) must be an existing day in the format dd-mm-yyyy',
      'line 10: is between rows and has an amount, but is not a row of the table: correct its day, or delete the line if it is a total',
    ])
    expect(await stored(good)).toBeUndefined()
  })

  it.each([
    ['an .xlsx', 'PK\u0003\u0004', /Excel workbook \(\.xlsx\): save it as CSV/],
    ['a PDF', '%PDF-1.7\n', /a PDF: get it from the bank as CSV or text/],
    ['a web page', '\n<html><table>', /a web page, whatever its name says/],
    [
      'a file with other columns',
      'mid,amount,utr\nM1,1,2\n',
      /no line among the first 600 names every column of the layout: Net Amount,/,
    ],
    ['an empty file', '', /no line among the first 600/],
  ])('settlements import --layout rejects %s and reports the next step', async (_, file, text) => {
    expect((await imported(await acquirerLayout(), file)).stderr).toMatch(text)
  })

  it('settlements import rejects a layout for bank statements', async () => {
    const columns = { day: 'Date', reference: 'Narration', amount: 'Amount' }
    const layout = await newLayout(columns, '--date', 'dd/mm/yyyy')
    const { code, stderr } = await imported(layout, 'Date,Narration,Amount\n06/08/2026,NEFT,100\n')
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/is a layout of bank statements/) })
  })

  it('settlements import without a layout rejects a workbook and explains how to save the workbook as CSV', async () => {
    const { stderr } = await ops(['settlements', 'import', '-'], 'PK\u0003\u0004')
    expect(stderr).toMatch(/the file is an Excel workbook \(\.xlsx\): save it as CSV/)
  })
})

describe('settlements layout', () => {
  it('settlements layout shows a layout with list, stores nothing with try, and deletes a layout with remove', async () => {
    const layout = await acquirerLayout()
    const rrn = newRrn()
    const file = `Report\n${HEADER}\n100,${rrn},B1,1,0.18,98.82,06-08-2026,Success\n100,${newRrn()},B1,1,0.18,x,06-08-2026,Success\n`
    const tried = await ops(['settlements', 'layout', 'try', '-', '--layout', layout, '--json'], file)
    expect(JSON.parse(tried.stdout)).toMatchObject({
      rows: 1,
      first: [
        { line: '3', mid, amount: '98.82', utr: rrn, status: 'SUCCESS', initiation_date: '2026-08-06T00:00:00+05:30' },
      ],
      faults: ['1 invalid line, nothing was imported', expect.stringContaining('line 4: Net Amount (amount) must be')],
    })
    expect(await stored(rrn)).toBeUndefined()
    const listed = JSON.parse((await ops(['settlements', 'layout', 'list', '--json'])).stdout)
    expect(listed).toContainEqual({
      ...{ name: layout, date: 'dd-mm-yyyy', mid, columns: Object.entries(ACQUIRER) },
      statuses: { SUCCESS: ['Success', 'Settled'], FAILED: ['Failed'] },
      ...{ negativeBelow: [], ignoredLines: [] },
    })
    expect(await ops(['settlements', 'layout', 'remove', '--name', layout])).toMatchObject({ code: 0 })
    expect((await ops(['settlements', 'layout', 'remove', '--name', layout])).stderr).toMatch(
      /layout .* does not exist/,
    )
  })

  it.each([
    [
      'the file’s column name before the service’s column name',
      ['--column', 'UTR No=utr'],
      /with the service’s column first: --column "utr=UTR No"/,
    ],
    ['an unknown column', ['--column', 'net=Net'], /must be COLUMN=NAME/],
    ['a column without the file’s column name', ['--column', 'amount='], /must be COLUMN=NAME/],
    ['a date format without a month', ['--date', 'dd/yyyy'], /must have d or dd/],
    [
      'status words without a status column',
      [
        ...['--status', 'SUCCESS=Paid', '--mid', 'M1'],
        ...['amount', 'utr', 'bank_reference_number', 'initiation_date'].flatMap((ours) => ['--column', `${ours}=X`]),
      ],
      /--column status is missing/,
    ],
    [
      'missing required columns',
      ['--column', 'amount=Net'],
      /--column mid, utr or order_id or acquirer_payment_id, bank_reference_number, status, initiation_date is missing/,
    ],
    ['a column given twice', ['--column', 'utr=A', '--column', 'utr=B'], /--column utr must be given only once/],
    [
      'a minus before a column that is not an amount',
      ['--column', 'utr=-Net'],
      /only amount, fee, tax, gross of settlement files accept a minus/,
    ],
    [
      'amount together with credit and debit',
      ['amount', 'credit', 'debit'].flatMap((ours) => ['--column', `${ours}=X`]),
      /credit and debit replace amount and sign/,
    ],
    ['credit without debit', ['--column', 'credit=Cr'], /--column mid, debit, utr or order_id /],
    [
      'a statement column together with a settlement column',
      ['--column', 'utr=A', '--column', 'balance=B'],
      /balance is only for bank statements/,
    ],
    ['an unknown status', ['--status', 'PAID=Paid'], /must be SUCCESS, PENDING, FAILED or IGNORED/],
    ['IGNORED without words', ['--status', 'IGNORED'], /must be SUCCESS, PENDING, FAILED or IGNORED/],
    [
      '--negative-below together with a sign column',
      [...['amount', 'sign'].flatMap((ours) => ['--column', `${ours}=X`]), '--negative-below', 'Refunds'],
      /--negative-below is only for settlement files and bank statements with amount and without sign/,
    ],
    [
      '--negative-below for payments',
      [...['amount', 'paid_at'].flatMap((ours) => ['--column', `${ours}=X`]), '--negative-below', 'Refunds'],
      /--negative-below is only for settlement files and bank statements/,
    ],
    [
      'one text for both --negative-below and --ignore-line',
      ['--column', 'amount=X', '--negative-below', 'Refunds', '--ignore-line', 'refunds'],
      /--negative-below and --ignore-line must have different texts/,
    ],
    ['an empty text for --ignore-line', ['--column', 'amount=X', '--ignore-line', ' '], /--ignore-line must be text/],
  ])('settlements layout add rejects %s', async (_, flags, text) => {
    const date = flags[0] === '--date' ? [] : ['--date', 'dd/mm/yyyy']
    const { code, stderr } = await ops(['settlements', 'layout', 'add', '--name', 'x', ...date, ...flags])
    expect(code).toBe(2)
    expect(stderr).toMatch(text)
  })
})

describe('the date format of a layout', () => {
  it.each([
    ['dd/mm/yyyy', '06/08/2026', '2026-08-06 00:00:00'],
    ['dd/mm/yy', '06/08/26', '2026-08-06 00:00:00'],
    ['dd mmm yyyy', '5 Jun 2024', '2024-06-05 00:00:00'],
    ['dd-mmm-yy', '18-Nov-26 (18-Nov-26)', '2026-11-18 00:00:00'],
    ['dd/mm/yyyy', '18/11/2026 10:05 (19/11/2026)', '2026-11-18 10:05:00'],
    ['dd-mmm-yy', '05-June-24', '2024-06-05 00:00:00'],
    ['yyyy-mm-dd', '2026-08-06T23:59', '2026-08-06 23:59:00'],
    ['dd/mm/yyyy', '06/08/2026 12:05:09 AM ', undefined],
    ['dd/mm/yyyy', '06/08/2026 12:05:09 AM', '2026-08-06 00:05:09'],
    ['dd/mm/yyyy', '06/08/2026 01:05 pm', '2026-08-06 13:05:00'],
    ['dd/mm/yyyy', '06-08-2026', undefined],
    ['dd/mm/yyyy', '29/02/2025', undefined],
    ['dd/mm/yyyy', '06/08/2026 24:00', undefined],
    ['dd-mmm-yyyy', '06-Foo-2026', undefined],
    ['dd-mmm-yyyy', '06-Novxyz-2026', undefined],
    ['dd-mmm-yyyy', '05-Sept-2024', '2024-09-05 00:00:00'],
    ['d mmm yyyy', 'Wed, 18 Nov 2026', '2026-11-18 00:00:00'],
    ['d mmm yyyy', '18 Nov 2026 (Wed)', '2026-11-18 00:00:00'],
    ['ddd, d mmm yyyy', 'Wednesday, 18 Nov 2026', '2026-11-18 00:00:00'],
    ['d mmm yyyy', 'Thu, 18 Nov 2026', undefined],
    ['mmm d, yyyy', 'Nov 18, 2026', '2026-11-18 00:00:00'],
    ['d mmm yyyy', 'Nov 18, 2026', '2026-11-18 00:00:00'],
    ['d mmm yyyy', '2026-Nov-18', '2026-11-18 00:00:00'],
    ['mmm d, yyyy', 'Nov 31, 2026', undefined],
    ['dd-mmm-yy', 'Nov 18, 26', undefined],
    ['dd/mm/yyyy', '18/11/2026 10.05.06', '2026-11-18 10:05:06'],
    ['dd/mm/yyyy', '18/11/2026 10:05\u202fp.m.', '2026-11-18 22:05:00'],
    ['dd/mm/yyyy', '18/11/2026 13:05 AM', undefined],
    ['dd/mm/yyyy', '18/11/2026 0:05 PM', undefined],
    ['dd/mm/yyyy', '11/18/2026', undefined],
    ['yyyy-mm-dd', '2026-11-18T20:00:00Z', '2026-11-19 01:30:00'],
    ['yyyy-mm-dd', '2026-11-18T00:10:00.5-0530', '2026-11-18 11:10:00'],
    ['yyyy-mm-dd', '2026-11-18+05:30', '2026-11-18 00:00:00'],
    ['yyyy-mm-dd', '2026-11-18 10:00 IST', '2026-11-18 10:00:00'],
    ['yyyy-mm-dd', '2026-11-18 10:00 PST', undefined],
    ['ddmmyyyy', '18112026', '2026-11-18 00:00:00'],
    ['ddmmyyyy', '1112026', undefined],
  ])("the layout's date format %s reads %s as %s", (form, text, time) => {
    expect(timeReader(form)?.(text)).toBe(time)
  })
})

describe('a field', () => {
  it.each(['Wed, 18 Nov 2026', 'Nov 31, 2026', '31/11/2026', '18th Novemver 2026', '2026-11-31T10:00:00Z', '########'])(
    'the file parser recognises %s as an attempted date',
    (text) => expect(isLikeDay(text)).toBe(true),
  )

  it.each(['', 'Total', '10,000.00', '1,450.50', 'Generated On: 01-SEP-2026', 'Wednesday', 'Nov'])(
    'the file parser does not recognise %s as a date',
    (text) => expect(isLikeDay(text)).toBe(false),
  )

  it.each([
    ['1,450.50', 145_050],
    ['1,00,000.5', 10_000_050],
    ['₹ -450', -45_000],
    ['-₹450', -45_000],
    ['−450.00', -45_000],
    ['450.00-', -45_000],
    ['+450', 45_000],
    ['(450.00)', -45_000],
    ['₹(450.00)', -45_000],
    ['(₹450.00)', -45_000],
    ['450.00 (Dr)', -45_000],
    ['(450.00 Dr)', -45_000],
    ['450.00 (Cr.)', 45_000],
    ['609894.61CR', 60_989_461],
    ['-,77,65,332.30', -776_533_230],
    ['−,332.30', -33_230],
    ['-,100,332', -10_033_200],
    ['Cr 450', 45_000],
    ['450 DEBIT', -45_000],
    ['450 INR', 45_000],
    ['450/-', 45_000],
    ['Rs.12.3600', 1_236],
    ['.50', 50],
    ['-0.00', 0],
    ['1\u00a0450.50', 145_050],
    ['1\u202f00\u202f000', 10_000_000],
    ['₹\u00a0450', 45_000],
  ])('the file parser reads the amount %s as %i paise', (text, paise) => expect(readPaise(text)).toBe(paise))

  it.each([
    ...[',77,65,332.30', '-,7,765,33.30', '-,,332.30', '-,5', '-,50.00'],
    ...['450,50', '1.450,50', '10,00', '1,2345.00', '12 50', '1.2E+5', '450.005', '9999999999999999', 'abc', '-'],
    ...['--450', '-(450)', '(450', '450)', ')450(', '-450 Cr', '(450 Cr)', '+450 Dr', '450 Cr Dr', 'Rs. ₹450', '-'],
  ])('the file parser rejects %s as an amount', (text) => expect(readPaise(text)).toBeUndefined())

  it.each(['', ' ', '-', '--', '—', 'nil', 'NA', 'N/A', 'n.a.', 'NULL', 'None', '₹ -', 'Rs. -'])(
    'the file parser treats the field "%s" as empty',
    (text) => expect(isNothing(text)).toBe(true),
  )

  it.each(['0', '0.00', 'nine', 'Nilgiri'])('the file parser does not treat the field "%s" as empty', (text) =>
    expect(isNothing(text)).toBe(false),
  )
})
