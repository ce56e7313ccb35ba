import { groupBy } from '../group-by.ts'
import { LIMITS } from '../limits.ts'
import { ALL, fewInTime, type Key, type Places } from './few-at-once.ts'
import { isOutage, POOL_CROWDED } from './outage.ts'
import type { Database } from './pool.ts'
import { refuseWhileSilent } from './silent-nodes.ts'
import { FIRST_TABLE, hasCitus } from './spread.ts'

type Nodes = ReturnType<typeof createNodes>

const known = new WeakMap<Database, Nodes>()

/** The nodes that a pool reaches. Of each pool there is one, since it counts the pool's connections. */
export function nodesOf(db: Database): Nodes {
  const nodes = known.get(db) ?? createNodes(db)
  known.set(db, nodes)
  return nodes
}

/**
 * Where the rows of merchants are. On one server there is nothing to tell apart. Where the database is spread, what is asked of a
 * node that is silent holds its connection for 0.9 s: no more than half of the connections are used for one node, a quarter for
 * what asks all, and the places of each kind of work are given likewise, so that the merchants of the others notice nothing.
 */
function createNodes(db: Database) {
  const isSpread = askOnce(() => hasCitus(db))
  /** By mid. There are as many as merchants. */
  const found = new Map<string, { node: Key; until: number }>()
  const asking = new Map<string, Promise<void>>()
  let shares: Places | undefined
  const unlessSilent = refuseWhileSilent(LIMITS.nodes.tryEveryMs)

  /** Afterwards the nodes of these merchants are in `found`. What was found before counts for as long as nothing newer can be. */
  async function find(mids: readonly string[]): Promise<void> {
    const moment = performance.now()
    const old = mids.filter((mid) => (found.get(mid)?.until ?? 0) <= moment)
    if (old.length === 0) return
    const unasked = old.filter((mid) => !asking.has(mid))
    if (unasked.length > 0) {
      const asked = ask(unasked).finally(() => {
        for (const mid of unasked) asking.delete(mid)
      })
      for (const mid of unasked) asking.set(mid, asked)
    }
    try {
      await Promise.all(old.map((mid) => asking.get(mid)))
    } catch (error) {
      if (old.some((mid) => !found.has(mid))) throw error
    }
  }

  /** From the metadata of Citus, which every node has: the node itself is not asked. With one node nothing is told apart. */
  async function ask(mids: readonly string[]): Promise<void> {
    const { rows } = await db.query<{ mid: string; node: string }>({
      text: `select m.mid, p.groupid::text as node
               from unnest($2::text[]) m (mid), ${PLACEMENTS}
              where s.logicalrelid = $1::regclass and ${hasShard('m.mid')}
                and exists (select 1
                              from pg_dist_shard t
                              join pg_dist_placement q on q.shardid = t.shardid
                             where t.logicalrelid = s.logicalrelid and q.groupid <> p.groupid)`,
      values: [FIRST_TABLE, mids],
      // The pools of lists have no limit of their own.
      ...({ query_timeout: LIMITS.database.queryTimeoutMs } as object),
    })
    const nodes = new Map(rows.map(({ mid, node }) => [mid, node]))
    const until = performance.now() + LIMITS.nodes.rememberedMs
    for (const mid of mids) found.set(mid, { node: nodes.get(mid), until })
  }

  async function nodeOf(mid: string): Promise<Key> {
    if (!(await isSpread())) return undefined
    await find([mid])
    return found.get(mid)?.node
  }

  function inShare<T>(work: () => Promise<T>, node: Key): Promise<T> {
    if (node === undefined) return work()
    const { waiting, connectTimeoutMs: waitingMs } = LIMITS.database
    shares ??= fewInTime({ atOnce: db.options.max, waiting, waitingMs }, () => new Error(POOL_CROWDED))
    return shares(node === ALL ? work : () => unlessSilent(node, work), node)
  }

  return {
    /** Whether there are several servers, on which statements need another shape. */
    isSpread,

    /** Names the node that has the rows of `mid`; undefined where there is only one, or nothing is spread yet. */
    nodeOf,

    /**
     * Runs `work`, which asks for rows of `mid` alone, within its node's share of the connections. Not to be called within
     * other work of the node: it would wait for a place that the other has, and be refused while the node is silent.
     */
    ask: async <T>(mid: string, work: () => Promise<T>): Promise<T> => inShare(work, await nodeOf(mid)),

    /** The same in one of these places too. Without `mid` it asks for rows of any merchant. */
    async askInPlace<T>(places: Places, mid: string | undefined, work: () => Promise<T>): Promise<T> {
      const ofAll = mid === undefined && (await isSpread()) ? ALL : undefined
      const node = mid === undefined ? ofAll : await nodeOf(mid)
      return places(() => inShare(work, node), node)
    },

    /** What belongs to merchants, by their nodes. Where the database is spread. */
    async groupByNode<T extends { mid: string }>(all: readonly T[]): Promise<T[][]> {
      await find([...new Set(all.map(({ mid }) => mid))])
      return groupBy(all, ({ mid }) => found.get(mid)?.node)
    },

    /**
     * Runs `look`, which returns rows of all merchants. While a node is away it runs for the merchants of each node apart, and
     * the rows of those that answer are returned; `onAway` gets the error of each that does not. Rejects when none answers.
     */
    async askAll<T>(
      look: (mids: string[] | undefined) => Promise<T[]>,
      onAway: (error: unknown) => void,
    ): Promise<T[]> {
      let fault: unknown
      try {
        return await look(undefined)
      } catch (error) {
        fault = error
      }
      // A crowded pool says nothing of a node, and more statements would crowd it more.
      if (!isOutage(fault) || (fault as Error).message === POOL_CROWDED || !(await isSpread())) throw fault
      const { rows } = await db.query<{ mids: string[] }>(
        `select array_agg(m.mid) as mids
           from merchants m, ${PLACEMENTS}
          where s.logicalrelid = $1::regclass and ${hasShard('m.mid')}
          group by p.groupid`,
        [FIRST_TABLE],
      )
      const looks = await Promise.allSettled(rows.map(({ mids }) => look(mids)))
      const failed = looks.filter((one) => one.status === 'rejected')
      if (failed.length === looks.length) throw fault
      for (const { reason } of failed) onAway(reason)
      return looks.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    },
  }
}

/** The metadata of Citus, in SQL. */
const PLACEMENTS = 'pg_dist_shard s join pg_dist_placement p on p.shardid = s.shardid'

const hasShard = (mid: string) => `worker_hash(${mid}) between s.shardminvalue::integer and s.shardmaxvalue::integer`

/** Returns a function that asks at its first call, and at the next one again when that failed. */
function askOnce(ask: () => Promise<boolean>): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined
  return () => {
    answer ??= ask().catch((error) => {
      answer = undefined
      throw error
    })
    return answer
  }
}
