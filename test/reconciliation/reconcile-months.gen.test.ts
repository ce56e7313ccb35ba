import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { parse } from 'csv-parse/sync'
import { beforeAll, describe, expect, it } from 'vitest'
import { findDiscrepancy } from '../../src/books/reconciliation/reconcile.ts'
import { enterResolution } from '../../src/books/reconciliation/resolutions.ts'
import { main } from '../../src/operator/cli/run.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { isGenerated, runs } from '../support/generated.ts'
import { opsOn } from '../support/ops.ts'
import { runToEnd, TYPESCRIPT } from '../support/processes.ts'
import { newPartner } from '../support/tenants.ts'
import { type Finding, findingsOf } from './findings.ts'
import {
  CLEAN,
  type Day,
  type Difference,
  dayAfter,
  type Ledger,
  MERCHANTS,
  MONTHS,
  type Months,
  makeMonths,
  notYetDue,
  openOf,
  rupees,
  storeMonths,
  sumOf,
} from './months.ts'

const PAYMENTS = runs(40_000, 2_000)
/** The command itself takes about 20 MB, and the differences of all payments as many again. In less it only collects garbage. */
const HEAP_MB = 32
/** Each look-up reads the whole day of every merchant. */
const LOOKED_UP = 10

type FoundDifference = Extract<Finding, { type: 'difference' }>
type Named = Record<string, string | null>
type Book = {
  mid: string
  file: string
  differences: Named[]
  exceptions: Named[]
  days: Named[]
  total: Named & { differences: number; openExceptions: number }
}

let url: string
let db: Database
let months: Months
/** The UTR that each exception is of, by the name that the database gave it. */
let utrs: Map<string, string>

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  // With seed 2 the two double payments of one payout are of the same day.
  const seed = isGenerated() ? Date.now() % 100_000 : 2
  if (isGenerated()) console.log(`the months of seed ${seed}`)
  months = makeMonths(PAYMENTS, seed)
  await storeMonths(db, months)
  const { rows } = await db.query<{ id: string; utr: string }>(`select exception_id as id, utr from payment_exceptions`)
  utrs = new Map(rows.map(({ id, utr }) => [id, utr]))
}, 600_000)

const { ops, json } = opsOn(() => url, ['reconcile'])
const monthOf = ({ from, to }: (typeof MONTHS)[number]) => ['--from', from, '--to', to]

const spelt = ({ payments, settlements, ...paise }: Day) => ({
  ...{ payments, settlements, refunded: '0.00' },
  ...{ resolved: '0.00', resolvedPlus: '0.00', resolvedMinus: '0.00' },
  ...Object.fromEntries(Object.entries(paise).map(([name, sum]) => [name, rupees(sum)])),
  net: rupees(paise.settled - paise.fee - paise.tax),
})

const inDays = <T extends { day: string }>(of: readonly T[], { from, to }: { from: string; to: string }) =>
  of.filter(({ day }) => day >= from && day <= to)

const broughtTo = (ledgers: readonly Ledger[], from: string) => {
  const { paid, settled } = sumOf(ledgers, '', dayAfter(from, -1))
  return paid - settled
}

const exceptionsIn = ({ exceptions }: Ledger, { from, to }: { from: string; to: string }) =>
  exceptions.filter(({ day, madeOn }) => [day, madeOn].some((one) => one >= from && one <= to))

/** Under both names of this version. */
const awaitedOf = (paise: number) => ({ awaited: rupees(paise) })

const totalOf = (ledgers: readonly Ledger[], days: { from: string; to: string }) => {
  const sums = sumOf(ledgers, days.from, days.to)
  const brought = broughtTo(ledgers, days.from)
  return {
    ...spelt(sums),
    ...{ broughtForward: rupees(brought), carriedForward: rupees(brought + sums.paid - sums.settled) },
    ...awaitedOf(ledgers.reduce((sum, ledger) => sum + openOf(ledger, days.from, days.to), 0)),
    differences: ledgers.flatMap(({ differences }) => inDays(differences, days)).length,
    openExceptions: ledgers.flatMap((ledger) => exceptionsIn(ledger, days)).length,
  }
}

