import type { Readable } from 'node:stream'
import { type Importing, type ImportResult, importSettlements } from '../../src/books/settlements/import.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { type FormRequest, listRequest } from './requests.ts'
import type { NewPartner } from './tenants.ts'

/** Settlements that `addSettlements` stores in January 2026, for the short list; the others are from February on. */
export const SHORT_LIST_ROWS = 30
const SHORT_LIST_DAYS = ['01-01-2026', '31-01-2026'] as const
export const LONG_LIST_DAYS = ['01-02-2026', '31-12-2026'] as const

/** More rows than the service reads at once, so that the list has to be streamed. */
const LONG_LIST_ROWS = 3_000

/** Imports a file in its own transaction, like the operator's command. Returns the number of rows by result. */
export async function importFile(
  db: Database,
  csv: Readable,
  importing: Pick<Importing, 'now' | 'onProgress' | 'account'>,
): Promise<Pick<ImportResult, 'inserted' | 'unchanged' | 'updated'>> {
  const { inserted, unchanged, updated } = await inTransaction(db, (client) =>
    importSettlements(client, csv, { person: 'test', file: '-', ...importing }),
  )
  return { inserted, unchanged, updated }
}

/** Stores settlements of `mid`: a short list in January and `longListRows` after it. */
export async function addSettlements(db: Database, mid: string, longListRows = LONG_LIST_ROWS): Promise<void> {
  await db.query(
    `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
     select $1, to_char(i, 'FM000000000000'), i, 'BRN' || i, 'SUCCESS', at, at + interval '1 hour'
       from generate_series(1, $2::int + $3::int) i,
            lateral (select case when i <= $2::int then timestamptz '2026-01-05 06:00:00Z' + i * interval '1 minute'
                            else timestamptz '2026-02-05 06:00:00Z' + i * interval '1 second' end as at) moments`,
    [mid, SHORT_LIST_ROWS, longListRows],
  )
  // Autovacuum would do this within a minute; until then the planner would sort all rows for every list.
  await db.query('vacuum analyze settlements')
}

export const shortList = (partner: NewPartner, mid: string): FormRequest =>
  listRequest(partner, mid, ...SHORT_LIST_DAYS)
export const longList = (partner: NewPartner, mid: string): FormRequest => listRequest(partner, mid, ...LONG_LIST_DAYS)
