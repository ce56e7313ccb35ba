import { expect } from 'vitest'
import { newUtr } from '../../support/acquirer.ts'
import { bankOn, newReference } from '../../support/bank-statements.ts'
import { reconEvent, serveRecon } from '../../support/cashfree-recon.ts'
import { opsOn } from '../../support/ops.ts'
import { storePaidOrder } from '../../support/paid-orders.ts'
import { newMerchant } from '../../support/service.ts'
import { type Figures, type Generator, makeChange, type Subject, type World } from './history.ts'
import { money, rowOf } from './orders.ts'
import type { Difference } from './tables.ts'

type SettlementRow = { utr: string; rupees: number; reference: string; status?: string }

let lastFile = 0
/** Returns a file with a name that no other one has. */
const fileOf = (text: string) => new File([text], `day-${++lastFile}.csv`)

const settlementFile = (mid: string, rows: readonly SettlementRow[]) =>
  fileOf(
    [
      'mid,amount,utr,bank_reference_number,status,initiation_date',
      ...rows.map(({ utr, rupees, reference, status = 'SUCCESS' }) =>
        [mid, rupees, utr, reference, status, '2026-08-04 09:00:00'].join(),
      ),
      '',
    ].join('\n'),
  )

const newRow = (rupees: number): SettlementRow => ({ utr: newUtr(), rupees, reference: newReference() })

const importRows = (world: World, mid: string, ...rows: SettlementRow[]) =>
  makeChange(world, 'settlements import', { file: settlementFile(mid, rows) })

/** Imports rows, which must succeed, and returns the number of the import. */
async function imported(world: World, mid: string, ...rows: SettlementRow[]): Promise<string> {
  expect((await importRows(world, mid, ...rows)).status).toBe(303)
  return newestOf(world, 'settlement_imports')
}

async function newestOf(world: World, table: 'settlement_imports' | 'statement_imports'): Promise<string> {
  const newest = await rowOf<{ last: number }>(world, `select max(import_id) as last from ${table}`, [])
  return String(newest?.last)
}

const undo = async (world: World) =>
  makeChange(world, 'settlements undo', { import: await newestOf(world, 'settlement_imports') })

const STORED = `
  select utr, status, exists (select from payments p where p.mid = s.mid and p.utr = s.utr) as known
    from settlements s
   where s.mid = $1`
const PAID = 'select utr from payments where mid = $1 and utr = any ($2)'

/** Returns the figures of an import of rows, of which a stored one may change from PENDING to SUCCESS. */
async function figuresOfRows({ service: { db } }: World, mid: string, rows: readonly SettlementRow[]) {
  const { rows: stored } = await db.query<{ utr: string; status: string }>(STORED, [mid])
  const { rows: paid } = await db.query<{ utr: string }>(PAID, [mid, rows.map(({ utr }) => utr)])
  const storedAs = ({ utr }: SettlementRow) => stored.find((one) => one.utr === utr)?.status
  const inserted = rows.filter((row) => storedAs(row) === undefined)
  const updated = rows.filter((row) => storedAs(row) === 'PENDING' && row.status !== 'PENDING')
  const unknown = [...inserted, ...updated].filter(({ utr }) => !paid.some((one) => one.utr === utr))
  // A file may repeat a stored settlement with its earlier status, which changes nothing.
  return { inserted, updated, unchanged: rows.length - inserted.length - updated.length, unknown: unknown.length }
}

const sumOf = (rows: readonly SettlementRow[]) => rows.reduce((sum, { rupees }) => sum + rupees * 100, 0)

