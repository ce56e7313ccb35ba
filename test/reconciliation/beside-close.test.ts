import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readClosedBase } from '../../src/books/closing/closed-items.ts'
import { readSnapshot } from '../../src/books/reading/snapshot.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import { STORING_LIMIT_MS } from '../../src/gateway/payments/outcome.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { readDatabaseTime } from '../../src/platform/db/clock.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps, runOpsByClocks } from '../support/ops.ts'
import type { Outcome } from '../support/processes.ts'
import { newMerchant } from '../support/service.ts'
import { countBlocked, until, untilBlocked } from '../support/wait.ts'
import { readSince } from './read-since.ts'
import { importRows, istMoment, type Row, storeReports } from './rows.ts'

const IN_OCTOBER = istMoment('2026-10-31', '23:59:59')
const IN_NOVEMBER = istMoment('2026-11-01', '00:00:05')
const CLOSE = ['reconcile', 'close', '--month', '2026-10', '--yes', '--json']

let url: string
let db: Database
let count = 0

// Each test needs its own database, since a month can be closed only once.
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  vi.useFakeTimers({ toFake: ['Date'], now: IN_OCTOBER })
})
afterEach(() => void vi.useRealTimers())

const at = (day: string) => istMoment(day, '12:00:00')

/** Stores an order of ₹200 of this day, paid by `utr`; without `utr`, unpaid. Returns its orderId. */
async function order(mid: string, day: string, utr?: string): Promise<string> {
  count += 1
  const orderId = orderIdsBegin(at(day)) + String(count).padStart(20, '0')
  await storeReports(db, {
    intents: [[mid, orderId, 200, 0, at(day), utr ? 'SUCCESS' : 'PENDING', utr]],
    payments: utr ? [[mid, utr, orderId, 200_00, at(day), at(day), 'first', 'notification']] : [],
    exceptions: [],
  })
  return orderId
}

/** Stores an exception of ₹200 and returns its id. */
async function except(mid: string, kind: string, utr: string, orderId: string): Promise<string> {
  const exceptions = [[mid, orderId, kind, utr, '200.00', at('2026-10-05')]]
  await storeReports(db, { intents: [], payments: [], exceptions })
  const { rows } = await db.query('select exception_id as id from payment_exceptions where mid = $1', [mid])
  return rows[0].id
}

const settle = (mid: string, day: string, row: Partial<Row> & { utr: string }) =>
  importRows(db, [{ mid, amount: 200_00, day, ...row }], at(day))

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date,payment_utr'

/** A command that changes what reports read, and the table that it writes. */
type Change = { table: string; prepare: (mid: string) => Promise<{ args: string[]; input?: string }> }

