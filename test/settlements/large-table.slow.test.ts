import pg from 'pg'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { SETTLEMENTS } from '../../src/books/settlements/fetch-settlement-list.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createLists } from '../../src/platform/lists/lists.ts'
import { createTestDatabase } from '../support/database.ts'
import { listValues } from '../support/list-reader.ts'
import { newMerchant } from '../support/service.ts'

// A table for which PostgreSQL estimates that sorting a merchant's list is cheaper than reading the index in order: one
// merchant has a seventh of the rows, one four times as many, many have few. `npm run bench -- list` measures the same with a
// merchant of 1,000,000 rows.

const ROWS = 1_400_000
/** Rows of a merchant that was added after the last `analyze`. */
const YOUNG_ROWS = 50_000
const INDEX = 'settlements_mid_initiated_at_utr_idx'
let db: Database
const mids: Record<string, string> = {}

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
  // Turns off automatic statistics, and drops what is created again below: building it at the end takes a third of the time.
  await db.query(
    `alter table settlements set (autovacuum_enabled = off);
     alter table settlements drop constraint settlements_pkey, drop constraint settlements_mid_fkey;
     drop index ${INDEX}`,
  )
  const [seventh, fourSevenths, young] = [await newMerchant(db), await newMerchant(db), await newMerchant(db)]
  mids['a seventh of the table'] = seventh.mid
  mids['four sevenths of the table'] = fourSevenths.mid
  mids['rows newer than the statistics'] = young.mid
  const few = await Promise.all(Array.from({ length: 20 }, async () => (await newMerchant(db)).mid))
  // Inserts rows in order of arrival, so that each merchant's rows are spread over the whole table.
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select case when i % 7 = 0 then $1 when i % 7 <= 4 then $2 else ($3::text[])[1 + i % 20] end,
            to_char(i, 'FM000000000000'), i, 'BRN' || i, 'SUCCESS',
            timestamptz '2025-01-01 00:00:00Z' + i / 10 * interval '1 second', timestamptz '2026-01-01 00:00:00Z'
       from generate_series(1, ${ROWS}) as i`,
    [seventh.mid, fourSevenths.mid, few],
  )
  // Simulates an index that is half empty after years of imports. The other index then has fewer levels, and PostgreSQL
  // estimates it as cheaper.
  await db.query(
    `alter table settlements add constraint settlements_pkey primary key (mid, utr);
     create index ${INDEX} on settlements (mid, initiated_at, utr) with (fillfactor = 50)`,
  )
  await db.query('vacuum analyze settlements')
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, to_char(i, 'FM000000000000'), i, 'BRN' || i, 'SUCCESS', timestamptz '2026-01-01 00:00:00Z' + i * interval '1 second',
            timestamptz '2026-01-01 00:00:00Z'
       from generate_series(1, ${YOUNG_ROWS}) as i`,
    [young.mid],
  )
}, 180_000)

/** Returns the statements that read the list of `mid`, in order of execution. */
async function statementsOf(mid: string): Promise<string[]> {
  const sent: string[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    sent.push((args[0] as { text: string }).text)
    return query.apply(this, args)
  } as never)
  try {
    const { long } = createLists({ lists: db })
    const values = listValues(mid, '2020-01-01', '2030-01-01')
    for await (const _batch of long(SETTLEMENTS, values, new AbortController().signal)) break
  } finally {
    spy.mockRestore()
  }
  return sent
}

/** Returns, for each statement, the indexes or plan nodes by which PostgreSQL reads and sorts the rows. */
async function plansOf(statements: string[]): Promise<string[][]> {
  const client = await db.connect()
  const plans: string[][] = []
  try {
    for (const statement of statements) {
      if (/^\s*(begin|set local|commit)\b/.test(statement)) {
        await client.query(statement)
        continue
      }
      const inner = /^\s*copy \(([\s\S]*)\) to stdout\s*$/.exec(statement)?.[1] ?? statement
      const { rows } = await client.query(`explain (format json) ${inner}`)
      plans.push(nodesOf(rows[0]['QUERY PLAN'][0].Plan))
    }
  } finally {
    client.release(true)
  }
  return plans
}

type Plan = { 'Node Type': string; 'Index Name'?: string; Plans?: Plan[] }

const nodesOf = (plan: Plan): string[] => [
  ...(plan['Node Type'] === 'Limit' ? [] : [plan['Index Name'] ?? plan['Node Type']]),
  ...(plan.Plans ?? []).flatMap(nodesOf),
]

describe('the list of one merchant among many', () => {
  it.each(['a seventh of the table', 'four sevenths of the table', 'rows newer than the statistics'])(
    'reads the settlement list of one merchant in index order without sorting: %s',
    async (share) => {
      const plans = await plansOf(await statementsOf(mids[share] as string))
      expect(plans).toEqual([[INDEX]])
    },
  )
})