/** Expects that an import has stored the numbers and sums that the page has shown. */
function expectImported(
  { shown, person }: { shown: { amount: string; fields: Record<string, string> }; person: string },
  difference: Difference,
) {
  const { gone = [], added = [] } = difference.settlements ?? {}
  const before = new Set(gone.map(({ utr }) => utr))
  const inserted = added.filter(({ utr }) => !before.has(utr))
  const amount = money(inserted.reduce((sum, { amount_paise }) => sum + amount_paise, 0))
  const { fields } = shown
  expect([String(inserted.length), String(before.size), amount]).toEqual([
    fields.inserted,
    fields.updated,
    fields['inserted amount'],
  ])
  const imports = difference.settlement_imports
  expect(imports?.gone).toEqual([])
  const own = imports?.added.filter(({ imported_by }) => imported_by === person) ?? []
  expect(own).toMatchObject([{ inserted: inserted.length, updated: before.size, matched: Number(fields.matched) }])
  const [stored] = own
  expect([String(stored?.unchanged), money(stored?.amount_paise), money(stored?.inserted_amount_paise)]).toEqual([
    fields.unchanged,
    shown.amount,
    fields['inserted amount'],
  ])
}

const importSettlements: Generator = {
  share: 90,
  async create(world) {
    const { service, pick } = world
    const { mid } = await newMerchant(service.db)
    const rows = pick([[100], [100, 250], [100, 250.5, 7]]).map(newRow)
    const pays = (row: SettlementRow) =>
      storePaidOrder(service.db, { mid, utr: row.utr, paidAt: new Date('2026-08-03T06:00:00Z') }).catch(() => undefined)
    const [first] = rows as [SettlementRow]
    if (pick([true, false])) await pays(first)
    if (pick([true, false, false])) await imported(world, mid, { ...first, status: 'PENDING' })
    return {
      ...{ mid, fields: { file: settlementFile(mid, rows) } },
      acts: {
        operatorImports: () => importRows(world, mid, ...rows),
        operatorImportsOne: () => importRows(world, mid, pick(rows)),
        operatorImportsPending: () => importRows(world, mid, { ...pick(rows), status: 'PENDING' }),
        operatorImportsOther: () => importRows(world, mid, newRow(10)),
        operatorImportsOtherAmount: () => importRows(world, mid, { ...first, rupees: 99 }),
        operatorUndoes: () => undo(world),
        paymentIsReported: () => pays(pick(rows)),
      },
      async figures() {
        const { inserted, updated, unchanged, unknown } = await figuresOfRows(world, mid, rows)
        const contradicts = await rowOf(
          world,
          'select from settlements where mid = $1 and utr = $2 and amount_paise <> $3',
          [mid, first.utr, first.rupees * 100],
        )
        if (contradicts) return undefined
        const counts = { inserted: inserted.length, unchanged, updated: updated.length, matched: 0, unknown }
        return {
          amount: money(sumOf(rows)) as string,
          fields: {
            ...Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)])),
            'inserted amount': money(sumOf(inserted)),
          },
        }
      },
      expectStored: expectImported,
    }
  },
}

const pull: Generator = {
  share: 60,
  async create(world) {
    const { service, bank, pick } = world
    const { mid } = await newMerchant(service.db)
    const newOrder = async () => {
      const utr = newUtr()
      const orderId = await storePaidOrder(service.db, { mid, utr, paidAt: new Date('2026-01-14T06:30:00Z') })
      await service.db.query(
        `insert into acquirer_intents
           (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
         values ($1, $2, 'cashfree', 'cf', $2, 'tr', 'upi://pay', 0)`,
        [mid, orderId],
      )
      return { orderId, row: { utr, rupees: 200, reference: 'PGI45406' } }
    }
    type Order = Awaited<ReturnType<typeof newOrder>>
    const orders = [await newOrder(), await newOrder(), await newOrder()]
    let listed = orders.slice(0, pick([1, 2]))
    let others = 0
    const serve = (known: Order[], unknown: number) => {
      ;[listed, others] = [known, unknown]
      const events = listed.map(({ orderId, row }) =>
        reconEvent('PAYMENT', { order_details: { order_id: orderId }, payment_details: { bank_reference: row.utr } }),
      )
      serveRecon(bank, { data: [...events, ...Array.from({ length: others }, () => reconEvent('PAYMENT'))] })
    }
    serve(listed, pick([0, 1]))
    const fields = { acquirer: 'cashfree', from: '2026-01-14', to: '2026-01-15' }
    return {
      ...{ mid, fields },
      acts: {
        acquirerListsMore: async () => serve(orders.slice(0, pick([1, 2, 3])), others),
        acquirerListsUnknown: async () => serve(listed, pick([0, 1, 2])),
        operatorPulls: () => makeChange(world, 'settlements pull', fields),
        operatorImports: () => importRows(world, mid, newRow(10)),
        operatorUndoes: () => undo(world),
      },
      async figures() {
        const rows = listed.map(({ row }) => row)
        const { inserted, updated, unchanged } = await figuresOfRows(world, mid, rows)
        const counts = {
          inserted: inserted.length,
          unchanged,
          updated: updated.length,
          matched: 0,
          'in closed months': 0,
        }
        return {
          amount: money(sumOf(rows)) as string,
          fields: {
            ...Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)])),
            'inserted amount': money(sumOf(inserted)),
            'not stored': others === 0 ? null : `${others} of unknown orders (${money(others * 20_000)})`,
          },
        }
      },
      expectStored: expectImported,
    }
  },
}

