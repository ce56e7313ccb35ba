import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { conclude, type Stage, setScene, startService } from '../stage.ts'
import type { Finding } from '../verdict.ts'

const POOL_SIZE = 3
const SERVING_MS = 1_500
const BLOCKED_MS = 6_000
/** PostgreSQL's own limit is 100 for all clients; a service that abandons blocked statements would reach it. */
const CONNECTIONS_LIMIT = 60

/** Locks a table, so that every connection of a small pool is blocked. */
export async function exhaustPool({ postgres }: Stage): Promise<Finding[]> {
  const scene = await setScene(postgres, 'pool')
  const { url, db, tenant } = scene
  const service = await startService(url, { DATABASE_POOL_SIZE: String(POOL_SIZE) })
  const load = startLoad(() => service.url, tenant)
  await sleep(SERVING_MS)

  const locker = await db.connect()
  await locker.query('begin')
  await locker.query('lock table payment_intents in access exclusive mode')
  await sleep(BLOCKED_MS)
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity where backend_type = 'client backend'`,
  )
  await locker.query('rollback')
  const releasedAt = performance.now()
  locker.release()
  const connections = rows[0]?.count ?? 0

  await sleep(SERVING_MS)
  const finding = await conclude('pool exhausted by a lock', scene, { service, load, returns: [releasedAt] })
  finding.notes.push(`${connections} connections after ${BLOCKED_MS / 1_000} s of a lock, with a pool of ${POOL_SIZE}`)
  if (connections > CONNECTIONS_LIMIT) finding.broken.push('blocked statements are not abandoned')
  return [finding]
}
