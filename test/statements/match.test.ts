import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import { createTestDatabase } from '../support/database.ts'
import { newMerchant } from '../support/service.ts'

let db: Database
let url: string
const { ops, must, layout, addPayout, arrivals } = bankOn(() => url)
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  const amounts = ['debit=Debit', 'credit=Credit', 'balance=Balance']
  await layout('narration', 'day=Date', 'reference=Narration', ...amounts)
  await layout('numbers', 'day=Value Date', 'reference=Ref No', ...amounts)
})

/**
 * Creates a merchant with three payouts. Its statement contains the first in line 2, the second without a reference in line 3,
 * and a debit in line 4.
 */
async function newMerchantAt() {
  const { mid } = await newMerchant(db)
  const payouts = [3, 4, 5].map((day) => ({ day: `2026-08-0${day}`, reference: newReference(), rupees: 1000 + day }))
  for (const payout of payouts) await addPayout(mid, payout)
  const [first, second, third] = payouts as [(typeof payouts)[0], (typeof payouts)[0], (typeof payouts)[0]]
  const file = [
    'Date,Value Date,Narration,Ref No,Debit,Credit,Balance',
    `03/08/2026,03/08/2026,NEFT ${first.reference},426018195789,,1003,1003`,
    `04/08/2026,05/08/2026,NEFT,${second.reference},,1004,2007`,
    '05/08/2026,05/08/2026,TEA,,1,,2006',
    '',
  ].join('\n')
  return { mid, first, second, third, file }
}

const states = async (mid: string) => (await arrivals(mid)).map(({ arrival }) => arrival)

async function match(statement: number, line: number, ...args: string[]) {
  return ops([
    'statements',
    'match',
    '--statement',
    String(statement),
    '--line',
    String(line),
    '--reason',
    'seen',
    ...args,
  ])
}

describe('ops statements match', () => {
  it('statements match shows day, amount and both references, and --none removes the match', async () => {
    const { mid, second, file } = await newMerchantAt()
    const { statement: number } = await must(importArgs(mid, 'narration'), file)
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
    expect(await match(number, 3, '--payout', second.reference.toLowerCase())).toEqual({
      code: 0,
      stderr: '',
      stdout: `Matched line 3 of bank statement ${number} (2026-08-04, ₹1,004.00, no reference) with payout ${second.reference.toLowerCase()} of ₹1,004.00.\n`,
    })
    expect(await states(mid)).toEqual(['arrived', 'arrived', 'not known'])
    expect((await match(number, 3, '--none')).stdout).toBe(
      `Match of line 3 of bank statement ${number} (2026-08-04, ₹1,004.00, no reference) with payout ${second.reference} removed.\n`,
    )
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
    expect((await match(number, 3, '--none')).stderr).toMatch(/is not matched with a payout: see ops reconcile payouts/)
  })

  it('statements match rejects a line with another amount unless --force is given', async () => {
    const { mid, third, file } = await newMerchantAt()
    const { statement: number } = await must(importArgs(mid, 'narration'), file)
    const rejected = await match(number, 3, '--payout', third.reference)
    expect(rejected).toEqual({
      code: 1,
      stdout: '',
      stderr: `ops: line 3 of bank statement ${number} (2026-08-04, ₹1,004.00, no reference) does not fit payout ${third.reference}: the payout is ₹1,005.00; check both, or add --force\n`,
    })
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
    expect(await match(number, 3, '--payout', third.reference, '--force')).toMatchObject({ code: 0 })
    expect(await states(mid)).toEqual(['arrived', 'not known', 'amount differs'])
  })

  it('statements match rejects a line that names another payout or is matched with another payout', async () => {
    const { mid, first, second, file } = await newMerchantAt()
    const other = { day: '2026-08-04', reference: newReference(), rupees: 1003 }
    const twin = { day: '2026-08-04', reference: newReference(), rupees: 1004 }
    for (const payout of [other, twin]) await addPayout(mid, payout)
    const { statement: number } = await must(importArgs(mid, 'narration'), file)
    expect((await match(number, 2, '--payout', `'${other.reference}\u00a0`)).stderr).toMatch(
      new RegExp(
        `₹1,003\\.00, ${first.reference}\\) does not fit payout .*: the line names payout ${first.reference}, or is`,
      ),
    )
    expect(await match(number, 3, '--payout', second.reference)).toMatchObject({ code: 0 })
    expect((await match(number, 3, '--payout', twin.reference)).stderr).toMatch(
      new RegExp(
        `does not fit payout .*: the line names payout ${second.reference}, or is matched with it; check both`,
      ),
    )
    expect(await match(number, 3, '--payout', second.reference)).toMatchObject({ code: 0 })
  })

  it('statements match rejects a line that is matched with another payout in another statement of the bank account', async () => {
    const { mid, second, file } = await newMerchantAt()
    const twin = { day: '2026-08-04', reference: newReference(), rupees: 1004 }
    await addPayout(mid, twin)
    const { statement: one } = await must(importArgs(mid, 'narration'), file)
    const { statement: two } = await must(importArgs(mid, 'narration'), `Account XX5678\n${file}`)
    expect(await match(one, 3, '--payout', second.reference)).toMatchObject({ code: 0 })
    expect((await match(two, 4, '--payout', twin.reference)).stderr).toMatch(
      new RegExp(`the line names payout ${second.reference}, or is matched with it; check both`),
    )
    expect(await states(mid)).toEqual(['arrived', 'arrived', 'not known', 'not known'])
  })

  it("statements match compares a line with the transfer's total, including adjustments from settlements pull", async () => {
    const { mid, second, file } = await newMerchantAt()
    await addPayout(mid, { ...second, rupees: 10 })
    await db.query(`update settlements set account = 'cashfree' where mid = $1`, [mid])
    const rest = `insert into payout_rests (import_id, account, bank_reference_number, amount_paise, day)
                  select max(import_id), 'cashfree', $1, -1000, $2 from settlement_imports`
    await db.query(rest, [second.reference, second.day])
    const { statement: number } = await must(importArgs(mid, 'numbers'), file)
    expect(await match(number, 3, '--payout', second.reference)).toMatchObject({ code: 0, stderr: '' })
    expect((await states(mid))[1]).toBe('arrived')
  })

  it.each([
    ['neither --payout nor --none', [], /give either --payout or --none/],
    ['--payout together with --none', ['--payout', 'AXNPN202600000001', '--none'], /give either --payout or --none/],
  ])('statements match rejects %s', async (_, args, reason) => {
    expect(await match(1, 2, ...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(reason) })
  })

  it('statements match rejects a debit, and rejects a payout to another merchant', async () => {
    const [{ mid, file }, other] = [await newMerchantAt(), await newMerchantAt()]
    const { statement: number } = await must(importArgs(mid, 'narration'), file)
    expect((await match(number, 4, '--payout', other.first.reference)).stderr).toMatch(/is not a stored credit/)
    expect((await match(number, 3, '--payout', other.second.reference)).stderr).toMatch(
      /have no payout with this reference/,
    )
    expect(await states(other.mid)).toEqual(['not known', 'not known', 'not known'])
  })
})