const UNDO = `
  select i.undone_at is not null
         or exists (select from settlement_import_bases b
                      join settlement_imports l on l.import_id = b.import_id and l.undone_at is null
                                               and l.inserted + l.updated + l.matched > 0
                     where b.on_import_id = i.import_id) as rejected,
         (select count(*) from settlement_versions v where v.replaced_by_import_id = $1 and not v.undone) as restored,
         (select count(*) from settlements s where s.import_id = $1) as stored
    from settlement_imports i
   where i.import_id = $1`

const undoSettlements: Generator = {
  share: 60,
  async create(world) {
    const { service, pick } = world
    const { mid } = await newMerchant(service.db)
    const rows = [newRow(100), newRow(250)]
    const [first, second] = rows as [SettlementRow, SettlementRow]
    if (pick([true, false])) await imported(world, mid, { ...first, status: 'PENDING' })
    const number = await imported(world, mid, ...rows.slice(0, pick([1, 2])))
    return {
      ...{ mid, fields: { import: number } },
      acts: {
        operatorUndoes: () => makeChange(world, 'settlements undo', { import: number }),
        operatorUndoesNewest: () => undo(world),
        operatorRepeats: () => importRows(world, mid, first),
        operatorImportsMore: () => importRows(world, mid, first, newRow(7)),
        operatorImportsOther: () => importRows(world, mid, second, newRow(9)),
        paymentIsReported: () =>
          storePaidOrder(service.db, { mid, utr: newUtr(), paidAt: new Date('2026-08-03T06:00:00Z') }),
      },
      async figures() {
        type Found = { rejected: boolean; restored: number; stored: number }
        const found = await rowOf<Found>(world, UNDO, [Number(number)])
        if (!found || found.rejected) return undefined
        return { fields: { removed: String(found.stored - found.restored), restored: String(found.restored) } }
      },
      expectStored({ shown, person }, difference) {
        const { gone = [], added = [] } = difference.settlements ?? {}
        expect([String(gone.length - added.length), String(added.length)]).toEqual([
          shown.fields.removed,
          shown.fields.restored,
        ])
        expect(difference.settlement_imports?.added).toMatchObject([{ import_id: Number(number), undone_by: person }])
      },
    }
  },
}

type Line = { day: string; reference: string; rupees: number }

/** A statement of August 2026 in the layout `bank`; its lines are so old that only those of payouts are stored. */
const statementFile = (lines: readonly Line[]) =>
  fileOf(
    [
      'Date,Text,Amount',
      ...lines.map(({ day, reference, rupees }) => `${day}/08/2026,NEFT ${reference},${rupees}`),
      '',
    ].join('\n'),
  )

const statementFields = (mid: string, lines: readonly Line[]) => ({
  ...{ file: statementFile(lines), layout: 'bank', mid, from: '2026-08-01', to: '2026-08-31' },
})

