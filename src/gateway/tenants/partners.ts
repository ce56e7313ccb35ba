import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'

type Partner = {
  pid: string
  name: string
  createdAt: Date
  /** Mids of the linked merchants, in byte order. */
  mids: string[]
}

/** Result of linking or unlinking; `unchanged` if the partner already had the requested state. */
type LinkOutcome = 'changed' | 'unchanged' | 'unknown pid' | 'unknown mid'

type Linked = { pid: string; mid: string }
type Changed = { isPid: boolean; isMid: boolean; isChanged: boolean }

/** Citus evaluates these subqueries one by one, and rejects one without a column. */
const changing = (statement: string) => `
  with changed as (${statement} returning pid)
  select exists (select 1 from partners where pid = :pid) as is_pid,
         exists (select 1 from merchants where mid = :mid) as is_mid,
         exists (select 1 from changed) as is_changed`

const LINK = query<Changed, Linked>(
  changing(`
    insert into partner_merchants (pid, mid)
    select p.pid, m.mid from partners p, merchants m where p.pid = :pid and m.mid = :mid
        on conflict (pid, mid) do nothing`),
)

const UNLINK = query<Changed, Linked>(changing('delete from partner_merchants where pid = :pid and mid = :mid'))

const FIND_LINK = query<object, Linked>('select from partner_merchants where pid = :pid and mid = :mid')

const ADD = query<Partner, { pid: string; name: string; now: Date }>(`
  insert into partners (pid, name, created_at)
  values (:pid, :name, :now)
      on conflict (pid) do nothing
  returning pid, name, created_at, '{}'::text[] as mids`)

const LIST = query<Partner, object>(`
  select p.pid, p.name, p.created_at,
         array(select l.mid from partner_merchants l where l.pid = p.pid order by l.mid collate "C") as mids
    from partners p
   order by p.created_at, p.pid`)

export function createPartners(db: Queryable) {
  async function change(statement: typeof LINK, link: Linked): Promise<LinkOutcome> {
    const [row] = await statement(db, link)
    if (!row?.isPid) return 'unknown pid'
    if (!row.isMid) return 'unknown mid'
    return row.isChanged ? 'changed' : 'unchanged'
  }

  return {
    /** Stores a partner without merchants. Returns undefined if the pid is already used. */
    add: async (partner: { pid: string; name: string }, now: Date): Promise<Partner | undefined> =>
      (await ADD(db, { ...partner, now }))[0],

    /** Returns all partners with their merchants, oldest first. */
    list: () => LIST(db, {}),

    link: (pid: string, mid: string) => change(LINK, { pid, mid }),

    unlink: (pid: string, mid: string) => change(UNLINK, { pid, mid }),

    /** Whether the partner is linked to the merchant; false for an unknown partner or merchant. */
    isLinked: async (pid: string, mid: string) => (await FIND_LINK(db, { pid, mid })).length === 1,
  }
}

export type Partners = ReturnType<typeof createPartners>