describe('one file imported with two layouts', () => {
  it('reconcile payouts merges a file imported with two layouts into one list of lines, with both references and the day of the newest import', async () => {
    const { mid, file } = await newMerchantAt()
    const first = await must(importArgs(mid, 'narration'), file)
    const second = await must(importArgs(mid, 'numbers'), file)
    const { statement: third } = await must(importArgs(mid, 'narration'), file)
    expect(await arrivals(mid)).toEqual([
      { arrival: 'arrived', credited: '1003.00', statement: `${third} line 2` },
      { arrival: 'arrived', credited: '1004.00', statement: `${third} line 3` },
      { arrival: 'not known', credited: null, statement: null },
    ])
    await must(['statements', 'undo', '--statement', String(second.statement)])
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
    await must(['statements', 'undo', '--statement', String(first.statement)])
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
  })

  it('statements match applies a match, or --none, to all imports of a file', async () => {
    const { mid, second, file } = await newMerchantAt()
    const [{ statement: one }, { statement: two }] = [
      await must(importArgs(mid, 'narration'), file),
      await must(importArgs(mid, 'narration'), file),
    ]
    await match(one, 3, '--payout', second.reference)
    expect((await match(two, 3, '--none')).stdout).toMatch(/^Match of .* removed\.\n$/)
    expect(await states(mid)).toEqual(['arrived', 'perhaps', 'not known'])
  })

  it('reconcile payouts counts two identical lines of a file twice after imports with two layouts', async () => {
    const { mid, first, file } = await newMerchantAt()
    const [header, line, ...others] = file.split('\n')
    const twins = [header, line, line?.replace(',1003,1003', ',1003,2006'), ...others.slice(-1)].join('\n')
    for (const layout of ['narration', 'numbers']) await must(importArgs(mid, layout), twins)
    expect((await arrivals(mid))[0]).toMatchObject({ arrival: 'arrived twice', credited: '2006.00' })
    expect(first.rupees).toBe(1003)
  })
})

