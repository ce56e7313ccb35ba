import { nodesOf } from '../db/nodes.ts'
import type { Database } from '../db/pool.ts'
import { createReadRouter } from '../db/replica.ts'
import type { Limits } from '../limits.ts'
import { createSettlements, type Settlement, type Settlements } from './settlements.ts'

/** A list of at most 1,000 settlements is `short`; of a longer one the batches come as its reader takes them. */
export type SettlementReader = ReturnType<typeof createSettlementReader>

/**
 * Reads lists from a replica where there is one that is not behind, else from the primary. A short list is a query like any
 * other; a long one holds a connection of `listDb` for as long as its reader takes, so that payments keep those of `db`.
 */
export function createSettlementReader(
  { db, listDb, replicaDb }: Databases,
  limits: Pick<Limits, 'lists' | 'database' | 'replica'>,
) {
  const fromPrimary = createSettlements(listDb, db, limits)
  const fromReplica = replicaDb && createSettlements(replicaDb, replicaDb, limits)
  const route = replicaDb && createReadRouter({ primary: db, replica: replicaDb }, limits.replica)

  function read<T>(work: (settlements: Settlements) => Promise<T>): Promise<T> {
    if (!route) return work(fromPrimary)
    return route((database) => work(database === replicaDb && fromReplica ? fromReplica : fromPrimary))
  }

  return {
    /** The node that has a merchant's rows; undefined on one server, and where nobody can tell: then the read finds out. */
    nodeOf: (mid: string) =>
      nodesOf(db)
        .nodeOf(mid)
        .catch(() => undefined),

    /** The whole list, if it is short; else undefined. */
    short: (mid: string, from: Date, until: Date): Promise<Settlement[] | undefined> =>
      read((settlements) => settlements.shortList(mid, from, until)),

    /** The list in batches. The first one is awaited, so that a database that is away is known before the answer begins. */
    long: (mid: string, from: Date, until: Date, gone: AbortSignal) =>
      read(async (settlements) => {
        const rest = settlements.list(mid, from, until, gone)
        const { value = [] } = await rest.next()
        return { first: value, rest }
      }),
  }
}

type Databases = { db: Database; listDb: Database; replicaDb?: Database | undefined }