const CHANGES: Record<string, Change> = {
  'reconcile resolve': {
    table: 'difference_resolutions',
    async prepare(mid) {
      await order(mid, '2026-10-05', 'R1')
      await settle(mid, '2026-10-06', { utr: 'S0', paymentUtr: 'R0' })
      const days = ['--from', '2026-10-05', '--to', '2026-10-06', '--mid', mid]
      const { stdout } = await runOps(url, ['reconcile', ...days, '--json'])
      const [{ id }] = JSON.parse(stdout).merchants[0].differences
      return { args: ['reconcile', 'resolve', '--difference', id, '--reason', 'paid by hand'] }
    },
  },
  'settlements import': {
    table: 'settlement_imports',
    async prepare(mid) {
      await order(mid, '2026-10-05', 'I1')
      const input = `${HEADER}\n${mid},200,S1,BRN1,SUCCESS,2026-10-06T11:00:00+05:30,I1\n`
      return { args: ['settlements', 'import', '-'], input }
    },
  },
  'settlements undo': {
    table: 'settlement_versions',
    async prepare(mid) {
      await order(mid, '2026-10-05', 'U1')
      const imported = await settle(mid, '2026-10-06', { utr: 'S1', paymentUtr: 'U1' })
      return { args: ['settlements', 'undo', '--import', String(imported)] }
    },
  },
  'payments confirm': {
    table: 'payments',
    async prepare(mid) {
      const orderId = await order(mid, '2026-10-31')
      return { args: ['payments', 'confirm', '--order-id', orderId, '--utr', '523504870405', '--amount', '200'] }
    },
  },
  'payments import': {
    table: 'payments',
    async prepare(mid) {
      const orderIds = [await order(mid, '2026-10-31'), 'unknown']
      const lines = orderIds.map((id, at) => `${id},SUCCESS,52350487040${at},200,2026-10-31 20:00:00\n`)
      return { args: ['payments', 'import', '-'], input: `order_id,status,utr,amount,paid_at\n${lines.join('')}` }
    },
  },
  'payments resolve': {
    table: 'payment_resolutions',
    async prepare(mid) {
      await settle(mid, '2026-10-06', { utr: 'S0', paymentUtr: 'E0' })
      const orderId = await order(mid, '2026-10-05', 'E1')
      const exception = await except(mid, 'failure after success', 'E1', orderId)
      return { args: ['payments', 'resolve', '--exception', exception, '--reason', 'reversed'] }
    },
  },
  'payments resolve --all': {
    table: 'payment_resolutions',
    async prepare(mid) {
      await settle(mid, '2026-10-06', { utr: 'X1' })
      await except(mid, 'amount differs', 'X1', 'gone')
      return { args: ['payments', 'resolve', '--all', '--mid', mid, '--yes', '--reason', 'refunded'] }
    },
  },
  'refunds done': {
    table: 'refunds',
    async prepare(mid) {
      const orderId = await order(mid, '2026-10-05', 'F1')
      const refund = orderId.replace(/^./, 'f')
      await db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                              status)
         values ($1, $2, $2, $3, 'F1', 20000, 'cold', 'direct', 'asha', $4, 'PENDING')`,
        [mid, refund, orderId, at('2026-10-06')],
      )
      return { args: ['refunds', 'done', '--refund', refund, '--reference', '523504870777'] }
    },
  },
  'refunds returned': {
    table: 'refund_returns',
    async prepare(mid) {
      const orderId = await order(mid, '2026-10-05', 'G1')
      await settle(mid, '2026-10-06', { utr: 'S1', paymentUtr: 'G1' })
      await db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                              status, ended_at)
         values ($1, $2, $2, $2, 'G1', 20000, 'cold', 'direct', 'asha', $3, 'SUCCESS', $3)`,
        [mid, orderId, at('2026-10-06')],
      )
      return {
        args: ['refunds', 'returned', '--refund', orderId, '--reference', '523504870777', '--reason', 'closed'],
      }
    },
  },
  'bank-holidays remove': {
    table: 'bank_holiday_changes',
    // The payout of the holiday and the day before is one total. Without the holiday, it is two payouts.
    async prepare(mid) {
      const added = [istMoment('2026-10-01', '12:00:00')]
      await db.query(`insert into bank_holiday_changes values ('2026-10-14', 1, 'by mistake', 'asha', $1)`, added)
      for (const day of ['2026-10-13', '2026-10-14']) await order(mid, day, `H${day.slice(-2)}`)
      await settle(mid, '2026-10-15', { utr: 'TOTAL1', amount: 400_00 })
      return { args: ['bank-holidays', 'remove', '--day', '2026-10-14'] }
    },
  },
  'bank-holidays add': {
    table: 'bank_holiday_changes',
    prepare: async () => ({ args: ['bank-holidays', 'add', '--day', '2026-10-20', '--name', 'Strike'] }),
  },
  'bank-holidays import': {
    table: 'bank_holiday_changes',
    prepare: async () => ({ args: ['bank-holidays', 'import', '-'], input: 'day,name\n2026-10-21,Strike\n' }),
  },
}

/** Changes that are ready to start. Each has its own merchant. */
type Prepared = { mids: string[]; tables: string[]; start: () => Promise<Outcome>[] }

async function prepare(names: readonly string[]): Promise<Prepared> {
  const commands: { args: string[]; input?: string }[] = []
  const unchanged = await newMerchant(db)
  await order(unchanged.mid, '2026-10-05', 'OPEN1')
  const mids = [unchanged.mid]
  for (const name of names) {
    const { mid } = await newMerchant(db)
    mids.push(mid)
    commands.push(await (CHANGES[name] as Change).prepare(mid))
  }
  const tables = [...new Set(names.map((name) => (CHANGES[name] as Change).table))]
  return { mids, tables, start: () => commands.map(({ args, input }) => runOps(url, args, input)) }
}

/** Prevents writes to these tables until the returned function is called. */
async function lockTables(tables: readonly string[], mode = 'share'): Promise<() => Promise<void>> {
  const client = await db.connect()
  await client.query(`begin; lock table ${tables.join(', ')} in ${mode} mode`)
  return async () => {
    await client.query('rollback')
    client.release()
  }
}

type Pauses = { whileLocked?: () => Promise<unknown>; whileWaiting?: () => Promise<unknown> }

