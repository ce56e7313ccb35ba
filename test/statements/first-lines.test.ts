import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { newMerchant } from '../support/service.ts'
import { bankOn, importArgs, newReference } from './bank.ts'

let db: Database
let url: string
const { ops, must, layout, addPayout, arrivals } = bankOn(() => url)
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  await layout('rupees', 'day=Date', 'reference=Narration', 'debit=Debit', 'credit=Credit', 'balance=Balance')
})

/** A merchant with a payout of ₹1,000 on each of these days of August 2026. */
async function newPaidOut(...days: string[]) {
  const { mid } = await newMerchant(db)
  for (const day of days) await addPayout(mid, { day: `2026-08-${day}`, reference: newReference(), rupees: 1000 })
  return mid
}

/** A statement of ₹1 a line on these days, after a balance of `opening`. */
const statement = (opening: number, ...days: string[]) =>
  [
    'Date,Narration,Debit,Credit,Balance',
    ...days.map((day, at) => `${day}/08/2026,TEA,,1,${opening + 1 + at}`),
    '',
  ].join('\n')

const states = async (mid: string) => (await arrivals(mid)).map(({ arrival }) => arrival)
const covered = async (args: string[], file: string) => {
  const { coversFrom, coversTo, warnings } = await must(args, file)
  return { coversFrom, coversTo, warnings }
}

describe('a statement without its first lines', () => {
  it('covers only the days after its oldest line, so that no payout of earlier days is reported as not arrived', async () => {
    const mid = await newPaidOut('03', '10', '17')
    const { coversFrom, warnings } = await covered(importArgs(mid, 'rupees'), statement(5000, '10', '11', '25'))
    expect(coversFrom).toBe('2026-08-11')
    expect(warnings[0]).toMatch(/may begin too late: to cover the days before 2026-08-11, add --opening/)
    expect(await states(mid)).toEqual(['not known', 'not known', 'not arrived'])
  })

  it('covers all days with the balance before them, and is rejected with another one', async () => {
    const mid = await newPaidOut('03', '10', '17')
    const file = statement(5000, '10', '11', '25')
    const refused = await ops([...importArgs(mid, 'rupees'), '--opening', '4,900'], file)
    expect(refused.stderr).toMatch(
      /nothing was imported: the file has the balance before the oldest line ₹5,000\.00, not ₹4,900/,
    )
    expect(await states(mid)).toEqual(['not known', 'not known', 'not known'])
    const { coversFrom } = await covered([...importArgs(mid, 'rupees'), '--opening', '5,000'], file)
    expect(coversFrom).toBe('2026-08-01')
    expect(await states(mid)).toEqual(['not arrived', 'not arrived', 'not arrived'])
  })

  it('covers all days where an earlier statement of the account ends with the balance that it begins with', async () => {
    const mid = await newPaidOut('12')
    const earlier = importArgs(mid, 'rupees', '2026-08-01', '2026-08-10')
    await must([...earlier, '--closing', '5,002'], statement(5000, '05', '07'))
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    const { coversFrom, coversTo } = await covered(later, statement(5002, '17', '25'))
    expect({ coversFrom, coversTo }).toEqual({ coversFrom: '2026-08-11', coversTo: '2026-08-24' })
    expect(await states(mid)).toEqual(['not arrived'])
  })

  it.each([
    ['ends with another balance', statement(4999, '05', '07'), undefined],
    ['ends later', statement(4999, '05', '07', '27'), undefined],
    ['was undone', statement(5000, '05', '07'), 'undo'],
  ])('covers no earlier day where the earlier statement %s', async (_, file, undo) => {
    const mid = await newPaidOut('12')
    const made = await must(importArgs(mid, 'rupees'), file)
    if (undo) await must(['statements', 'undo', '--statement', String(made.statement)])
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-18')
  })

  it('covers no earlier day by the statement of another account', async () => {
    const [mid, other] = [await newPaidOut('12'), await newPaidOut('12')]
    await must(importArgs(other, 'rupees', '2026-08-01', '2026-08-10'), statement(5000, '05', '07'))
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-18')
    expect(await states(mid)).toEqual(['not known'])
  })

  it('covers the days of its own lines alone where the earlier statement has lines of the same days', async () => {
    const mid = await newPaidOut('12')
    await must(importArgs(mid, 'rupees', '2026-08-01', '2026-08-17'), statement(5000, '05', '13'))
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-14')
  })
})
