import { blockCloses, lockForClose } from '../../books/closing/close.ts'
import { STORING_LIMIT_MS } from '../../gateway/payments/outcome.ts'
import { inTransaction, type Queryable } from '../../platform/db/pool.ts'
import type { Context } from './command.ts'
import { CommandError } from './errors.ts'

/** Largest accepted difference between the operator's clock and PostgreSQL's, well below STORING_LIMIT_MS. */
const CLOCK_TOLERANCE_MS = 5_000

/** Pause after which the clock certainly returns a later millisecond. */
const NEXT_TIME_MS = 10

/**
 * Blocks closes until the end of the transaction, and then returns the current time, with which the transaction stores
 * its change. Reports compare this time with the time of a close: a change that is not stored when the close reads must
 * have a later time, otherwise neither month includes the change.
 */
export async function timeOfChange(client: Queryable): Promise<Date> {
  await blockCloses(client)
  return new Date()
}

/**
 * Returns the time of a close, once every change with this time or an earlier time is stored. Waits for the changes of
 * other commands, and then, without locks, for reports of the service, whose role has no right to `closed_months`.
 */
export async function timeOfClose({ db, sleep, databaseTime, noteInText }: Context): Promise<Date> {
  const closedAt = await inTransaction(db, async (client) => {
    requireSameTime(await databaseTime(client))
    await lockForClose(client)
    const now = new Date()
    // An import that waits for the lock reads the clock as soon as the lock is released, and may take minutes.
    await sleep(NEXT_TIME_MS)
    return now
  })
  const seconds = STORING_LIMIT_MS / 1_000
  noteInText(`waiting ${seconds} s until the service has stored all earlier reports …`)
  await sleep(STORING_LIMIT_MS)
  return closedAt
}

function requireSameTime(databaseTime: Date): void {
  const aheadMs = Date.now() - databaseTime.getTime()
  if (Math.abs(aheadMs) <= CLOCK_TOLERANCE_MS) return
  const difference = `${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} PostgreSQL’s`
  throw new CommandError(
    `this computer’s clock is ${difference}: synchronize the clocks of both computers, then run the command again`,
  )
}
