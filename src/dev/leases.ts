import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processStamp, sleepSync } from './processes.ts'

/** How long one process waits for another that creates the database, starts or stops the server. */
const LOCK_TIMEOUT_MS = 60_000
const LOCK_POLL_MS = 20
/** A lock that names no process is just being written; after this time its writer must have died before it wrote the name. */
const NAMELESS_LOCK_TIMEOUT_MS = 5_000

let leasesTaken = 0

/**
 * Notes that this process uses what lies in `directory`, until the returned function is called or the process ends,
 * however it ends.
 */
export function takeLease(directory: string): () => void {
  const folder = join(directory, 'leases')
  mkdirSync(folder, { recursive: true })
  leasesTaken += 1
  const lease = join(folder, `${process.pid}.${processStamp(process.pid)}.${leasesTaken}`)
  writeFileSync(lease, '')
  return () => rmSync(lease, { force: true })
}

/** Whether any living process holds a lease on `directory`. Forgets those of the dead. */
export function isLeased(directory: string): boolean {
  const folder = join(directory, 'leases')
  const living = readdirSync(folder).filter((lease) => {
    const [pid, stamp] = lease.split('.')
    if (processStamp(Number(pid)) === stamp) return true
    rmSync(join(folder, lease), { force: true })
    return false
  })
  return living.length > 0
}

/**
 * Waits until nobody holds the lock on `directory`, this process included, and takes it. Returns the function that
 * releases it.
 */
export async function lock(directory: string): Promise<() => void> {
  const deadline = Date.now() + LOCK_TIMEOUT_MS
  for (;;) {
    const unlock = tryLock(directory)
    if (unlock) return unlock
    if (Date.now() > deadline) throw new Error(`Another process has held ${lockFile(directory)} for too long`)
    await sleep(LOCK_POLL_MS)
  }
}

/**
 * The same as `lock`, but blocks, for exit handlers. Returns undefined after the time-out, and at once when this process
 * itself holds the lock, because the code that would release it cannot run any more.
 */
export function lockSync(directory: string): (() => void) | undefined {
  const deadline = Date.now() + LOCK_TIMEOUT_MS
  for (;;) {
    const unlock = tryLock(directory)
    if (unlock || readHolder(directory)?.pid === process.pid || Date.now() > deadline) return unlock
    sleepSync(LOCK_POLL_MS)
  }
}

const lockFile = (directory: string) => join(directory, 'lock')

function tryLock(directory: string): (() => void) | undefined {
  const file = lockFile(directory)
  if (create(file, `${process.pid} ${processStamp(process.pid)}`)) return () => rmSync(file, { force: true })
  if (isAbandoned(directory)) breakLock(directory)
  return undefined
}

/**
 * Two processes that find the same abandoned lock must not remove one after the other: the second would remove the lock
 * that the first has just taken. So they look again, one at a time.
 */
function breakLock(directory: string): void {
  const breaking = `${lockFile(directory)}.breaking`
  if (!create(breaking, '')) {
    if (ageMs(breaking) > NAMELESS_LOCK_TIMEOUT_MS) rmSync(breaking, { force: true })
    return
  }
  if (isAbandoned(directory)) rmSync(lockFile(directory), { force: true })
  rmSync(breaking, { force: true })
}

function isAbandoned(directory: string): boolean {
  const holder = readHolder(directory)
  if (holder === undefined) return false
  return holder.pid > 0
    ? processStamp(holder.pid) !== holder.stamp
    : ageMs(lockFile(directory)) > NAMELESS_LOCK_TIMEOUT_MS
}

function readHolder(directory: string): { pid: number; stamp: string | undefined } | undefined {
  try {
    const [pid, stamp] = readFileSync(lockFile(directory), 'utf8').split(' ')
    return { pid: Number(pid), stamp }
  } catch {
    return undefined
  }
}

function create(file: string, content: string): boolean {
  try {
    writeFileSync(file, content, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function ageMs(file: string): number {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat ? Date.now() - stat.mtimeMs : 0
}