const daysOf = (ledger: Ledger, { from, to }: { from: string; to: string }) => {
  const differing = inDays(ledger.differences, { from, to }).map(({ day }) => day)
  const days = [...new Set([...ledger.days.keys(), ...differing])].filter((day) => day >= from && day <= to).sort()
  return days.map((day) => {
    const { openExceptions: _, awaited: __, ...sums } = totalOf([ledger], { from: day, to: day })
    return { day, ...sums }
  })
}

const told = ({ day, kind, orderId, utr, settlementUtr, cause, ...paise }: Difference) => ({
  ...{ day, kind, orderId, utr, settlementUtr, cause },
  ...{ paid: paise.paid === null ? null : rupees(paise.paid), owed: rupees(paise.owed) },
  settled: paise.settled === null ? null : rupees(paise.settled),
})

const asTold = ({ day, kind, orderId, utr, settlementUtr, cause, paid, settled, owed }: Named) => ({
  ...{ day, kind, orderId, utr, settlementUtr, paid, settled, owed },
  cause: (cause as string).replace(/\bexception ([0-9a-f]{12})\b/g, (_, id) => `exception of ${utrs.get(id)}`),
})

const inOrder = <T extends object>(of: T[]) => of.map((one) => JSON.stringify(one, Object.keys(one).sort())).sort()

const FILES: Record<string, string[]> = {
  ...{ named: Array(3).fill('by payment'), own: Array(3).fill('by payment'), sums: Array(3).fill('by sums') },
  ...{ single: Array(3).fill('by sums'), turns: ['by sums', 'by payment and by sums', 'by payment'] },
}

describe('the reports of three months of nine merchants', () => {
  it.each([0, 1, 2] as const)(
    'the report of month %i names every planted difference with its cause and no other, and has the right sums',
    {
      timeout: 900_000,
    },
    async (index) => {
      const days = MONTHS[index]
      const startedAt = performance.now()
      const { merchants, total, balances } = await json(...monthOf(days))
      if (isGenerated()) console.log(`a month was reconciled in ${Math.round(performance.now() - startedAt)} ms`)
      expect(balances).toBe(false)
      expect((merchants as Book[]).map(({ mid, file }) => [mid, file])).toEqual(
        MERCHANTS.map(({ mid, file }) => [mid, FILES[file]?.[index]]),
      )
      for (const book of merchants as Book[]) {
        const ledger = months.ledgers.find(({ mid }) => mid === book.mid) as Ledger
        expect(inOrder(book.differences.map(asTold)), book.mid).toEqual(
          inOrder(inDays(ledger.differences, days).map(told)),
        )
        expect(inOrder(book.exceptions.map(({ exceptionId, receivedAt, merchantOrderId, ...one }) => one))).toEqual(
          inOrder(
            exceptionsIn(ledger, days).map(({ kind, orderId, utr, amount }) => ({
              kind,
              orderId,
              utr,
              amount: rupees(amount),
            })),
          ),
        )
        expect(
          book.days.map(({ awaited, ...day }) => day),
          book.mid,
        ).toEqual(daysOf(ledger, days))
        expect(book.days.reduce((sum, { awaited }) => sum + Number((awaited as string).replace('.', '')), 0)).toBe(
          openOf(ledger, days.from, days.to),
        )
        expect(book.total, book.mid).toEqual(totalOf([ledger], days))
        if (CLEAN.includes(book.mid)) expect([book.total.differences, book.total.openExceptions]).toEqual([0, 0])
        // What is left at the end is what is not due yet, and what is unexplained.
        const unresolved = ledger.differences
          .filter(({ day }) => day <= days.to)
          .reduce((sum, { owed }) => sum + owed, 0)
        expect(book.total.carriedForward, book.mid).toBe(rupees(notYetDue(ledger, days.to) + unresolved))
      }
      expect(total).toEqual(totalOf(months.ledgers, days))
    },
  )
})

const INDIAN = new Intl.NumberFormat('en-IN', { minimumFractionDigits: 2 })
/** What people read of a text that scripts get. */
const grouped = (text: string) => text.replace(/\d+\.\d\d\b/g, (amount) => INDIAN.format(Number(amount)))