const PAYOUTS = `
  select bank_reference_number as reference, sum(amount_paise)::bigint as amount, min(utr) as utr
    from settlements
   where mid = $1 and status = 'SUCCESS'
   group by bank_reference_number`

type PaidOut = { reference: string; amount: number; utr: string }

async function payoutsOf({ service: { db } }: World, mid: string): Promise<PaidOut[]> {
  return (await db.query<PaidOut>(PAYOUTS, [mid])).rows
}

const NO_BALANCES = 'the file has no balances, so missing lines cannot be detected'

const importStatement: Generator = {
  share: 60,
  async create(world) {
    const { service, pick } = world
    const { mid } = await newMerchant(service.db)
    const payouts = [101, 202, 303].map((rupees) => ({ ...newRow(rupees) }))
    const lines = payouts
      .slice(0, pick([2, 3]))
      .map(({ reference, rupees }, index) => ({ day: `0${index + 5}`, reference, rupees: rupees + pick([0, 1000]) }))
    await imported(world, mid, ...payouts.slice(0, pick([1, 2])))
    const fields = statementFields(mid, lines)
    return {
      ...{ mid, fields },
      acts: {
        operatorImportsPayout: () => importRows(world, mid, pick(payouts)),
        operatorImportsAmount: () => importRows(world, mid, newRow(pick(lines).rupees)),
        operatorUndoes: () => undo(world),
        operatorImports: () => makeChange(world, 'statements import', fields),
      },
      async figures(): Promise<Figures> {
        const known = await payoutsOf(world, mid)
        const kept = lines.filter(({ reference, rupees }) =>
          known.some((one) => one.reference === reference || one.amount === rupees * 100),
        )
        const credited = lines.reduce((sum, { rupees }) => sum + rupees * 100, 0)
        return {
          notes: [NO_BALANCES],
          fields: {
            ...{ kept: String(kept.length), 'covers from': '2026-08-01', lines: String(lines.length) },
            ...{ credits: String(lines.length), credited: money(credited), debits: '0', debited: money(0) },
          },
        }
      },
      expectStored({ shown }, { statement_imports, statement_lines }) {
        for (const one of statement_imports?.added ?? []) {
          expect(one).toMatchObject({ stored: Number(shown.fields.kept), covers_from: shown.fields['covers from'] })
          expect(one.covers_to).toBeNull()
          const stored = statement_lines?.added.filter(({ import_id }) => import_id === one.import_id) ?? []
          expect(String(stored.length)).toBe(shown.fields.kept)
        }
        expect(statement_imports?.added.length).toBeGreaterThan(0)
      },
    }
  },
}

/** Creates a payout, and a statement with its receipt without a reference, and returns both. */
async function newStatement(world: World, mid: string) {
  const payout = newRow(1004)
  await imported(world, mid, payout)
  const line = { day: '05', reference: world.pick(['', newReference()]), rupees: 1004 }
  const { status } = await makeChange(world, 'statements import', statementFields(mid, [line]))
  expect(status).toBe(303)
  return { payout, line, statement: await newestOf(world, 'statement_imports') }
}

const STATEMENT = `
  select i.undone_at is not null as undone,
         (select count(*) from statement_lines l where l.import_id = i.import_id) as lines
    from statement_imports i
   where i.import_id = $1`

const undoStatement: Generator = {
  share: 40,
  async create(world) {
    const { mid } = await newMerchant(world.service.db)
    const { payout, line, statement } = await newStatement(world, mid)
    const match = { payout: payout.reference, statement, line: '2', reason: 'no reference' }
    return {
      ...{ mid, fields: { statement } },
      acts: {
        operatorUndoes: () => makeChange(world, 'statements undo', { statement }),
        operatorUndoesPayout: () => undo(world),
        operatorImports: () => makeChange(world, 'statements import', statementFields(mid, [line])),
        operatorImportsNewer: () =>
          makeChange(world, 'statements import', statementFields(mid, [{ ...line, day: '09' }])),
        operatorMatches: () => makeChange(world, 'statements match', match),
      },
      async figures() {
        const found = await rowOf<{ undone: boolean; lines: number }>(world, STATEMENT, [Number(statement)])
        return !found || found.undone ? undefined : { fields: { lines: String(found.lines) } }
      },
      expectStored({ shown, person }, { statement_imports, statement_lines }) {
        expect(String(statement_lines?.gone.length ?? 0)).toBe(shown.fields.lines)
        expect(statement_imports?.added).toMatchObject([{ import_id: Number(statement), undone_by: person }])
      },
    }
  },
}

