import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { momentOfReturn } from '../../support/postgres-server.ts'
import { conclude, type Stage, setScene, startService } from '../stage.ts'
import { brokenHealth, type Finding } from '../verdict.ts'

const KILLS = 10
const SERVING_MS = 1_200
const AWAY_MS = 1_000

/** Kills PostgreSQL with all its processes by kill -9 under load, while the service keeps running. */
export async function killDatabase({ postgres }: Stage): Promise<Finding[]> {
  const scene = await setScene(postgres, 'kill_database')
  const { url, tenant } = scene
  const service = await startService(url)
  const load = startLoad(() => service.url, tenant)
  const killed: number[] = []
  const returned: number[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(SERVING_MS)
    postgres.killHard()
    killed.push(performance.now())
    await sleep(AWAY_MS)
    const [moment] = await Promise.all([momentOfReturn(url), postgres.restart()])
    returned.push(moment)
  }
  await sleep(SERVING_MS)
  const finding = await conclude(`kill -9 of PostgreSQL, ${KILLS}×`, scene, { service, load, returns: returned })
  finding.broken.push(...killed.flatMap((from, kill) => brokenHealth(load.journal, from, returned[kill] ?? 0)))
  return [finding]
}