/** Closes October in November, running the functions in the two pauses of the close. Each pause advances the clock. */
async function close({ whileLocked, whileWaiting }: Pauses = {}): Promise<Outcome> {
  vi.setSystemTime(IN_NOVEMBER)
  let pauses = 0
  const sleep = async (ms: number) => {
    pauses += 1
    await (ms === STORING_LIMIT_MS ? whileWaiting : whileLocked)?.()
    vi.setSystemTime(Date.now() + ms)
  }
  const outcome = await runOpsByClocks(url, CLOSE, { sleep })
  expect(pauses).toBe(2)
  return outcome
}

type Play = (changes: Prepared) => Promise<Outcome[]>

/** The orders in which changes and a close begin and commit. */
const ORDERS: Record<string, Play> = {
  'are stored before the close': async ({ start }) => [...(await Promise.all(start())), await close()],

  'begin before the close and are stored after it begins': async ({ tables, start }) => {
    const unlock = await lockTables(tables)
    const started = start()
    await untilBlocked(db, started.length)
    let isClosed = false
    const closing = close().finally(() => (isClosed = true))
    await untilBlocked(db, started.length + 1, () => isClosed)
    await unlock()
    return Promise.all([...started, closing])
  },

  'wait for the locks of the close': async ({ start }) => {
    let started: Promise<Outcome>[] = []
    const whileLocked = async () => {
      started = start()
      await untilBlocked(db, started.length)
    }
    const closed = await close({ whileLocked })
    return [...(await Promise.all(started)), closed]
  },

  'wait for the locks of the close and are stored after it': async ({ tables, start }) => {
    const unlock = await lockTables(tables)
    let started: Promise<Outcome>[] = []
    const whileLocked = async () => {
      started = start()
      await untilBlocked(db, started.length)
    }
    const closed = await close({ whileLocked, whileWaiting: () => untilBlocked(db, started.length) })
    await unlock()
    return [...(await Promise.all(started)), closed]
  },

  'are stored while the close waits for the service': async ({ start }) => {
    let outcomes: Outcome[] = []
    const closed = await close({ whileWaiting: async () => (outcomes = await Promise.all(start())) })
    return [...outcomes, closed]
  },

  'begin while the close waits for the service and are stored after it': async ({ tables, start }) => {
    let started: Promise<Outcome>[] = []
    let unlock = async () => {}
    const whileWaiting = async () => {
      unlock = await lockTables(tables)
      started = start()
      await untilBlocked(db, started.length)
    }
    const closed = await close({ whileWaiting })
    await unlock()
    return [...(await Promise.all(started)), closed]
  },

  'are stored after the close': async ({ start }) => [await close(), ...(await Promise.all(start()))],
}

/** In this order each change is alone, because the close must wait for it, not for another one. */
const ALONE = 'begin before the close and are stored after it begins'

/** Checks that a later report reads the same from the closed month as from the first day. */
async function expectSameFromClose(mids: readonly string[]): Promise<void> {
  await readSnapshot(db, at('2026-11-20'), async (snapshot) => {
    for (const day of ['2026-11-01', '2026-11-19']) {
      const closed = await readClosedBase(snapshot, day)
      expect(closed?.month).toBe('2026-10')
      expect(await readSince(snapshot, mids, day, closed), day).toEqual(await readSince(snapshot, mids, day))
    }
  })
}

/** Returns the month's stored closes. */
const closes = async () => (await db.query('select month, closed_by from closed_months order by month')).rows

const expectSuccess = (outcomes: readonly Outcome[]) => expect(outcomes.filter(({ code }) => code !== 0)).toEqual([])

describe('a month closed beside changes', () => {
  it.each(Object.keys(CHANGES))(
    'carries forward a change by ops %s that begins before the close and is stored after it begins',
    async (name) => {
      const changes = await prepare([name])
      expectSuccess(await (ORDERS[ALONE] as Play)(changes))
      await expectSameFromClose(changes.mids)
    },
  )

  it.each(Object.keys(ORDERS).filter((order) => order !== ALONE))(
    'carries forward changes of every kind that %s',
    async (order) => {
      const changes = await prepare(Object.keys(CHANGES))
      expectSuccess(await (ORDERS[order] as Play)(changes))
      await expectSameFromClose(changes.mids)
    },
  )

  it('carries forward a payment that the service stores 14 s after its time', async () => {
    const { mid } = await newMerchant(db)
    const orderId = await order(mid, '2026-10-31')
    await order(mid, '2026-10-05', 'N1')
    const report = { orderId, status: 'SUCCESS', utr: '523504870405', amount: 200_00, paidAt: undefined } as const
    const whileWaiting = async () => {
      const recorded = await createReports(db).record(report, { source: 'notification', now: () => IN_OCTOBER })
      expect(recorded).toMatchObject({ changed: true })
    }
    expectSuccess([await close({ whileWaiting })])
    await expectSameFromClose([mid])
    const { rows } = await db.query(`select sum(balance_paise)::bigint as sum from closed_items`)
    expect(rows).toEqual([{ sum: 400_00 }])
  })
})

