import type { Database } from '../../../src/platform/db/pool.ts'
import { asRole } from '../../support/database-url.ts'
import { readList } from '../../support/list-reader.ts'
import { residentMB } from '../../support/processes.ts'
import { type FormRequest, formRequest, listRequest } from '../../support/requests.ts'
import { newKey, newPartner } from '../../support/tenants.ts'
import type { WorkspaceDatabase } from '../../support/workspace.ts'
import { progress } from '../../support/workspace.ts'
import type { Bench, Section } from '../bench.ts'
import { startContender, startOurs, typical } from '../contenders.ts'
import { type Cost, costSeries, loadWithCost } from '../cost.ts'
import { load } from '../load.ts'
import { COPY_CLIENT, copyOut } from '../psql.ts'
import type { Finding } from '../report.ts'
import { sideBySide } from '../side-by-side.ts'
import { alternate, ratios } from '../statistics.ts'
import { addMerchants, fillPayments, fillSettlements, merchantId, RARE_DAY, RARE_ROWS } from '../tables.ts'

/** Many rounds, because on two cores that three processes share a single round varies from 0.4 to 0.75 × of COPY. */
const STREAMED_ROUNDS = 15
const WARM_UP_SECONDS = 3
/** Many short rounds, so that a disturbance of less than a millisecond affects few of them. */
const LATENCY_ROUNDS = 11
const LATENCY_ROUND_SECONDS = 1
const STREAMED_ROWS = 1_000_000
const WATCH_MS = 20
const SMALL_TABLE_ROWS = 10_000
const LARGE_TABLE_ROWS = 10_000_000
const QUICK_LARGE_TABLE_ROWS = 1_000_000
const LARGE_ORDER_TABLE_ROWS = 200_000
/** 30 orders a day, as many as RARE_ROWS. */
const ORDERS_OF_60_DAYS = 1_800
const COST_ROUNDS = 15
const COST_CONNECTIONS = 8
const COST_ROUND_SECONDS = 2
const LAST_DAY = '31-12-2026'
const MID = merchantId(0)

type Table = { database: WorkspaceDatabase; request: FormRequest; rows: number }

/**
 * A list of a whole table, and the SQL query that returns the same rows in the same order in PostgreSQL's own formats.
 */
type Whole = Table & { name: string; query: string }

/** Measures fetchSettlementList and fetchTransactionList of a whole table: rows per second and memory. */
export const longList: Section = async (bench) => {
  const days = { from: RARE_DAY, till: LAST_DAY }
  const [settlements, transactions] = await Promise.all([
    table(bench, 'list_settlements', STREAMED_ROWS, { ...days, fill: (db, rows) => fillSettlements(db, rows, 1) }),
    table(bench, 'list_transactions', STREAMED_ROWS, { ...days, fill: (db, rows) => fillPayments(db, rows, MID) }),
  ])
  const path = '/v1/partner/fetchTransactionList'
  return async () => [
    await wholeTable({ ...settlements, name: 'fetchSettlementList', query: SETTLEMENTS }),
    await wholeTable({
      ...transactions,
      request: { ...transactions.request, path },
      name: 'fetchTransactionList',
      query: TRANSACTIONS,
    }),
  ]
}

/** Measures fetchSettlementList of a few rows, and whether it costs more in a large table. */
export const list: Section = async (bench) => {
  const large = bench.quick ? QUICK_LARGE_TABLE_ROWS : LARGE_TABLE_ROWS
  const days = { from: RARE_DAY, till: RARE_DAY, fill: (db: Database, rows: number) => fillSettlements(db, rows) }
  const [smallTable, largeTable] = await Promise.all([
    table(bench, 'list_small', SMALL_TABLE_ROWS, days),
    table(bench, 'list_large', large, days),
  ])
  return () => shortLists(bench, smallTable, largeTable)
}

/**
 * Measures fetchOrderList beside fetchTransactionList of the same paid orders, which are the most expensive orders of
 * fetchOrderList.
 */