const LINE = `
  select l.day::text as day, l.amount_paise as amount, l.refs, l.matched_payout as matched
    from statement_lines l
   where l.import_id = $1 and l.line = 2`

type StoredLine = { day: string; amount: number; refs: string[]; matched: string | null }

const matchStatement: Generator = {
  share: 80,
  async create(world) {
    const { pick } = world
    const { mid } = await newMerchant(world.service.db)
    const { payout, line, statement } = await newStatement(world, mid)
    const other = newRow(900)
    await imported(world, mid, other)
    const place = { statement, line: '2', reason: 'the bank printed no reference' }
    const toPayout = { ...place, payout: payout.reference }
    const isForced = pick([true, false])
    if (pick([true, false, false])) expect((await makeChange(world, 'statements match', toPayout)).status).toBe(303)
    const fields = { ...toPayout, ...(isForced && { force: 'on' }) }
    const figures: Subject['figures'] = async () => {
      const stored = await rowOf<StoredLine>(world, LINE, [Number(statement)])
      const payouts = await payoutsOf(world, mid)
      const paid = payouts.find(({ reference }) => reference === payout.reference)
      if (stored === undefined) return undefined
      const { day, amount, matched } = stored
      const shown = { day, references: stored.refs.join(' ') || null, 'matched with': matched }
      if (paid === undefined) return undefined
      const doubts = paid.amount !== amount || payouts.some((one) => one !== paid && one.reference === matched)
      if (doubts && !isForced) return undefined
      return { amount: money(amount) as string, fields: { ...shown, 'amount of the payout': money(paid.amount) } }
    }
    return {
      ...{ mid, fields, figures },
      acts: {
        operatorMatches: () => makeChange(world, 'statements match', toPayout),
        operatorMatchesOther: () =>
          makeChange(world, 'statements match', { ...place, payout: other.reference, force: 'on' }),
        operatorRemovesMatch: () =>
          opsOn(() => world.service.databaseUrl).ops(
            ...['statements', 'match', '--statement', statement, '--line', '2', '--none', '--reason', 'mistaken'],
          ),
        operatorUndoes: () => makeChange(world, 'statements undo', { statement }),
        payoutGrows: () => importRows(world, mid, { ...newRow(50), reference: payout.reference }),
        payoutIsUndone: () => undo(world),
        operatorImportsOther: () =>
          makeChange(world, 'statements import', statementFields(mid, [{ ...line, day: '09' }])),
      },
      expectStored({ shown }, { statement_lines }) {
        for (const row of statement_lines?.added ?? [])
          expect([row.matched_payout, money(row.amount_paise), row.day]).toEqual([
            payout.reference,
            shown.amount,
            shown.fields.day,
          ])
        const replaced = shown.fields['matched with'] ?? null
        for (const row of statement_lines?.gone ?? []) expect(row.matched_payout).toBe(replaced)
        if (replaced !== payout.reference) expect(statement_lines?.added.length).toBeGreaterThan(0)
      },
    }
  },
}

/** Adds the layout of the bank's statements, which the histories import. */
export const addLayout = ({ service }: Pick<World, 'service'>) =>
  bankOn(() => service.databaseUrl).layout('bank', 'day=Date', 'reference=Text', 'amount=Amount')

export const FILES: Record<string, Generator> = {
  'settlements import': importSettlements,
  'settlements pull': pull,
  'settlements undo': undoSettlements,
  'statements import': importStatement,
  'statements undo': undoStatement,
  'statements match': matchStatement,
}
