// npm run test:faults [-- NAME…]: injects faults under load into the built service, and compares its responses with
// the stored data. Exits with 1 if a promise is broken. All traffic stays on 127.0.0.1; only processes that it started
// are killed.
import { setTimeout as sleep } from 'node:timers/promises'
import { build, openWorkspace, progress } from '../support/workspace.ts'
import { cutNetwork } from './faults/cut-network.ts'
import { exhaustPool } from './faults/exhaust-pool.ts'
import { nextAcquirer } from './faults/failover.ts'
import { fillDisk } from './faults/fill-disk.ts'
import { jumpClock } from './faults/jump-clock.ts'
import { killBatches } from './faults/kill-batches.ts'
import { killDatabase } from './faults/kill-database.ts'
import { killPrune } from './faults/kill-prune.ts'
import { killRefunds } from './faults/kill-refunds.ts'
import { killService } from './faults/kill-service.ts'
import { leaveLists } from './faults/leave-lists.ts'
import { loseNotifications } from './faults/lose-notifications.ts'
import { notifyMerchants } from './faults/notify-merchants.ts'
import { slowAcquirer } from './faults/slow-acquirer.ts'
import { slowClients } from './faults/slow-clients.ts'
import { waitInQueues } from './faults/wait-in-queues.ts'
import type { Stage } from './stage.ts'
import { printTable } from './table.ts'
import type { Finding } from './verdict.ts'

const FAULTS: Record<string, (stage: Stage) => Promise<Finding[]>> = {
  service: killService,
  database: killDatabase,
  network: cutNetwork,
  pool: exhaustPool,
  disk: fillDisk,
  clock: jumpClock,
  gone: leaveLists,
  slow: slowClients,
  acquirer: loseNotifications('setu'),
  cashfree: loseNotifications('cashfree'),
  razorpay: loseNotifications('razorpay'),
  'slow-acquirer': slowAcquirer,
  'next-acquirer': nextAcquirer,
  webhooks: notifyMerchants,
  batches: killBatches,
  prune: killPrune,
  refunds: killRefunds,
  queues: waitInQueues,
}

/** Twice the duration of the longest fault; after that the run continues without it. */
const FAULT_LIMIT_MS = 600_000

const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => !(name in FAULTS))
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(' ')}. Choose from ${Object.keys(FAULTS).join(', ')}.`)
  process.exit(2)
}

try {
  process.exit((await strike()) ? 0 : 1)
} catch (error) {
  console.error(error)
  process.exit(1)
}

async function strike(): Promise<boolean> {
  const startedAt = performance.now()
  await build()
  const stage = await openWorkspace()
  const findings: Finding[] = []
  for (const [name, fault] of Object.entries(FAULTS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue
    progress(name)
    try {
      findings.push(...(await Promise.race([fault(stage), tooLong()])))
    } catch (error) {
      console.error(error)
      findings.push({ fault: name, notes: [], broken: [`the test itself: ${(error as Error).message}`] })
    }
  }
  const held = printTable(findings)
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  console.log(held ? `Every promise was met, in ${seconds} s.` : `Promises were broken, in ${seconds} s.`)
  return held
}

async function tooLong(): Promise<never> {
  await sleep(FAULT_LIMIT_MS, undefined, { ref: false })
  throw new Error(`it took more than ${FAULT_LIMIT_MS / 1_000} s`)
}