export const orderList: Section = async (bench) => {
  const { db, url } = await bench.createDatabase('list_orders')
  await addMerchants(db)
  await fillPayments(db, LARGE_ORDER_TABLE_ROWS, merchantId(1))
  await fillPayments(db, ORDERS_OF_60_DAYS, MID)
  const key = await newKey(db, { mid: MID })
  const requestOf = (operation: string) =>
    formRequest(`/v1/payments/${operation}`, key, { mid: MID, s_date: '01-09-2026', e_date: '01-09-2026' })
  const requests = { orders: requestOf('fetchOrderList'), transactions: requestOf('fetchTransactionList') }
  return async () => {
    const service = await startOurs(url)
    for (const request of Object.values(requests)) {
      const found = await readList(service.url, request)
      if (found !== RARE_ROWS) throw new Error(`The list has ${found} rows instead of ${RARE_ROWS}.`)
      await load(service.url, request, { seconds: WARM_UP_SECONDS, connections: COST_CONNECTIONS })
    }
    const names = ['orders', 'transactions'] as const
    const costs = await alternate(names, COST_ROUNDS, async (name, round) => {
      const cost = await loadWithCost(bench, service, requests[name], {
        seconds: COST_ROUND_SECONDS,
        connections: COST_CONNECTIONS,
      })
      const { serviceMicroseconds: ofService, databaseMicroseconds: ofDatabase } = cost
      progress(`${name}: round ${round} of ${COST_ROUNDS}: ${Math.round(ofService)} + ${Math.round(ofDatabase)} µs`)
      return cost
    })
    await service.stop()
    const inAll = (of: Cost[]) => of.map((cost) => cost.serviceMicroseconds + cost.databaseMicroseconds)
    return [
      {
        title: `fetchOrderList of ${RARE_ROWS} paid orders at ${COST_CONNECTIONS} connections`,
        series: [
          ...costSeries('fetchOrderList', costs.orders),
          ...costSeries('fetchTransactionList', costs.transactions),
        ],
        figures: [
          {
            what: 'processor time with database: fetchOrderList / fetchTransactionList',
            samples: ratios(inAll(costs.orders), inAll(costs.transactions)),
            unit: '×',
            atMost: 1,
          },
        ],
      },
    ]
  }
}

async function table(
  bench: Bench,
  name: string,
  rows: number,
  { from, till, fill }: { from: string; till: string; fill: (db: Database, rows: number) => Promise<void> },
): Promise<Table> {
  const database = await bench.createDatabase(name)
  await addMerchants(database.db)
  const request = listRequest(await newPartner(database.db, MID), MID, from, till)
  await fill(database.db, rows)
  return { database, request, rows }
}

const between = (at: string) => `${at} >= '2026-08-15T00:00:00+05:30' and ${at} < '2027-01-01T00:00:00+05:30'`

const SETTLEMENTS = `
  select amount_paise * 0.01, utr, bank_reference_number, status, mid, initiated_at, created_at
    from settlements
   where mid = '${MID}' and ${between('initiated_at')}
   order by mid, initiated_at, utr`

const TRANSACTIONS = `
  select p.amount_paise * 0.01, p.utr, p.order_id, i.merchant_order_id, p.mid, 'SUCCESS',
         coalesce((select sum(r.amount_paise)
                     from refunds r
                    where r.mid = p.mid and r.order_id = p.order_id and r.utr = p.utr and r.status = 'SUCCESS'), 0) * 0.01,
         i.created_at, coalesce(p.paid_at, p.received_at)
    from payments p
    join payment_intents i on i.mid = p.mid and i.order_id = p.order_id and p.kind <> 'second'
   where p.mid = '${MID}' and ${between('coalesce(p.paid_at, p.received_at)')}
   order by p.mid, coalesce(p.paid_at, p.received_at), p.utr`