describe('the forms of a report', () => {
  const [, days] = MONTHS
  const args = ['--mid', 'M7_FAULTS', ...monthOf(days)]

  it('the forms of a reconciliation report agree: JSON, the CSV of spreadsheets and the table', async () => {
    const { merchants, total } = await json(...args)
    const [book] = merchants as [Book]
    const csv = (await ops(...args, '--csv')).stdout
    expect(csv).toMatch(/^type,mid,day,kind,difference_id,/)
    const records: Named[] = parse(csv, { bom: true, columns: true })
    const ofType = (wanted: string) => records.filter(({ type }) => type === wanted)
    const named = (name: string | null) => (/^\d+(e\d+)?$/.test(name ?? '') ? `="${name}"` : (name ?? ''))
    expect(
      ofType('difference').map(({ difference_id, utr, settlement_utr, paid, settled, owed, cause }) => ({
        ...{ difference_id, utr, settlement_utr, paid, settled, owed, cause },
      })),
    ).toEqual(
      book.differences.map(({ id, utr, settlementUtr, paid, settled, owed, cause }) => ({
        ...{
          difference_id: named(id as string),
          utr: named(utr as string),
          settlement_utr: named(settlementUtr as string),
        },
        ...{ paid: paid ?? '', settled: settled ?? '', owed, cause },
      })),
    )
    expect(ofType('difference').some(({ utr }) => utr?.startsWith('="5'))).toBe(true)
    const asWire = (record: Named | undefined) =>
      Object.fromEntries(
        Object.entries(record ?? {}).map(([name, field]) => [
          name.replace(/_(.)/g, (_, at) => at.toUpperCase()),
          field,
        ]),
      )
    const asText = (sums: object) => Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, String(sum)]))
    expect(ofType('day').map(asWire)).toEqual(book.days.map((day) => expect.objectContaining(asText(day))))
    expect(asWire(ofType('total')[0])).toMatchObject(asText(book.total))
    expect(asWire(ofType('end')[0])).toMatchObject(asText(total))

    const lines = (await ops(...args)).stdout.split('\n')
    const head = lines.findIndex((line) => line.startsWith('day '))
    const names = (lines[head] as string).split(/ {2,}/)
    const cellsOf = (line: string) => Object.fromEntries(line.split(/ {2,}/).map((cell, at) => [names[at], cell]))
    const table = lines.slice(head + 1, head + 2 + book.days.length).map(cellsOf)
    const inTable = (sums: Named) => {
      const { openExceptions, resolved, ...shown } = sums
      return Object.fromEntries(Object.entries(shown).map(([name, sum]) => [name, grouped(String(sum))]))
    }
    expect(table).toEqual([...book.days, { ...book.total, day: 'total' }].map((one) => inTable(one as Named)))
    for (const { id, day, kind, cause } of book.differences) {
      expect(
        lines.filter(
          (line) => line.startsWith(`  ${day} ${kind} ${id}: `) && line.endsWith(`: ${grouped(cause as string)}`),
        ),
      ).toHaveLength(1)
    }
  })

  it('the CSV of a report suits spreadsheets: UTF-8 mark, amounts as numbers, UTRs with all their digits', async () => {
    const stdout = new PassThrough()
    const printed = buffer(stdout)
    const terminal = { stdin: Readable.from([]), stdout, stderr: new PassThrough() }
    const env = { ...process.env, DATABASE_URL: url }
    expect(await main(['reconcile', ...monthOf(days), '--csv'], { ...terminal, env })).toBe(0)
    stdout.end()
    const csv = await printed
    expect(csv.subarray(0, 8).toString('hex')).toBe(`efbbbf${Buffer.from('type,').toString('hex')}`)
    const records: Named[] = parse(csv, { bom: true, columns: true })
    // An apostrophe before an amount would make it a text, which is in no sum.
    const amounts = 'brought_forward paid settled fee tax net refunded resolved carried_forward awaited owed'.split(' ')
    for (const record of records) {
      for (const name of amounts) expect(record[name]).toMatch(/^(-?\d+\.\d\d)?$/)
      for (const name of ['utr', 'settlement_utr']) expect(record[name]).not.toMatch(/^\d+$/)
    }
    for (const name of ['carried_forward', 'owed']) expect(records.some((one) => one[name]?.startsWith('-'))).toBe(true)
  })

  it('the report of a partner consists of the reports of its merchants', async () => {
    const { pid } = await newPartner(db, 'M1_NAMED', 'M3_SUMS')
    const { merchants, total } = await json('--pid', pid, ...monthOf(days))
    const all = await json(...monthOf(days))
    expect(merchants).toEqual(all.merchants.filter(({ mid }: Book) => mid === 'M1_NAMED' || mid === 'M3_SUMS'))
    expect(total).toEqual(
      totalOf(
        months.ledgers.filter(({ mid }) => mid === 'M1_NAMED' || mid === 'M3_SUMS'),
        days,
      ),
    )
  })
})

