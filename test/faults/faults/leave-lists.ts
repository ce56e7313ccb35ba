import { request as httpRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMB } from '../../bench/processes.ts'
import { startLoad } from '../load.ts'
import { poolConnections } from '../metrics-reader.ts'
import { longList } from '../operations.ts'
import { reconcile } from '../reconcile.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { type Stage, setScene } from '../stage.ts'
import { type Tenant, withPartners } from '../tenant.ts'
import { type Finding, judge } from '../verdict.ts'

const READERS = 1_000
/** As many before them, until the heap has found its size: of 3,000 readers only the first 1,000 were seen to raise it. */
const WARM_UP = 1_000
const AT_ONCE = 4
/** More than fits between PostgreSQL and a client that reads nothing. */
const ROWS = 40_000
const GROWTH_LIMIT_MB = 40
const IDLE_TIMEOUT_MS = 10_000

/** Readers of long lists go away in the middle, one after the other, beside the usual load. */
export async function leaveLists({ postgres }: Stage): Promise<Finding[]> {
  const { database, db, tenant } = await setScene(postgres, 'gone', ROWS)
  const partners = await withPartners(db, tenant, AT_ONCE)
  const service = await startServiceProcess(postgres.urlOf(database))
  const load = startLoad(() => service.url, tenant, { without: 'long list' })
  await leaveMany(WARM_UP, service, partners)
  const before = residentMB(service.pid)
  await leaveMany(READERS, service, partners)
  const grownMB = residentMB(service.pid) - before
  await load.end()
  const reconciled = await reconcile({ ...load, tenant, db, url: service.url })
  const finding = judge(`client gone in mid-list, ${READERS}×`, load.journal, reconciled)
  const idle = await untilIdle(service)
  finding.notes.push(`memory grew by ${grownMB.toFixed(1)} MB, after ${WARM_UP} others had warmed the service up`)
  if (idle !== undefined) finding.broken.push(`connections return: ${idle}`)
  if (grownMB > GROWTH_LIMIT_MB) finding.broken.push(`memory is flat: it grew by ${grownMB.toFixed(1)} MB`)
  const whole = await load.client.send(service.url, longList(tenant))
  if (!('text' in whole) || JSON.parse(whole.text).data.length !== ROWS)
    finding.broken.push('a list is whole afterwards')
  load.client.close()
  await service.stop()
  await db.end()
  return [finding]
}

async function leaveMany(count: number, service: ServiceProcess, partners: Tenant[]): Promise<void> {
  let left = 0
  const leave = async (partner: Tenant) => {
    while (left++ < count) await leaveOne(service.url, partner)
  }
  await Promise.all(partners.map(leave))
}

/** Reads the first piece of a list, and no more. */
function leaveOne(url: string, tenant: Tenant): Promise<void> {
  const { path, method, headers, body } = longList(tenant)
  return new Promise((resolve) => {
    const call = httpRequest(url + path, { method, ...(headers && { headers }), agent: false }, (response) => {
      response.once('data', () => call.destroy())
    })
    call.on('error', () => undefined).once('close', resolve)
    call.end(body)
  })
}

/** Undefined once no connection is held; else which were to the last. */
async function untilIdle({ opsUrl }: ServiceProcess): Promise<string | undefined> {
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
