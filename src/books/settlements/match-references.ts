import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { UNPADDED } from '../../platform/fields.ts'
import type { Changing } from './changes.ts'
import { intoVersions, nextImportId, storeImport, useIndexes } from './imports.ts'

/**
 * Finds the payments of stored rows whose payment was unknown when they were imported, because a report added the
 * payment's bank reference later.
 */

/** The name that the list of imports shows for an import of `importMatches`, which has no settlement file. */
const WITHOUT_FILE = 'payments import'

/**
 * Matches stored rows that name no known payment with payments by bank reference. A matched row gets its payment's UTR as
 * a new version of this import. Returns the number of matched rows. The caller must hold the import lock.
 */
export async function matchReferences(
  client: Queryable,
  { importId, now, bases }: Omit<Changing, 'account'>,
): Promise<number> {
  await useIndexes(client)
  const [since] = await SINCE(client, {})
  let matched = 0
  for (const match of [BY_REFERENCE, BY_UTR]) {
    const rows = await match(client, { importId, now, since: since?.time })
    for (const { storedBy } of rows) if (storedBy !== null && storedBy !== importId) bases.add(storedBy)
    matched += rows.reduce((sum, { rows: count }) => sum + count, 0)
  }
  return matched
}

/**
 * Matches stored rows in an import of their own. Returns the number of this import and of the matched rows, or no
 * number of an import if no row was matched. The caller must hold the import lock.
 */
export async function importMatches(
  client: Queryable,
  { now, person }: { now: Date; person: string },
): Promise<{ importId: number | null; matched: number }> {
  const importId = await nextImportId(client, 'settlement_imports')
  const bases = new Set<number>()
  const matched = await matchReferences(client, { importId, now, bases })
  if (matched === 0) return { importId: null, matched }
  const nothing = { inserted: 0, unchanged: 0, updated: 0, amount: 0, insertedAmount: 0 }
  await storeImport(client, { ...nothing, importId, now, person, file: WITHOUT_FILE, sha256: null, matched, bases })
  return { importId, matched }
}

const ITEM = 'upper(coalesce(s.payment_utr, s.utr))'

/**
 * Returns the time before which every reference is matched: the newest import after which no undo restored a row of this
 * or an earlier import. An hour covers clocks that differ, and reports that are stored after their own time.
 */
const SINCE = query<{ time: Date }, object>(`
  select coalesce((
           select i.imported_at
             from settlement_imports i
            where not exists (
                    select from settlement_imports u
                     where u.import_id <= i.import_id and u.undone_at >= i.imported_at - interval '1 hour')
            order by i.import_id desc
            limit 1), 'epoch') - interval '1 hour' as time`)

/**
 * Stores new versions of the rows of `matched`, which has their keys, their payment's UTR if it differs from their own, and
 * the account of their payment unless the file's account stays.
 */
const storing = (matched: string) =>
  plannedQuery<{ storedBy: number | null; rows: number }, { importId: number; now: Date; since: Date | undefined }>(`
  with matched as materialized (${matched}), before as (
    ${intoVersions({ undone: false })}
      from matched m
      join settlements s on s.mid = m.mid and s.utr = m.utr
  ), after as (
    update settlements s
       set payment_utr = coalesce(m.payment_utr, s.payment_utr), paid_account = coalesce(s.paid_account, m.account),
           import_id = :importId, recorded_at = greatest(s.recorded_at, :now)
      from matched m
     where s.mid = m.mid and s.utr = m.utr
  )
  select import_id as stored_by, count(*) as rows from matched group by import_id`)

/** A reference that several payments of a merchant share identifies none of these payments. */
const BY_REFERENCE = storing(`
    select s.mid, s.utr, s.import_id, p.utr as payment_utr,
           case when s.account is null or p.received_at <= s.recorded_at then p.acquirer end as account
      from payments p
      join settlements s on s.mid = p.mid and ${ITEM} in (p.bank_reference, '0000' || p.bank_reference)
     where p.bank_reference_at > :since
       and ${UNPADDED(ITEM)} = p.bank_reference
       and not exists (select from payments taken where taken.mid = p.mid and taken.utr = p.bank_reference)
       and not exists (
             select from payments other
              where other.mid = p.mid and other.bank_reference = p.bank_reference and other.utr <> p.utr)`)

/** Rows of no known account whose payment was recorded after them. */
const BY_UTR = storing(`
    select s.mid, s.utr, s.import_id, null as payment_utr, p.acquirer as account
      from payments p
      join settlements s on s.mid = p.mid and ${ITEM} = p.utr
     where p.received_at > :since and s.account is null and s.paid_account is null`)