describe('a payout', () => {
  it('a payout of rows is found by its UTR in either case and by its bank reference, with each payment', async () => {
    const { rows } = await db.query<{ utr: string; paymentUtr: string; reference: string }>(
      `select utr, payment_utr as "paymentUtr", bank_reference_number as reference
         from settlements where mid = 'M4_TURNS' and payment_utr is not null order by initiated_at, utr limit 1`,
    )
    const [{ utr, paymentUtr, reference }] = rows as [(typeof rows)[number]]
    const found = await json('--payout', utr)
    expect(found.settlements).toMatchObject([
      { mid: 'M4_TURNS', utr: paymentUtr, settlementUtr: utr, status: 'SUCCESS' },
    ])
    expect(found.payments).toEqual([])
    const [{ paid, gross, orderId, net }] = found.settlements
    expect([gross, found.total.net, found.total.paid]).toEqual([paid, net, paid])
    const { rows: orders } = await db.query(`select utr from payments where mid = 'M4_TURNS' and order_id = $1`, [
      orderId,
    ])
    expect(orders).toEqual([{ utr: paymentUtr }])
    const text = (await ops('--payout', utr)).stdout
    expect(text.split('\n')).toHaveLength(4)
    for (const one of [orderId, utr, grouped(paid), grouped(net)]) expect(text).toContain(one)
    const all = await json('--payout', reference, '--mid', 'M4_TURNS')
    expect(all.settlements.length).toBeGreaterThan(1)
    const own = await db.query(`select utr from settlements where mid = 'M2_OWN' and utr <> upper(utr) limit 1`)
    const lower = own.rows[0].utr
    for (const spelt of [lower, lower.toUpperCase()]) {
      expect((await json('--payout', spelt)).settlements).toMatchObject([{ mid: 'M2_OWN', settlementUtr: lower }])
    }
    expect((await ops('--payout', 'NOBODYS1')).stdout).toBe(
      'no settlement has the UTR or the bank reference NOBODYS1\n',
    )
  })

  it('a payout of a sum is shown with the payments that it settles, and never to another partner', async () => {
    const { rows } = await db.query<{ utr: string; reference: string; net: string }>(
      `select utr, bank_reference_number as reference, (amount_paise * 0.01)::text as net
         from settlements where mid = 'M5_SINGLE' and utr = 'S520260127'`,
    )
    const [{ utr, reference, net }] = rows as [(typeof rows)[number]]
    const ledger = months.ledgers.find(({ mid }) => mid === 'M5_SINGLE') as Ledger
    const due = ledger.payments.filter((one) => one.due === '2026-01-27' && one.bySums)
    const early = ledger.early.filter((one) => one.due === '2026-01-27').reduce((sum, { amount }) => sum + amount, 0)
    const sum = due.reduce((sum, { amount }) => sum + amount, 0)
    const parts = [
      [utr, [utr], sum - early],
      // A part was paid while the bank was closed.
      [reference, [`${utr}A`, utr], sum],
    ] as const
    for (const [name, settlementUtrs, gross] of parts) {
      const found = await json('--payout', name, '--mid', 'M5_SINGLE')
      expect(found.settlements.map(({ settlementUtr }: Named) => settlementUtr)).toEqual(settlementUtrs)
      expect(found.settlements.at(-1)).toMatchObject({ orderId: null, paid: null, net })
      expect(found.payments.map(({ paid }: Named) => paid).sort()).toEqual(
        due.map(({ amount }) => rupees(amount)).sort(),
      )
      expect(found.total).toMatchObject({ gross: rupees(gross), net: rupees(gross - 590), fee: '5.00', tax: '0.90' })
      const text = (await ops('--payout', name, '--mid', 'M5_SINGLE')).stdout
      expect(text).toContain(`rows that name no payment are for these ${due.length}, together ${grouped(rupees(sum))}:`)
    }
    const { pid } = await newPartner(db, 'M1_NAMED')
    expect(await json('--payout', utr, '--pid', pid)).toMatchObject({ settlements: [], payments: [] })
  })
})

