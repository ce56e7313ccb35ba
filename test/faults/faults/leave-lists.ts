import { request as httpRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { residentMB } from '../../support/processes.ts'
import { reconcile } from '../../support/reconcile.ts'
import type { FormRequest } from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { longList } from '../../support/settlements.ts'
import { newPartner } from '../../support/tenants.ts'
import { poolConnections } from '../metrics-reader.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, judge } from '../verdict.ts'

const READERS = 1_000
/** Readers before memory is measured: in a test with 3,000, only the first 1,000 made the heap grow. */
const WARM_UP = 1_000
const CONCURRENCY = 4
/** More rows than the buffers between PostgreSQL and a client that reads nothing can store. */
const ROWS = 40_000
const GROWTH_LIMIT_MB = 40
const IDLE_TIMEOUT_MS = 10_000

/** Readers of long lists disconnect midway, one after another, during the usual load. */
export async function leaveLists({ postgres }: Stage): Promise<Finding[]> {
  const { url, db, tenant } = await setScene(postgres, 'gone', ROWS)
  const { mid } = tenant.merchant
  // Each partner may read one long list at a time.
  const partners = await Promise.all(Array.from({ length: CONCURRENCY }, () => newPartner(db, mid)))
  const lists = partners.map((partner) => longList(partner, mid))
  const service = await startService(url)
  const load = startLoad(() => service.url, tenant, { without: 'long list' })
  await leaveMany(WARM_UP, service, lists)
  const before = residentMB(service.pid)
  await leaveMany(READERS, service, lists)
  const grownMB = residentMB(service.pid) - before
  await load.end()
  const reconciled = await reconcile({ ...load, tenant, db, url: service.url })
  const finding = judge(`readers that disconnect midway, ${READERS}×`, load.journal, reconciled)
  const idle = await untilIdle(service)
  finding.notes.push(`memory grew by ${grownMB.toFixed(1)} MB, after ${WARM_UP} readers for warm-up`)
  if (idle !== undefined) finding.broken.push(`connections are released: ${idle}`)
  if (grownMB > GROWTH_LIMIT_MB) finding.broken.push(`memory does not grow: it grew by ${grownMB.toFixed(1)} MB`)
  const whole = await load.client.send(service.url, longList(tenant.partner, mid))
  if (whole.status !== 200 || JSON.parse(whole.text).data.length !== ROWS)
    finding.broken.push('a list is complete afterwards')
  load.client.close()
  await service.stop()
  await db.end()
  return [finding]
}

async function leaveMany(count: number, service: ServerProcess, lists: FormRequest[]): Promise<void> {
  let left = 0
  const leave = async (list: FormRequest) => {
    while (left++ < count) await leaveOne(service.url, list)
  }
  await Promise.all(lists.map(leave))
}

/** Reads the first chunk of a list, then disconnects. */
function leaveOne(url: string, { path, method, headers, body }: FormRequest): Promise<void> {
  return new Promise((resolve) => {
    const call = httpRequest(url + path, { method, headers, agent: false }, (response) => {
      response.once('data', () => call.destroy())
    })
    call.on('error', () => undefined).once('close', resolve)
    call.end(body)
  })
}

/** Returns undefined once no connection is busy; otherwise the connections still busy after 10 s. */
async function untilIdle({ opsUrl }: ServerProcess): Promise<string | undefined> {
  const deadline = performance.now() + IDLE_TIMEOUT_MS
  for (;;) {
    const connections = await poolConnections(opsUrl)
    const held = Object.entries(connections).filter(([name, count]) => !name.endsWith('idle') && count > 0)
    if (!('lists busy' in connections)) return 'the gauge of connections is missing'
    if (held.length === 0) return undefined
    if (performance.now() > deadline) return held.map(([name, count]) => `${count} ${name}`).join(', ')
    await sleep(100)
  }
}
