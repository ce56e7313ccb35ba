import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runBuiltOps } from '../../support/ops.ts'
import { ROOT } from '../../support/processes.ts'
import type { Outcome } from '../attacks.ts'
import type { Scene } from '../scene.ts'

/** The last part of the attack, in which the migration is to be done. */
const UNLOCKED_SECONDS = 3
/** Adding a column takes PostgreSQL no time, but it needs the strongest lock of the table. */
const MIGRATION = 'alter table payment_intents add column seen_by_the_attack text;\n'

/** An operator migrates while a dump is being made: its lock lets creates pass, but not the migration that waits for it. */
export async function waitWithMigration(scene: Scene, _url: string, seconds: number): Promise<Outcome> {
  const { directory, db, databaseUrl } = scene
  const ops = installNextVersion(join(directory, 'next-version'))
  const dump = await db.connect()
  await dump.query(
    'begin; set local idle_in_transaction_session_timeout = 0; lock table payment_intents in access share mode',
  )
  const startedAt = performance.now()
  const lockedSeconds = seconds - UNLOCKED_SECONDS
  const migrated = runBuiltOps(ops, { DATABASE_URL: databaseUrl }, 'migrate').then(
    () => ({ seconds: (performance.now() - startedAt) / 1_000, fault: undefined }),
    (error: Error) => ({ seconds: (performance.now() - startedAt) / 1_000, fault: error.message }),
  )
  await sleep(lockedSeconds * 1_000)
  await dump.query('rollback')
  dump.release()
  const [{ seconds: took, fault }] = await Promise.all([migrated, sleep(UNLOCKED_SECONDS * 1_000)])
  const end = fault === undefined ? 'done' : 'given up'
  return {
    sent: `ops migrate beside a dump that took ${lockedSeconds} s: ${end} after ${took.toFixed(1)} s`,
    broken: fault === undefined ? [] : [`the migration is done once the dump is: ${fault}`],
  }
}

/** The built service with one migration more; returns the path of its command line. */
function installNextVersion(directory: string): string {
  for (const path of ['dist', 'migrations', 'package.json']) {
    cpSync(join(ROOT, path), join(directory, path), { recursive: true })
  }
  writeFileSync(join(directory, 'migrations', '9999_add_a_column.sql'), MIGRATION)
  return join(directory, 'dist/cli/ops.js')
}
