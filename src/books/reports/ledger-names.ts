import { ACQUIRER_NAMES } from '../../gateway/acquirers/acquirers.ts'
import { query } from '../../platform/db/query.ts'
import { LEDGERS } from './journal.ts'

/** The name that a merchant's ledger has in Tally. */
type LedgerName = { mid: string; ledger: string; name: string }

const ACCOUNT = `(?:unknown|(?:${ACQUIRER_NAMES.join('|')})(?::[A-Za-z0-9_-]{1,64})?)`
const LEDGER = new RegExp(`^(?:${LEDGERS.join('|').replaceAll('<account>', ACCOUNT)})$`)

/** Returns whether a journal may have this ledger, such as `UPI clearing setu:acme`. */
export const isLedger = (name: string) => LEDGER.test(name)

/** Stores the name of a ledger in Tally; a later name replaces it. */
export const setLedgerName = query<object, LedgerName>(`
  insert into ledger_names (mid, ledger, name)
  values (:mid, :ledger, :name)
  on conflict (mid, ledger) do update set name = excluded.name`)

/** Lists the names of a merchant's ledgers, or of all merchants'. */
export const listLedgerNames = query<LedgerName, { mid: string | undefined }>(`
  select mid, ledger, name
    from ledger_names
   where :mid::text is null or mid = :mid
   order by mid, ledger`)