describe('a payout that was not received in full', () => {
  const AUGUST = ['--month', '2026-08']
  type Line = Record<string, string | null>

  /** Creates payouts of ₹1,000 on the 4th: one received, one short by ₹100, and `missing` ones not received. */
  async function newShortMerchant(missing = 1) {
    const { mid } = await newMerchant(db)
    const payouts = Array.from({ length: 2 + missing }, () => ({
      ...{ day: '2026-08-04', rupees: 1000, reference: newReference() },
    }))
    for (const payout of payouts) await addPayout(mid, payout)
    const credits = [1000, 900].map(
      (rupees, at) => `04/08/2026,NEFT ${payouts[at]?.reference},,${rupees},${1999 + at * 900}`,
    )
    const file = [
      'Date,Narration,Debit,Credit,Balance',
      '01/08/2026,RENT,1,,999',
      ...credits,
      '25/08/2026,RENT,1,,2898',
      '',
    ].join('\n')
    await must(importArgs(mid, 'narration'), file)
    const list = async (...args: string[]): Promise<Line[]> =>
      (await must(['reconcile', 'payouts', ...AUGUST, '--mid', mid, ...args])).payouts
    return { mid, list, references: payouts.map(({ reference }) => reference) }
  }

  const resolve = (id: string | null | undefined, ...args: string[]) =>
    ops(['reconcile', 'resolve', '--difference', String(id), '--reason', 'paid by cheque', ...args])

  beforeAll(() => void vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-09-02T12:00:00+05:30') }))
  afterAll(() => void vi.useRealTimers())

  it('reconcile payouts --open lists a short payout with difference and id until the payout is resolved, and the resolution changes no other report', async () => {
    const { mid, list, references } = await newShortMerchant()
    const all = await list()
    expect(all.map(({ arrival, difference }) => [arrival, difference])).toEqual([
      ['arrived', '0.00'],
      ['amount differs', '-100.00'],
      ['not arrived', '-1000.00'],
    ])
    expect(all[0]).toMatchObject({ differenceId: null, resolution: null })
    expect(await list('--open')).toEqual(all.slice(1))
    expect((await must(['reconcile', 'differences', '--mid', mid])).payouts).toEqual(all.slice(1))
    const text = await ops(['reconcile', 'payouts', ...AUGUST, '--mid', mid])
    expect(text.stdout.match(/(not )?received|amount differs/g)).toEqual(['received', 'amount differs', 'not received'])
    expect((await ops(['reconcile', 'payouts', ...AUGUST, '--mid', mid, '--csv'])).stdout).toMatch(/,not arrived,/)
    const books = () =>
      Promise.all([
        must(['reconcile', ...AUGUST, '--mid', mid]),
        must(['reconcile', 'statement', ...AUGUST, '--mid', mid]),
        must(['reconcile', 'journal', ...AUGUST, '--mid', mid]),
        must(['reconcile', 'differences', '--mid', mid]).then(({ payouts: _, ...others }) => others),
      ])
    const before = await books()
    const [, short, missing] = all
    expect(await resolve(short?.differenceId, '--as', 'charge')).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: `Discrepancy ${short?.differenceId}, short payout of ₹100.00, resolved as charge.\n`,
    })
    expect((await resolve(short?.differenceId)).stderr).toMatch(/was already resolved: paid by cheque/)
    expect((await resolve('2608040123456789')).stderr).toMatch(/discrepancy 2608040123456789 does not exist/)
    expect(await list('--open')).toEqual([missing])
    expect((await list())[1]).toEqual({ ...short, resolution: 'paid by cheque' })
    expect(await books()).toEqual(before)
    const reported = await must(['reconcile', 'resolutions', '--mid', mid])
    expect(reported).toMatchObject([{ kind: 'short payout', amount: '0.00', as: 'charge', day: '2026-08-04' }])
    await resolve(missing?.differenceId)
    expect(await list('--open')).toEqual([])
    const { rows } = await db.query('select settlement_utr from difference_resolutions where mid = $1', [mid])
    expect(rows.map(({ settlement_utr: reference }) => reference)).toEqual(references.slice(1))
    expect((await ops(['today'])).stdout).toMatch(
      /^information +payouts +1 received \(₹1,000\.00\), 2 resolved \(₹2,000\.00\) \(ops/m,
    )
  })

  it('reconcile close warns of at most ten payouts that were not received in full', async () => {
    const { mid, list, references } = await newShortMerchant(11)
    const { stderr } = await ops(['reconcile', 'close', ...AUGUST])
    const lines = stderr.trimEnd().split('\n').slice(-11)
    expect(lines).toContain(
      `ops: warning: payout ${references[1]} of 2026-08-04 to ${mid}, ₹1,000.00: amount differs by -₹100.00`,
    )
    expect(lines).toContain(`ops: warning: payout ${references[2]} of 2026-08-04 to ${mid}, ₹1,000.00: not received`)
    expect(lines.at(-1)).toBe('ops: warning: and 2 more: see ops reconcile payouts --open')
    vi.setSystemTime(new Date('2026-09-03T12:00:00+05:30'))
    const [, short] = await list()
    expect(await resolve(short?.differenceId)).toMatchObject({ code: 0 })
    expect(await must(['reconcile', 'closed'])).toMatchObject([{ month: '2026-08', changed: [] }])
  })
})
