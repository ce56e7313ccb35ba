import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'

export type Partner = {
  pid: string
  name: string
  createdAt: Date
  /** Mids of the linked merchants, in byte order. */
  mids: string[]
}

/** Result of linking or unlinking; `unchanged` if the partner already had the requested state. */
type LinkOutcome = 'changed' | 'unchanged' | 'unknown pid' | 'unknown mid'

const LINK = `insert into partner_merchants (pid, mid)
  select p.pid, m.mid from partners p, merchants m where p.pid = $1 and m.mid = $2 on conflict (pid, mid) do nothing`

const FIND_LINK = prepared('select from partner_merchants where pid = $1 and mid = $2')

export function createPartners(db: Queryable) {
  async function change(pid: string, mid: string, statement: string): Promise<LinkOutcome> {
    const { rows } = await db.query<{ pid: boolean; mid: boolean; changed: boolean }>(
      `with changed as (${statement} returning pid)
       select exists (select 1 from partners where pid = $1) as pid, exists (select 1 from merchants where mid = $2) as mid,
              exists (select 1 from changed) as changed`,
      [pid, mid],
    )
    if (!rows[0]?.pid) return 'unknown pid'
    if (!rows[0].mid) return 'unknown mid'
    return rows[0].changed ? 'changed' : 'unchanged'
  }

  return {
    /** Stores a partner without merchants. Returns undefined if the pid is already used. */
    async add({ pid, name }: { pid: string; name: string }, now: Date): Promise<Partner | undefined> {
      const { rows } = await db.query<Partner>(
        `insert into partners (pid, name, created_at)
         values ($1, $2, $3)
         on conflict (pid) do nothing
         returning pid, name, created_at as "createdAt", '{}'::text[] as mids`,
        [pid, name, now],
      )
      return rows[0]
    },

    /** Returns all partners with their merchants, oldest first. */
    async list(): Promise<Partner[]> {
      const { rows } = await db.query<Partner>(
        `select p.pid, p.name, p.created_at as "createdAt",
                array(select l.mid from partner_merchants l where l.pid = p.pid order by l.mid collate "C") as mids
           from partners p
          order by p.created_at, p.pid`,
      )
      return rows
    },

    link: (pid: string, mid: string) => change(pid, mid, LINK),

    unlink: (pid: string, mid: string) => change(pid, mid, 'delete from partner_merchants where pid = $1 and mid = $2'),

    /** Whether the partner is linked to the merchant; false for an unknown partner or merchant. */
    async isLinked(pid: string, mid: string): Promise<boolean> {
      const { rowCount } = await db.query(FIND_LINK(pid, mid))
      return rowCount === 1
    },
  }
}

export type Partners = ReturnType<typeof createPartners>
