import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startLoad } from '../../support/load.ts'
import { momentOfReturn, startPostgresServer } from '../../support/postgres-server.ts'
import { conclude, type Stage, setScene, startService } from '../stage.ts'
import type { Finding } from '../verdict.ts'

const FAULT = 'disk full'
const DISK_MB = 256
const SERVING_MS = 1_500
const FULL_MS = 4_000
/** Small, so that the write-ahead log soon needs a new file, for which no space is left. */
const SETTINGS = ['max_wal_size=32MB', 'min_wal_size=32MB']
const CHUNK = Buffer.alloc(64 * 1024, 1)

/** Fills PostgreSQL's disk under load, then frees space again. */
export async function fillDisk({ directory }: Stage): Promise<Finding[]> {
  const disk = join(directory, 'small-disk')
  mkdirSync(disk)
  const errorResponse = mount(disk)
  if (errorResponse !== undefined) return [{ fault: FAULT, notes: [], broken: [], leftOut: errorResponse }]
  const unmount = () => void spawnSync('umount', ['--lazy', disk])
  process.prependListener('exit', unmount)
  const postgres = await startPostgresServer(disk, SETTINGS)
  try {
    return [await fill(disk, postgres)]
  } finally {
    postgres.stop()
    process.off('exit', unmount)
    unmount()
  }
}

async function fill(disk: string, postgres: Stage['postgres']): Promise<Finding> {
  const scene = await setScene(postgres, 'disk')
  const { url, tenant } = scene
  const service = await startService(url)
  const load = startLoad(() => service.url, tenant)
  await sleep(SERVING_MS)

  const filler = join(disk, 'filler')
  const stopFilling = fillAgain(filler)
  const filledAt = performance.now()
  await sleep(FULL_MS)
  stopFilling()
  rmSync(filler)
  const returning = momentOfReturn(url)
  // PostgreSQL exits without space for its write-ahead log, immediately or after a recovery attempt.
  let restarted = false
  const tending = setInterval(() => {
    if (postgres.isRunning() || restarted) return
    restarted = true
    void postgres.restart()
  }, 100)
  const returnedAt = await returning
  clearInterval(tending)

  await sleep(SERVING_MS)
  const finding = await conclude(FAULT, scene, { service, load, returns: [returnedAt] })
  const rejected = load.journal.filter(({ sentAt, response }) => sentAt > filledAt && response?.status === 503)
  finding.notes.push(restarted ? 'PostgreSQL exited and was restarted' : 'PostgreSQL continued by itself')
  if (rejected.length === 0) finding.broken.push('the disk was full: no request was affected')
  return finding
}

function mount(path: string): string | undefined {
  if (process.getuid?.() !== 0) return 'mounting a small disk needs root'
  const { status, stderr, error } = spawnSync(
    'mount',
    ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=711`, 'tmpfs', path],
    {
      encoding: 'utf8',
    },
  )
  return status === 0 ? undefined : `a small disk cannot be mounted: ${error?.message ?? stderr.trim()}`
}

/** Uses all free space, including space that is freed later, until the returned function is called. */
function fillAgain(path: string): () => void {
  const file = openSync(path, 'w')
  const take = () => {
    try {
      while (writeSync(file, CHUNK) > 0);
    } catch {
      // The disk is full.
    }
  }
  take()
  const timer = setInterval(take, 10)
  return () => {
    clearInterval(timer)
    closeSync(file)
  }
}
