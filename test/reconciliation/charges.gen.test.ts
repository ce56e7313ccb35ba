import { beforeAll, expect, it } from 'vitest'
import { daysOfMonth } from '../../src/books/closing/closed-months.ts'
import { openDiscrepancies } from '../../src/books/closing/open-discrepancies.ts'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import { isMerchantError } from '../../src/books/reading/snapshot.ts'
import { type AccountCharges, listCharges } from '../../src/books/reports/fees.ts'
import { journalOf } from '../../src/books/reports/journal.ts'
import { enterResolution } from '../../src/books/reports/resolutions.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { readAll } from '../support/findings.ts'
import { isGenerated } from '../support/generated.ts'
import { randomStory } from './random-story.ts'
import { istMoment } from './rows.ts'
import { storeStories } from './stored-story.ts'

const PAID = { from: '2026-04-01', to: isGenerated() ? '2026-06-30' : '2026-05-31' }
const END = addDays(PAID.to, 31)
const MONTHS = ['2026-04', '2026-05', '2026-06', '2026-07'].filter((month) => daysOfMonth(month).from < END)
const now = istMoment(END, '23:00:00')

let db: Database

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
  const seed = isGenerated() ? Date.now() % 100_000 : 11
  if (isGenerated()) console.log(`a quarter of seed ${seed}`)
  const stories = Array.from({ length: isGenerated() ? 40 : 4 }, (_, at) =>
    randomStory(seed + at, PAID, addDays(PAID.to, 20)),
  )
  await storeStories(db, stories, { from: PAID.from, to: END }, async () => undefined)
  const open = await readAll(openDiscrepancies(db, { to: END, now }))
  const found = open.flatMap((one) => (isMerchantError(one) ? [] : one.discrepancies))
  for (const one of found.filter((_, index) => index % 2 === 0))
    await enterResolution(db, one, { reason: 'charge for a dispute', as: 'charge', by: 'asha', now })
}, 300_000)

type Invoice = Record<string, number>

/** Returns what acquirer accounts invoice for a month: fee and tax of its payments, and other charges of its days. */
async function invoicesOf(month: string): Promise<Invoice> {
  const { rows } = await db.query<{ account: string; paise: number; month: string }>(
    `select coalesce(s.paid_account, s.account, 'unknown') as account, coalesce(s.fee_paise, 0) + coalesce(s.tax_paise, 0) as paise,
            to_char((case when s.amount_paise > 0 and coalesce(s.event, '') not like 'dispute%' and p.utr is not null
                          then coalesce(p.paid_at, p.received_at) else coalesce(s.value_date::timestamp at time zone 'Asia/Kolkata', s.initiated_at) end)
                    at time zone 'Asia/Kolkata', 'YYYY-MM') as month
       from settlements s
       left join payments p on p.mid = s.mid and p.utr = upper(coalesce(s.payment_utr, s.utr))
      where s.status = 'SUCCESS'
      union all
     select account, -amount_paise, to_char(day, 'YYYY-MM') from difference_resolutions where written_off_as = 'charge'`,
  )
  const sums: Invoice = {}
  for (const row of rows) if (row.month === month) sums[row.account] = (sums[row.account] ?? 0) + row.paise
  return sums
}

/** Returns the debits less the credits of each ledger `<account> charges`. */
async function postedOn(days: { from: string; to: string }): Promise<Invoice> {
  const sums: Invoice = {}
  for (const line of await readAll(journalOf(db, { ...days, now, charges: 'supplier' }))) {
    if (isMerchantError(line)) throw new Error(line.error)
    if (line.ledger !== `${line.account} charges`) continue
    sums[line.account] = (sums[line.account] ?? 0) + line.debit - line.credit
  }
  return sums
}

const sumOf = (charges: readonly AccountCharges[], of: (one: AccountCharges) => number) =>
  Object.fromEntries(charges.map((one) => [one.account, of(one)] as const))

const rounded = (sums: Invoice) => Object.fromEntries(Object.entries(sums).filter(([, paise]) => paise !== 0))

it('the charges of a month are the postings to the ledger of the account, and with other months its invoice', async () => {
  for (const month of MONTHS) {
    const days = daysOfMonth(month)
    const charges = await listCharges(db, { ...days, now })
    const settled = sumOf(charges, ({ fee, tax, resolved }) => fee + tax + resolved)
    expect(rounded(settled), month).toEqual(rounded(await postedOn(days)))
    const paid = sumOf(
      charges,
      (one) => (settled[one.account] as number) - one.otherFee - one.otherTax + one.laterFee + one.laterTax,
    )
    expect(rounded(paid), month).toEqual(rounded(await invoicesOf(month)))
    if (month !== MONTHS.at(-1))
      expect(
        charges.some((one) => one.laterFee > 0 && one.resolved !== 0),
        month,
      ).toBe(true)
  }
})

it('after the invoices of each month, the ledger of an account holds the charges of lines settled in a later month', async () => {
  const balance: Invoice = {}
  for (const month of MONTHS) {
    const [posted, invoiced] = [await postedOn(daysOfMonth(month)), await invoicesOf(month)]
    for (const account of new Set([...Object.keys(posted), ...Object.keys(invoiced)]))
      balance[account] = (balance[account] ?? 0) + (posted[account] ?? 0) - (invoiced[account] ?? 0)
    const later = await listCharges(db, { from: PAID.from, to: daysOfMonth(month).to, now })
    expect(rounded(balance), month).toEqual(rounded(sumOf(later, ({ laterFee, laterTax }) => 0 - laterFee - laterTax)))
    expect(Object.keys(rounded(balance)).length > 0, month).toBe(month !== MONTHS.at(-1))
  }
})