it('a difference is found by its id alone, as in the report of the month', { timeout: 900_000 }, async () => {
  for (const days of MONTHS) {
    const found: FoundDifference[] = []
    for (const one of await findingsOf(db, { ...days, now: new Date() })) if (one.type === 'difference') found.push(one)
    const asked = found.filter(
      ({ kind, mid }, index) => kind.startsWith('sum') || mid === 'M9_FAULTS' || index % 17 === 0,
    )
    const step = Math.ceil(asked.length / LOOKED_UP)
    for (const { type: _, merchantOrderId: __, ...one } of asked.filter((_, index) => index % step === 0)) {
      expect(await findDiscrepancy(db, one.id, new Date())).toEqual(one)
    }
  }
})

it('every month balances once all faults are resolved, and only payments not yet due are carried forward', {
  timeout: 900_000,
}, async () => {
  const payments = opsOn(() => url, ['payments']).json
  await payments('resolve', '--all', '--from', MONTHS[0].from, '--to', MONTHS[2].to, '--reason', 'refunded', '--yes')
  const differences: FoundDifference[] = []
  for (const one of await findingsOf(db, { from: MONTHS[0].from, to: MONTHS[2].to, now: new Date() })) {
    if (one.type === 'difference' && one.resolution === null) differences.push(one)
  }
  const [first, ...others] = differences as [FoundDifference]
  // By the command; the others by what it calls, because it reads the books of all merchants each time.
  const { text: _, ...ended } = await json('resolve', '--difference', first.id, '--reason', 'paid by hand')
  expect(ended).toMatchObject({ id: first.id, owed: rupees(Number(first.owed)), resolution: 'paid by hand' })
  const again = await ops('resolve', '--difference', first.id, '--reason', 'paid by hand')
  expect(again).toMatchObject({ code: 1, stderr: `ops: ${first.id} was resolved already: paid by hand\n` })
  for (const one of others) {
    expect(await enterResolution(db, one, { reason: 'looked into', by: 'asha', now: new Date() })).toBe(true)
  }
  let brought = Object.fromEntries(MERCHANTS.map(({ mid }) => [mid, '0.00']))
  for (const days of MONTHS) {
    const { merchants, balances, total } = await json(...monthOf(days))
    expect([balances, total.differences, total.openExceptions]).toEqual([true, 0, 0])
    for (const { mid, total } of merchants as Book[]) {
      const ledger = months.ledgers.find((one) => one.mid === mid) as Ledger
      expect(total.carriedForward, mid).toBe(rupees(notYetDue(ledger, days.to)))
      expect(total.broughtForward, mid).toBe(brought[mid])
    }
    brought = Object.fromEntries((merchants as Book[]).map(({ mid, total }) => [mid, total.carriedForward as string]))
  }
})

it.runIf(isGenerated())(
  'the report of months without settlements is made with less memory than its differences need',
  { timeout: 900_000 },
  async () => {
    // One of each merchant remains, which names a payment.
    await db.query(
      `delete from settlements s
        where (mid, utr) not in (select mid, min(utr) from settlements where amount_paise > 0 group by mid)`,
    )
    await db.query('analyze settlements')
    const args = [`--max-old-space-size=${HEAP_MB}`, ...TYPESCRIPT, 'src/operator/cli/ops.ts']
    const asked = ['reconcile', '--from', MONTHS[0].from, '--to', MONTHS[2].to]
    const env = { ...process.env, DATABASE_URL: url }
    const { stdout } = await runToEnd(process.execPath, [...args, ...asked], { env })
    const byRow = months.ledgers.filter(({ file }) => file === 'named' || file === 'own')
    const { payments } = sumOf(byRow, MONTHS[0].from, MONTHS[2].to)
    expect(stdout.split(/ (?:missing settlement|reversal) /).length).toBeGreaterThan(payments * 0.97)
    expect(stdout.trimEnd().split('\n').at(-1)).toContain('does not balance')
  },
)
