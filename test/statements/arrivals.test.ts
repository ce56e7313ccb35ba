import { beforeAll, describe, expect, it } from 'vitest'
import { toIstDay } from '../../src/platform/time.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant, unique } from '../support/service.ts'

/**
 * Simulates errors between the acquirer's payout and the bank account one by one; each must be reported, and nothing else. The
 * days are long ago, so that lines that cannot be a payout are deleted immediately.
 */
const { url, db } = await createTestDatabase()
beforeAll(async () => {
  await layout('rupees', ['debit=Debit', 'credit=Credit'])
  await layout('exchanged', ['debit=Credit', 'credit=Debit'])
})

async function layout(name: string, amounts: string[], references = ['reference=Narration', 'reference=Ref No']) {
  const columns = [
    'day=Date',
    ...references,
    ...amounts,
    ...(amounts.includes('sign=Dr / Cr') ? [] : ['balance=Balance']),
  ]
  const flags = columns.flatMap((column) => ['--column', column])
  await must(['settlements', 'layout', 'add', '--name', name, '--date', 'dd/mm/yyyy', ...flags])
}

const ops = (args: string[], input = '') => runOps(url, args, input)

async function must(args: string[], input = '') {
  const { code, stdout, stderr } = await ops([...args, '--json'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Counts up so that every reference is new. */
let lastNumber = 12_345_678
const newReference = () => `AXNPN2026${++lastNumber}`

/** Creates two merchants, and payouts to the first on four bank days from Monday 3 August 2026. */
async function newMerchantAt() {
  const [{ mid }, { mid: other }] = [await newMerchant(db), await newMerchant(db)]
  const payouts = [3, 4, 5, 6].map((day) => ({ day: `2026-08-0${day}`, reference: newReference(), rupees: 1000 + day }))
  await addPayouts(mid, ...payouts)
  return { mid, other, payouts }
}

type Shop = Awaited<ReturnType<typeof newMerchantAt>>
type Payout = Shop['payouts'][number]

async function addPayouts(mid: string, ...payouts: Payout[]) {
  const rows = payouts.map(({ day, reference, rupees }) =>
    [mid, rupees, unique('U').replace(/\W/g, ''), reference, 'SUCCESS', `${day} 09:00:00`].join(),
  )
  const header = 'mid,amount,utr,bank_reference_number,status,initiation_date'
  await must(['settlements', 'import', '-'], [header, ...rows, ''].join('\n'))
}

type Line = { day: string; text: string; reference: string; amount: number; balance?: number }

const inIndia = (day: string) => day.split('-').reverse().join('/')
const lineOf = ({ day, reference, rupees }: Payout): Line => ({
  ...{ day, reference, amount: rupees },
  text: `NEFT CR-UTIB0000100-ACQUIRER-${reference}`,
})

/**
 * Formats a statement of these lines with an opening balance of 10,000. Lines before and after them extend the statement over
 * all days.
 */
function statement(lines: Line[]): string {
  let balance = 10_000
  const rent = (day: string): Line => ({ day, text: 'RENT', reference: '', amount: -1 })
  const all = [rent('2026-08-01'), ...lines, rent('2026-08-25')]
  return [
    'Date,Narration,Ref No,Debit,Credit,Balance',
    ...all.map(({ day, text, reference, amount, balance: reported }) => {
      balance += amount
      const [debit, credit] = amount < 0 ? [-amount, ''] : ['', amount]
      return [inIndia(day), text, reference, debit, credit, reported ?? balance.toFixed(2)].join()
    }),
    '',
  ].join('\n')
}

const DAYS = ['--from', '2026-08-01', '--to', '2026-08-31']
const importArgs = (mids: string[], layoutName = 'rupees', days = DAYS) => [
  ...['statements', 'import', '-', '--layout', layoutName, ...days],
  ...mids.flatMap((mid) => ['--mid', mid]),
]
const imported = (mids: string[], file: string) => must(importArgs(mids), file)

/** Returns the result for each payout to the merchant, in date order. */
async function arrivals(mid: string): Promise<string[]> {
  const { payouts } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', mid])
  return payouts.map(({ arrival }: { arrival: string }) => arrival)
}

const ARRIVED = ['arrived', 'arrived', 'arrived', 'arrived']
/** All payouts are received except the second, which has this state. */
const secondIs = (state: string) => ['arrived', state, 'arrived', 'arrived']

/** The lines of all payouts, with the second one changed. */
const withSecond = ({ payouts }: Shop, change: (line: Line) => Line[]) =>
  payouts.flatMap((payout, index) => (index === 1 ? change(lineOf(payout)) : [lineOf(payout)]))

describe('a complete statement', () => {
  it('statements import marks every payout as received, with day and statement line', async () => {
    const merchant = await newMerchantAt()
    const {
      statement: number,
      kept: stored,
      coversTo,
    } = await imported([merchant.mid], statement(merchant.payouts.map(lineOf)))
    expect({ kept: stored, coversTo }).toEqual({ kept: 4, coversTo: '2026-08-24' })
    const { payouts, total } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', merchant.mid])
    expect(payouts[1]).toMatchObject({
      net: '1004.00',
      arrival: 'arrived',
      arrivedOn: '2026-08-04',
      credited: '1004.00',
      statement: `${number} line 4`,
    })
    expect(payouts).toHaveLength(4)
    expect(total).toMatchObject({ net: '4018.00' })
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it("statements import prints lines, credits, debits and closing balance for comparison with the bank's summary", async () => {
    const merchant = await newMerchantAt()
    const file = statement([
      ...merchant.payouts.map(lineOf),
      { day: '2026-08-07', text: 'TEA', reference: '', amount: -0.5 },
    ])
    const { stdout } = await ops(importArgs([merchant.mid]), file)
    expect(stdout.split('\n')[1]).toBe('7 lines: 4 credits, ₹4,018.00; 3 debits, ₹2.50; closing balance ₹14,015.50')
    expect(await imported([merchant.mid], file)).toMatchObject({
      ...{ lines: 7, credits: 4, credited: '4018.00', debits: 3, debited: '2.50', closing: '14015.50' },
    })
  })

  it('statements import changes nothing when repeated, and statements undo removes the imported lines', async () => {
    const merchant = await newMerchantAt()
    const file = statement(merchant.payouts.map(lineOf))
    expect(await arrivals(merchant.mid)).toEqual(Array(4).fill('not known'))
    const [first, second] = [await imported([merchant.mid], file), await imported([merchant.mid], file)]
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
    expect(await must(['statements', 'undo', '--statement', String(first.statement)])).toMatchObject({ removed: 4 })
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
    await must(['statements', 'undo', '--statement', String(second.statement)])
    expect(await arrivals(merchant.mid)).toEqual(Array(4).fill('not known'))
    const { rows } = await db.query('select from statement_lines where import_id in ($1, $2)', [
      first.statement,
      second.statement,
    ])
    expect(rows).toEqual([])
    expect((await ops(['statements', 'undo', '--statement', String(first.statement)])).stderr).toMatch(/was undone/)
  })

  it('statements import stores day, paise, line number and references of matched lines, and nothing from lines without a payout', async () => {
    const merchant = await newMerchantAt()
    const salary = { day: '2026-08-05', text: 'NEFT-HDFCN52026080512345678-ASHA SALARY', reference: '', amount: -25 }
    const { statement: number } = await imported([merchant.mid], statement([...merchant.payouts.map(lineOf), salary]))
    const { rows } = await db.query('select * from statement_lines where import_id = $1 order by line', [number])
    expect(rows).toHaveLength(4)
    expect(rows[0]).toMatchObject({
      line: 3,
      amount_paise: 100300,
      refs: [merchant.payouts[0]?.reference],
      matched_payout: null,
    })
    const { rows: everything } = await db.query(
      'select row_to_json(l)::text as row from statement_lines l where import_id = $1',
      [number],
    )
    expect(JSON.stringify(everything)).not.toMatch(/ACQUIRER|NEFT|10000|ASHA/)
  })

  it('statements import stores an unmatched line of the last 10 bank days until the matching payout is listed', async () => {
    const { mid } = await newMerchant(db)
    const day = new Date(Date.now() - 3 * 24 * 60 * 60_000).toISOString().slice(0, 10)
    const payout = { day, reference: newReference(), rupees: 50 }
    const days = ['--from', day, '--to', day]
    const file = `Date,Narration,Ref No,Debit,Credit,Balance\n${inIndia(day)},NEFT,${payout.reference},,50,50\n`
    await must([...importArgs([mid], 'rupees', days), '--closing', '50'], file)
    await addPayouts(mid, payout)
    const { payouts } = await must(['reconcile', 'payouts', ...days, '--mid', mid])
    expect(payouts).toMatchObject([{ arrival: 'arrived' }])
  })

  it('reconcile payouts lists the last 31 days by default, like ops today', async () => {
    const { mid } = await newMerchant(db)
    const ago = (days: number) => toIstDay(new Date(Date.now() - days * 24 * 60 * 60_000))
    const added = [0, 30, 31].map((days) => ({ day: ago(days), reference: newReference(), rupees: 50 }))
    await addPayouts(mid, ...added)
    const { payouts } = await must(['reconcile', 'payouts', '--mid', mid])
    expect(payouts.map(({ day }: { day: string }) => day)).toEqual([ago(30), ago(0)])
    const { code, stderr } = await ops(['reconcile', 'payouts', '--mid', mid, '--from', ago(2)])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/give either --from and --to, or --month/),
    })
  })
})

describe('errors between payout and bank account', () => {
  it('statements import detects swapped debit and credit columns by the balances', async () => {
    const merchant = await newMerchantAt()
    const { stderr } = await ops(importArgs([merchant.mid], 'exchanged'), statement(merchant.payouts.map(lineOf)))
    expect(stderr).toMatch(/line 3: the balances show that debit and credit are swapped/)
    expect(await arrivals(merchant.mid)).toEqual(Array(4).fill('not known'))
  })

  it('statements import rejects a file with a missing line and names the line below the gap', async () => {
    const merchant = await newMerchantAt()
    const lines = statement(merchant.payouts.map(lineOf)).split('\n')
    lines.splice(3, 1)
    const { stderr } = await ops(importArgs([merchant.mid]), lines.join('\n'))
    expect(stderr).toMatch(/line 4: the balance does not follow from the line before: a line is missing/)
  })

  it('statements import rejects an amount and a balance above 10^11 rupees with their line number', async () => {
    const { mid } = await newMerchant(db)
    const file = 'Date,Narration,Ref No,Debit,Credit,Balance\n03-08-2026,NEFT,R1,,100000000000.01,100000000000.01\n'
    const { stderr } = await ops(importArgs([mid]), file)
    expect(stderr).toMatch(
      /line 2: .*\(credit\) must be at most 100000000000 rupees, Balance \(balance\) must be at most 100000000000 rupees/,
    )
  })

  it('statements import leaves the last day of a truncated file uncovered, and rejects the file if --closing gives another balance', async () => {
    const merchant = await newMerchantAt()
    const file = statement(merchant.payouts.map(lineOf)).split('\n').slice(0, 4).join('\n').concat('\n')
    const rejected = await ops([...importArgs([merchant.mid]), '--closing', '14,016'], file)
    expect(rejected.stderr).toMatch(
      /nothing was imported: the file has the newest balance ₹12,006\.00, not ₹14,016\.00/,
    )
    const { coversTo, warnings } = await imported([merchant.mid], file)
    expect(coversTo).toBe('2026-08-03')
    expect(warnings).toEqual([
      expect.stringMatching(/may begin too late: to cover the days before 2026-08-02, add --opening/),
      expect.stringMatching(/may end too early: to cover all days until 2026-08-31, add --closing/),
    ])
    expect(await arrivals(merchant.mid)).toEqual(['arrived', 'arrived', 'not known', 'not known'])
  })

  it('statements import rejects two files pasted together', async () => {
    const merchant = await newMerchantAt()
    const file = statement(merchant.payouts.map(lineOf))
    const { stderr } = await ops(importArgs([merchant.mid]), `${file}${file}`)
    expect(stderr).toMatch(
      /line 9: is a row below the table, which ends in line 8. If the file contains two tables, import them as two files\./,
    )
  })

  it('statements import rejects a date with day and month swapped, because the date is outside the requested days', async () => {
    const merchant = await newMerchantAt()
    const file = statement(withSecond(merchant, (line) => [{ ...line, day: '2026-04-08' }]))
    const { stderr } = await ops(importArgs([merchant.mid]), file)
    expect(stderr).toMatch(/line 4: Date \(day\) must be from 2026-08-01 to 2026-08-31/)
  })

  it('statements import matches an RRN with a leading zero that the bank has padded to 16 digits', async () => {
    const merchant = await newMerchantAt()
    const payout = { day: '2026-08-07', reference: '070424750347', rupees: 77 }
    await addPayouts(merchant.mid, payout)
    const line = { ...lineOf(payout), text: 'UPI', reference: '0000070424750347' }
    await imported([merchant.mid], statement([...merchant.payouts.map(lineOf), line]))
    expect(await arrivals(merchant.mid)).toEqual([...ARRIVED, 'arrived'])
  })

  it('statements import rejects a reference that a spreadsheet converted to a number', async () => {
    const merchant = await newMerchantAt()
    const file = statement(withSecond(merchant, (line) => [{ ...line, reference: '4.26E+11' }]))
    const { stderr } = await ops(importArgs([merchant.mid]), file)
    expect(stderr).toMatch(/line 4: Ref No was converted to a number by a spreadsheet/)
  })

  it('statements import counts two identical lines of one day as two credits, even when the file is imported twice', async () => {
    const merchant = await newMerchantAt()
    const file = statement(withSecond(merchant, (line) => [line, line]))
    await imported([merchant.mid], file)
    await imported([merchant.mid], file)
    expect(await arrivals(merchant.mid)).toEqual(secondIs('arrived twice'))
    const { payouts } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', merchant.mid])
    expect(payouts[1]).toMatchObject({ net: '1004.00', credited: '2008.00' })
  })

  it.each([
    ['part of a longer reference', (reference: string) => `${reference}99`],
    ['truncated', (reference: string) => reference.slice(0, 13)],
  ])(
    "reconcile payouts reports 'perhaps' for a credit with the payout's amount and a reference that is %s, until an operator matches the credit",
    async (_, change) => {
      const merchant = await newMerchantAt()
      const file = statement(
        withSecond(merchant, (line) => {
          const reference = change(line.reference)
          return [{ ...line, reference, text: `NEFT CR-${reference}`, day: '2026-08-05' }]
        }),
      )
      const { statement: statementNumber } = await imported([merchant.mid], file)
      expect(await arrivals(merchant.mid)).toEqual(secondIs('perhaps'))
      const { payouts } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', merchant.mid])
      const [number, line] = payouts[1].statement.split(' line ')
      expect(number).toBe(String(statementNumber))
      const match = ['--payout', payouts[1].bankReference, '--statement', number, '--line', line]
      await must(['statements', 'match', ...match, '--reason', 'the bank shows other characters'])
      expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
      await imported([merchant.mid], file)
      expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
      await must(['statements', 'undo', '--statement', number])
      expect(await arrivals(merchant.mid)).toEqual(secondIs('perhaps'))
    },
  )

  it("reconcile payouts lists every credit with a payout's amount but without the payout's reference", async () => {
    const merchant = await newMerchantAt()
    const twin = (line: Line) => ({ ...line, text: 'NEFT', reference: newReference() })
    const created = await imported([merchant.mid], statement(withSecond(merchant, (line) => [twin(line), twin(line)])))
    expect(await arrivals(merchant.mid)).toEqual(secondIs('perhaps'))
    const { payouts } = await must(['reconcile', 'payouts', '--month', '2026-08', '--mid', merchant.mid])
    expect(payouts[1].statement).toBe(`${created.statement} line 4, ${created.statement} line 5`)
  })

  it('reconcile payouts reports "perhaps" for equal payouts whose references the bank cut off, until an operator matches each payout', async () => {
    const { mid } = await newMerchant(db)
    const payouts = ['03', '04', '05'].map((day) => ({ day: `2026-08-${day}`, reference: newReference(), rupees: 500 }))
    await addPayouts(mid, ...payouts)
    const [first, second] = payouts as [Payout, Payout]
    const cut = (payout: Payout) => ({ ...lineOf(payout), text: 'NEFT', reference: '' })
    const created = await imported([mid], statement([cut(first), cut(second)]))
    expect(await arrivals(mid)).toEqual(['perhaps', 'perhaps', 'not arrived'])
    for (const [payout, line] of [
      [first, '3'],
      [second, '4'],
    ] as const) {
      const match = ['--payout', payout.reference, '--statement', String(created.statement), '--line', line]
      await must(['statements', 'match', ...match, '--reason', 'of that day'])
    }
    expect(await arrivals(mid)).toEqual(['arrived', 'arrived', 'not arrived'])
  })

  it("reconcile payouts reports a payout as not received if only another merchant's statement contains the payout", async () => {
    const merchant = await newMerchantAt()
    const [, second] = merchant.payouts as [Payout, Payout]
    await imported([merchant.mid], statement(withSecond(merchant, () => [])))
    await imported([merchant.other], statement([lineOf(second)]))
    expect(await arrivals(merchant.mid)).toEqual(secondIs('not arrived'))
  })

  it('reconcile payouts reports "taken back" for a credit that was debited again with the same reference', async () => {
    const merchant = await newMerchantAt()
    await imported(
      [merchant.mid],
      statement(withSecond(merchant, (line) => [line, { ...line, amount: -line.amount, text: 'RETURN' }])),
    )
    expect(await arrivals(merchant.mid)).toEqual(secondIs('taken back'))
  })

  it('reconcile payouts ignores the same amount under another reference after the days allowed for the transfer', async () => {
    const merchant = await newMerchantAt()
    await imported(
      [merchant.mid],
      statement(
        withSecond(merchant, (line) => [{ ...line, day: '2026-08-20', text: 'NEFT', reference: newReference() }]),
      ),
    )
    expect(await arrivals(merchant.mid)).toEqual(secondIs('not arrived'))
  })

  it('reconcile payouts adds the adjustments from settlements pull to the expected payout, and reports a difference of one paisa', async () => {
    const merchant = await newMerchantAt()
    const [, second, third] = merchant.payouts as [Payout, Payout, Payout]
    for (const { reference, day } of [second, third]) {
      await db.query(
        `insert into payout_rests (import_id, account, bank_reference_number, amount_paise, day)
         select max(import_id), 'cashfree', $1, -1250, $2 from settlement_imports`,
        [reference, day],
      )
    }
    await db.query(`update settlements set account = 'cashfree' where mid = $1`, [merchant.mid])
    const lines = merchant.payouts
      .map(lineOf)
      .map((line) =>
        line.reference === second.reference
          ? { ...line, amount: line.amount - 12.5 }
          : line.reference === third.reference
            ? { ...line, amount: line.amount - 12.49 }
            : line,
      )
    await imported([merchant.mid], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(['arrived', 'arrived', 'amount differs', 'arrived'])
  })
})

describe('several merchants on one bank account', () => {
  it('reconcile payouts marks a transfer for two merchants as received if one credit equals the sum of both payouts', async () => {
    const merchant = await newMerchantAt()
    const [first] = merchant.payouts as [Payout]
    await addPayouts(merchant.other, { ...first, rupees: 500 })
    const lines = merchant.payouts
      .map(lineOf)
      .map((line, index) => (index === 0 ? { ...line, amount: line.amount + 500 } : line))
    await imported([merchant.mid, merchant.other], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
    expect(await arrivals(merchant.other)).toEqual(['arrived'])
  })

  it("reconcile payouts expects a transfer for two merchants until the days after the transfer's last line are covered, whichever merchant has the last line", async () => {
    const merchant = await newMerchantAt()
    const reference = newReference()
    const [early, late] = ['2026-08-10', '2026-08-24']
    for (const [mid, other] of [
      [merchant.mid, merchant.other],
      [merchant.other, merchant.mid],
    ] as const) {
      await addPayouts(mid, { day: early, reference: `${reference}${mid === merchant.mid ? 1 : 2}`, rupees: 10 })
      await addPayouts(other, { day: late, reference: `${reference}${mid === merchant.mid ? 1 : 2}`, rupees: 10 })
    }
    await imported([merchant.mid, merchant.other], statement(merchant.payouts.map(lineOf)))
    expect(await arrivals(merchant.mid)).toEqual([...ARRIVED, 'not known', 'not known'])
    expect(await arrivals(merchant.other)).toEqual(['not known', 'not known'])
  })

  it('reconcile payouts marks a transfer for two merchants as received even if an earlier statement was imported for one of the merchants', async () => {
    const merchant = await newMerchantAt()
    const [first] = merchant.payouts as [Payout]
    await addPayouts(merchant.other, { ...first, rupees: 500 })
    const lines = merchant.payouts
      .map(lineOf)
      .map((line, index) => (index === 0 ? { ...line, amount: line.amount + 500 } : line))
    await imported([merchant.mid], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(['amount differs', 'arrived', 'arrived', 'arrived'])
    await imported([merchant.mid, merchant.other], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })
})

describe('overlapping statements of one bank account', () => {
  it("reconcile payouts merges a credit in two statements if only the later statement contains the payout's reference", async () => {
    const merchant = await newMerchantAt()
    await layout(`narration-${merchant.mid}`, ['debit=Debit', 'credit=Credit'], ['reference=Narration'])
    const lines = withSecond(merchant, (line) => [{ ...line, reference: newReference() }])
    await must(importArgs([merchant.mid], `narration-${merchant.mid}`), statement(lines))
    await imported([merchant.mid], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it("reconcile payouts merges a credit in two statements that each contain another number besides the payout's reference", async () => {
    const merchant = await newMerchantAt()
    const lines = (own: string) =>
      merchant.payouts.map((payout) => ({ ...lineOf(payout), reference: `${own}${payout.day.replaceAll('-', '')}` }))
    await imported([merchant.mid], statement(lines('BANKA')))
    await imported([merchant.mid], statement(lines('BANKB')))
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it('reconcile payouts merges a credit that an operator has matched with the same credit in a later statement that names the payout', async () => {
    const merchant = await newMerchantAt()
    const [, second] = merchant.payouts as [Payout, Payout]
    const before = await imported(
      [merchant.mid],
      statement(withSecond(merchant, (line) => [{ ...line, text: 'NEFT', reference: '' }])),
    )
    const line = ['--statement', String(before.statement), '--line', '4', '--reason', 'the bank shows no reference']
    const mistyped = await ops(['statements', 'match', '--payout', newReference(), ...line])
    expect(mistyped).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/have no payout with this reference: see/),
    })
    await must(['statements', 'match', '--payout', second.reference, ...line])
    await imported([merchant.mid], statement(merchant.payouts.map(lineOf)))
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it('reconcile payouts reports "not known" for a payout listed after its statement lines were deleted, until a new import of the statement', async () => {
    const merchant = { ...(await newMerchantAt()), mid: (await newMerchant(db)).mid }
    const lines = merchant.payouts.filter((_, index) => index !== 1).map(lineOf)
    await imported([merchant.mid], statement(lines))
    await addPayouts(merchant.mid, ...merchant.payouts)
    expect(await arrivals(merchant.mid)).toEqual(Array(4).fill('not known'))
    await imported([merchant.mid], statement(lines))
    expect(await arrivals(merchant.mid)).toEqual(secondIs('not arrived'))
  })

  it('reconcile payouts still treats a payout as covered by a statement when a later settlement file only adds to the payout', async () => {
    const { mid } = await newMerchant(db)
    const row = `${mid},1000,${newReference()},${newReference()},SUCCESS,2026-08-04 09:00:00\n`
    const file = `mid,amount,utr,bank_reference_number,status,initiation_date\n${row}`
    await must(['settlements', 'import', '-'], file)
    await imported([mid], statement([]))
    expect(await arrivals(mid)).toEqual(['not arrived'])
    const { updated } = await must(['settlements', 'import', '-', '--acquirer', 'direct'], file)
    expect(updated).toBe(1)
    expect(await arrivals(mid)).toEqual(['not arrived'])
  })

  it('statements import covers only the days after the oldest line of a file in newest-first order, because the file may be truncated', async () => {
    const merchant = await newMerchantAt()
    const [header, ...lines] = statement(merchant.payouts.map(lineOf)).trimEnd().split('\n')
    const newestFirst = [header, ...lines.reverse().slice(0, 3), ''].join('\n')
    const { coversFrom, coversTo } = await must([...importArgs([merchant.mid]), '--closing', '14,016'], newestFirst)
    expect({ coversFrom, coversTo }).toEqual({ coversFrom: '2026-08-06', coversTo: '2026-08-31' })
    expect(await arrivals(merchant.mid)).toEqual(['not known', 'not known', 'arrived', 'arrived'])
  })

  it("statements import reads a file with equal amounts in the order of the file's days", async () => {
    const { mid } = await newMerchant(db)
    const file = (...lines: string[]) => ['Date,Narration,Ref No,Debit,Credit,Balance', ...lines, ''].join('\n')
    await imported([mid], file('05/08/2026,A,,,100,1200', '04/08/2026,B,,,100,1100'))
    const exchanged = await ops(importArgs([mid]), file('04/08/2026,A,,100,,1100', '05/08/2026,B,,100,,1200'))
    expect(exchanged.stderr).toMatch(/debit and credit are swapped/)
  })

  it('statements import covers no day of a file without balances, because a line may be missing', async () => {
    const merchant = await newMerchantAt()
    const file = statement(withSecond(merchant, () => [])).replace(/[^,\n]+$/gm, (balance) =>
      balance === 'Balance' ? balance : '',
    )
    const { code, stdout, stderr } = await ops([...importArgs([merchant.mid])], file)
    const summary = 'covers no day.\n5 lines: 3 credits, ₹3,014.00; 2 debits, ₹2.00\n'
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining(summary) })
    expect(stderr).toMatch(/no balances/)
    expect(await arrivals(merchant.mid)).toEqual(secondIs('not known'))
  })
})

describe('lines of a statement', () => {
  const HEADER = 'Date,Narration,Ref No,Debit,Credit,Balance\n'
  const SIGNED = 'Date,Narration,Amount,Dr / Cr\n'
  beforeAll(() => layout('signed', ['amount=Amount', 'sign=Dr / Cr'], ['reference=Narration']))

  it("statements import ignores lines that only state the day's balance", async () => {
    const merchant = await newMerchantAt()
    await layout('balances', ['amount=Amount', 'sign=Dr / Cr', 'balance=Balance'], ['reference=Narration'])
    const [opening, closing] = [10_000, merchant.payouts.reduce((sum, { rupees }) => sum + rupees, 10_000)]
    const lines = [
      'Date,Narration,Amount,Dr / Cr,Balance',
      `01/08/2026,OPENING BALANCE,,,${opening}`,
      ...merchant.payouts.map(({ day, reference, rupees }, index) => {
        const balance = merchant.payouts.slice(0, index + 1).reduce((sum, one) => sum + one.rupees, opening)
        return [inIndia(day), `NEFT ${reference}`, rupees, 'CR', balance].join()
      }),
      `31/08/2026,CLOSING BALANCE,0.00,,${closing}`,
      '',
    ]
    const { coversTo } = await must(importArgs([merchant.mid], 'balances'), lines.join('\n'))
    expect(coversTo).toBe('2026-08-30')
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it('statements import reads the balances of an overdrawn account with DR in a separate column', async () => {
    const { mid } = await newMerchant(db)
    await layout(
      'overdrawn',
      ['amount=Amount', 'sign=Dr / Cr', 'balance=Balance', 'balance=Dr / Cr#2'],
      ['reference=Narration'],
    )
    const payout = { day: '2026-08-04', reference: newReference(), rupees: 700 }
    await addPayouts(mid, payout)
    const lines = ['01/08/2026,RENT,500,DR,500.00,Dr', `04/08/2026,${payout.reference},700,CR,200.00,Cr`]
    const file = ['Date,Narration,Amount,Dr / Cr,Balance,Dr / Cr', ...lines, '05/08/2026,CASH,200,DR,0.00,', ''].join(
      '\n',
    )
    await must(importArgs([mid], 'overdrawn'), file)
    expect(await arrivals(mid)).toEqual(['arrived'])
    const { stderr } = await ops(importArgs([mid], 'overdrawn'), file.replace('200.00,Cr', '200.00,Dr'))
    expect(stderr).toMatch(/line 3: the balance does not follow/)
  })

  it("statements import finds the payout's reference next to a reference that consists of zeros", async () => {
    const merchant = await newMerchantAt()
    await imported(
      [merchant.mid],
      statement(withSecond(merchant, (line) => [{ ...line, reference: '0000000000000000' }])),
    )
    expect(await arrivals(merchant.mid)).toEqual(ARRIVED)
  })

  it.each([
    [
      'absorb the next line by an unclosed quote',
      'rupees',
      `${HEADER}03/08/2026,"NEFT,,,100,1100\n04/08/2026,6",,,50,1150\n`,
    ],
    ['have a negative amount and a debit sign', 'signed', `${SIGNED}03/08/2026,NEFT,-100,DR\n`],
    [
      'have one sign after the amount and another sign in the column of signs',
      'signed',
      `${SIGNED}03/08/2026,NEFT,100DR,CR\n`,
    ],
    ['have an unknown word as sign', 'signed', `${SIGNED}03/08/2026,NEFT,100,Cancelled\n`],
    ['have no sign', 'signed', `${SIGNED}03/08/2026,NEFT,100,\n`],
  ])('statements import rejects lines that %s', async (_, name, file) => {
    const { mid } = await newMerchant(db)
    const { code, stderr } = await ops(importArgs([mid], name), file)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/1 invalid line, nothing was imported; line 2: /),
    })
  })
})
