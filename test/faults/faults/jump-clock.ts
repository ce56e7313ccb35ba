import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAccessKeys } from '../../../src/gateway/tenants/access-keys.ts'
import { startLoad } from '../../support/load.ts'
import { reconcile } from '../../support/reconcile.ts'
import { createRequest } from '../../support/requests.ts'
import { newKey } from '../../support/tenants.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, judge, ms } from '../verdict.ts'

const JUMPS = ['an hour ahead', 'two hours back', 'an hour ahead, to the real time']
const SERVING_MS = 1_500
/** Maximum age of the service's data on a key. */
const REVOCATION_LIMIT_MS = 5_000
const POLL_MS = 50

/** Makes the service's wall clock jump under load. Revokes a key right before each jump. */
export async function jumpClock({ postgres }: Stage): Promise<Finding[]> {
  const { url, db, tenant } = await setScene(postgres, 'clock')
  const preload = join(import.meta.dirname, '../shift-clock.mjs')
  const service = await startService(url, {}, { preload })
  const load = startLoad(() => service.url, tenant)
  const revokedInMs: number[] = []
  for (const _ of JUMPS) {
    await sleep(SERVING_MS)
    const { mid } = tenant.merchant
    const key = await newKey(db, { mid })
    // An empty form stores nothing that the journal would miss.
    const request = { ...createRequest({ mid, key }), body: '' }
    const statusWithKey = async () => (await load.client.send(service.url, request)).status
    // A valid key gets 400 for an empty form.
    if ((await statusWithKey()) !== 400) throw new Error('a new key is not accepted')
    await createAccessKeys(db).revoke(key.publicKey, new Date())
    const revokedAt = performance.now()
    service.child.kill('SIGUSR2')
    while ((await statusWithKey()) !== 401 && performance.now() - revokedAt < 2 * REVOCATION_LIMIT_MS)
      await sleep(POLL_MS)
    revokedInMs.push(performance.now() - revokedAt)
  }
  await sleep(SERVING_MS)
  await load.end()
  // The service correctly rejects signatures of a clock that differs by an hour.
  const journal = load.journal.filter(({ kind, response }) => !(kind === 'notification' && response?.status === 401))
  const reconciled = await reconcile({ ...load, journal, tenant, db, url: service.url })
  const finding = judge(`clock jumps, ${JUMPS.length}×`, journal, reconciled)
  finding.notes.push(`revoked keys were rejected within ${ms(Math.max(...revokedInMs))}`)
  finding.notes.push(
    `${load.journal.length - journal.length} notifications were rejected for the age of their signature`,
  )
  if (revokedInMs.some((took) => took > REVOCATION_LIMIT_MS))
    finding.broken.push('revoked keys are rejected within 5 s')
  if (load.journal.length === journal.length) finding.broken.push('the clock jumped: no signature was too old')
  if (service.hasEnded()) finding.broken.push('the service keeps running')
  load.client.close()
  await service.stop()
  await db.end()
  return [finding]
}