describe('reconcile close', () => {
  it('reconcile close blocks no payment while it waits for an import', async () => {
    const { start, tables } = await prepare(['settlements import'])
    const payment = await prepare(['payments confirm'])
    const unlock = await lockTables(tables)
    const importing = start()
    await untilBlocked(db, 1)
    const closing = close()
    await untilBlocked(db, 2)
    expectSuccess(await Promise.all(payment.start()))
    expect(await countBlocked(db)).toBe(2)
    await unlock()
    expectSuccess(await Promise.all([...importing, closing]))
    await expectSameFromClose(payment.mids)
  })

  it('reconcile close reads the books without an open transaction, and beside imports and payments', async () => {
    const { start } = await prepare(['settlements import', 'payments confirm'])
    const unlock = await lockTables(['bank_holiday_changes'], 'access exclusive')
    const closing = close()
    await untilBlocked(db, 1)
    expectSuccess(await Promise.all(start()))
    const { rows } = await db.query(
      `select count(*) as idle from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`,
    )
    // The only one locks the table that the close reads.
    expect(rows).toEqual([{ idle: 1 }])
    await unlock()
    expectSuccess([await closing])
  })

  it('reconcile close of a closed month returns the stored figures without waiting for a lock or a pause', async () => {
    await prepare([])
    const closed = await close()
    const unlock = await lockTables(['settlements', 'closed_months'], 'share row exclusive')
    const sleep = () => Promise.reject(new Error('paused'))
    expect(await runOpsByClocks(url, CLOSE, { sleep })).toEqual(closed)
    await unlock()
  })

  it('reconcile close stores a month once when several operators close it concurrently', async () => {
    await prepare([])
    vi.setSystemTime(IN_NOVEMBER)
    let paused = 0
    const sleep = async (ms: number) => {
      if (ms < STORING_LIMIT_MS) return
      paused += 1
      await until('both closes wait for the service', () => paused === 2)
    }
    const people = ['asha', 'ravi']
    const outcomes = await Promise.all(people.map((by) => runOpsByClocks(url, [...CLOSE, '--by', by], { sleep })))
    const [first, second] = outcomes.map(({ stdout }) => JSON.parse(stdout))
    expect(second).toEqual(first)
    expect(await closes()).toEqual([{ month: '2026-10', closed_by: first.closedBy }])
  })

  it('reconcile close of two months concurrently carries forward the same from each month', async () => {
    const { mids, start } = await prepare(['settlements undo'])
    await order(mids[0] as string, '2026-09-08', 'OPEN2')
    const september = CLOSE.map((word) => (word === '2026-10' ? '2026-09' : word))
    const whileWaiting = async () => expectSuccess([await runOpsByClocks(url, september, {})])
    expectSuccess([await close({ whileWaiting }), ...(await Promise.all(start()))])
    expect((await closes()).map(({ month }) => month)).toEqual(['2026-09', '2026-10'])
    await expectSameFromClose(mids)
  })

  it.each([
    ['a minute ahead of', 60_000],
    ['a minute behind', -60_000],
  ])('reconcile close rejects a computer whose clock is %s PostgreSQL’s', async (_text, aheadMs) => {
    vi.useRealTimers()
    const month = ['reconcile', 'close', '--month', '2020-01', '--yes']
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs })
    const { code, stdout, stderr } = await runOpsByClocks(url, month, { databaseTime: readDatabaseTime })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    const difference = aheadMs > 0 ? /[56]\d\.\d s ahead of/ : /6\d\.\d s behind/
    expect(stderr).toMatch(difference)
    expect(stderr).toContain(' PostgreSQL’s: synchronize the clocks of both computers, then run the command again')
    expect(await closes()).toEqual([])
  })

  it.each([5_000, -5_000])(
    'reconcile close accepts a clock that differs from PostgreSQL’s by %i ms',
    async (aheadMs) => {
      await prepare([])
      vi.setSystemTime(IN_NOVEMBER)
      const closing = (ms: number) =>
        runOpsByClocks(url, CLOSE, { databaseTime: async () => new Date(IN_NOVEMBER.getTime() - ms) })
      expect(await closing(aheadMs + Math.sign(aheadMs))).toMatchObject({ code: 1 })
      expect(await closing(aheadMs)).toMatchObject({ code: 0 })
    },
  )
})
