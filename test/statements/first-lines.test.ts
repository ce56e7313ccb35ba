import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import { createTestDatabase } from '../support/database.ts'
import { newMerchant } from '../support/service.ts'

let db: Database
let url: string
const { ops, must, layout, addPayout, arrivals } = bankOn(() => url)
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  await layout('rupees', 'day=Date', 'reference=Narration', 'debit=Debit', 'credit=Credit', 'balance=Balance')
})

/** Creates a merchant with a payout of ₹1,000 on each of these days of August 2026. */
async function newPaidOut(...days: string[]) {
  const { mid } = await newMerchant(db)
  for (const day of days) await addPayout(mid, { day: `2026-08-${day}`, reference: newReference(), rupees: 1000 })
  return mid
}

/** Formats a statement with one credit of ₹1 on each of these days, after a balance of `opening`. */
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

describe('a statement whose first lines are missing', () => {
  it('statements import covers only the days after the oldest line, so that earlier payouts are not reported as missing', async () => {
    const mid = await newPaidOut('03', '10', '17')
    const { coversFrom, warnings } = await covered(importArgs(mid, 'rupees'), statement(5000, '10', '11', '25'))
    expect(coversFrom).toBe('2026-08-11')
    expect(warnings[0]).toMatch(/may begin too late: to cover the days before 2026-08-11, add --opening/)
    expect(await states(mid)).toEqual(['not known', 'not known', 'not arrived'])
  })

  it('statements import covers all days if --opening matches the file, and rejects the file otherwise', async () => {
    const mid = await newPaidOut('03', '10', '17')
    const file = statement(5000, '10', '11', '25')
    const rejected = await ops([...importArgs(mid, 'rupees'), '--opening', '4,900'], file)
    expect(rejected.stderr).toMatch(
      /nothing was imported: the file has the balance before the oldest line ₹5,000\.00, not ₹4,900/,
    )
    expect(await states(mid)).toEqual(['not known', 'not known', 'not known'])
    const { coversFrom } = await covered([...importArgs(mid, 'rupees'), '--opening', '5,000'], file)
    expect(coversFrom).toBe('2026-08-01')
    expect(await states(mid)).toEqual(['not arrived', 'not arrived', 'not arrived'])
  })

  it("statements import covers all days if an earlier statement of the bank account ends with the file's opening balance", async () => {
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
    ['ends after the new statement', statement(4999, '05', '07', '27'), undefined],
    ['was undone', statement(5000, '05', '07'), 'undo'],
  ])(
    'statements import does not cover days before the oldest line if the earlier statement %s',
    async (_, file, undo) => {
      const mid = await newPaidOut('12')
      const created = await must(importArgs(mid, 'rupees'), file)
      if (undo) await must(['statements', 'undo', '--statement', String(created.statement)])
      const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
      expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-18')
    },
  )

  it("statements import does not cover days before the oldest line because of another bank account's statement", async () => {
    const [mid, other] = [await newPaidOut('12'), await newPaidOut('12')]
    await must(importArgs(other, 'rupees', '2026-08-01', '2026-08-10'), statement(5000, '05', '07'))
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-18')
    expect(await states(mid)).toEqual(['not known'])
  })

  it("statements import covers only days after the earlier statement's newest line if the two statements overlap", async () => {
    const mid = await newPaidOut('12')
    await must(importArgs(mid, 'rupees', '2026-08-01', '2026-08-17'), statement(5000, '05', '13'))
    const later = importArgs(mid, 'rupees', '2026-08-11', '2026-08-31')
    expect((await covered(later, statement(5002, '17', '25'))).coversFrom).toBe('2026-08-14')
  })
})
