import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { reconcile } from '../../support/reconcile.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, judge } from '../verdict.ts'

const KILLS = 20
const SERVING_MS = 500

/** Kills the service by kill -9 under load and starts another one, like a supervisor. */
export async function killService({ postgres }: Stage): Promise<Finding[]> {
  const { url, db, tenant } = await setScene(postgres, 'kill_service')
  let service = await startService(url)
  const load = startLoad(() => service.url, tenant)
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(SERVING_MS)
    await service.killHard()
    service = await startService(url)
  }
  await sleep(SERVING_MS)
  await load.end()
  const reconciled = await reconcile({ ...load, tenant, db, url: service.url })
  load.client.close()
  await service.stop()
  await db.end()
  return [judge(`kill -9 of the service, ${KILLS}×`, load.journal, reconciled, { mayLackResponse: true })]
}