async function wholeTable({ database, request, rows, name: listName, query }: Whole): Promise<Finding> {
  const service = await startOurs(database.url)
  const grownMB: number[] = []
  const fetchAll = {
    copy: () => copyOut(database, query),
    async ours() {
      const before = residentMB(service.pid)
      let most = before
      const watch = setInterval(() => {
        most = Math.max(most, residentMB(service.pid))
      }, WATCH_MS)
      const found = await readList(service.url, request).finally(() => clearInterval(watch))
      grownMB.push(most - before)
      if (found !== rows) throw new Error(`The list has ${found} rows instead of ${rows}.`)
    },
  }
  await fetchAll.copy()
  await fetchAll.ours()
  const series = await alternate(['copy', 'ours'], STREAMED_ROUNDS, async (name, round) => {
    const startedAt = performance.now()
    await fetchAll[name]()
    const rowsPerSecond = (rows / (performance.now() - startedAt)) * 1000
    progress(`${listName}: round ${round} of ${STREAMED_ROUNDS}, ${name}: ${Math.round(rowsPerSecond)} rows/s`)
    return rowsPerSecond
  })
  await service.stop()
  const unit = 'rows/s'
  return {
    title: `${listName} of ${rows.toLocaleString('en')} rows`,
    series: [
      { contender: `copy to stdout through ${COPY_CLIENT}`, unit, samples: series.copy },
      { contender: 'this service', unit, samples: series.ours },
    ],
    figures: [
      { what: 'this service / copy to stdout', samples: ratios(series.ours, series.copy), unit: '×', atLeast: 0.6 },
      { what: 'memory for the first list', samples: grownMB.slice(0, 1), unit: 'MB', atMost: 64 },
    ],
  }
}

async function shortLists(bench: Bench, smallTable: Table, largeTable: Table): Promise<Finding[]> {
  const small = { service: await startOurs(smallTable.database.url), request: smallTable.request }
  const large = { service: await startOurs(largeTable.database.url), request: largeTable.request }
  const contenders = { small, large }
  for (const { service, request } of [small, large]) {
    const found = await readList(service.url, request)
    if (found !== RARE_ROWS) throw new Error(`The short list has ${found} rows instead of ${RARE_ROWS}.`)
    await load(service.url, request, { seconds: WARM_UP_SECONDS })
  }
  const latencies = await alternate(['small', 'large'], LATENCY_ROUNDS, async (name, round) => {
    const { service, request } = contenders[name]
    const { p50Ms } = await load(service.url, request, { seconds: LATENCY_ROUND_SECONDS, connections: 1 })
    progress(
      `fetchSettlementList of ${RARE_ROWS} rows: round ${round} of ${LATENCY_ROUNDS}, ${name}: ${p50Ms.toFixed(3)} ms`,
    )
    return p50Ms
  })
  const first = await startContender(typical(asRole(largeTable.database.url, 'upi_owner')))
  const requests = () => [large.request]
  const throughput = await sideBySide(
    bench,
    `fetchSettlementList of ${RARE_ROWS} rows`,
    { ours: { service: large.service, requests }, typical: { service: first, requests } },
    { costAtMost: 0.6, rateAtLeast: 1.8 },
  )
  await Promise.all([small.service.stop(), large.service.stop(), first.stop()])
  const ofRows = ({ rows }: Table) => `a list of ${RARE_ROWS} rows out of ${rows.toLocaleString('en')}`
  return [
    {
      title: `fetchSettlementList of ${RARE_ROWS} rows, one at a time`,
      series: [
        { contender: ofRows(smallTable), unit: 'ms', samples: latencies.small },
        { contender: ofRows(largeTable), unit: 'ms', samples: latencies.large },
      ],
      figures: [
        {
          what: 'large table / small table',
          samples: ratios(latencies.large, latencies.small),
          unit: '×',
          atMost: 1.3,
        },
      ],
    },
    throughput,
  ]
}
