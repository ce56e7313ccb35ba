import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { CHANGING, intercept, startChanges } from '../support/late-changes.ts'
import { UNAVAILABLE } from '../support/service.ts'

const RESPONSE_MS = 10_000

let started: Awaited<ReturnType<typeof startChanges>>
beforeAll(async () => {
  // The limits are longer than the deadline, so that neither the commit nor a query has timed out when it passes.
  const limits = {
    response: { ms: RESPONSE_MS, commitMs: 2 * RESPONSE_MS },
    database: { queryTimeoutMs: 3 * RESPONSE_MS },
  }
  started = await startChanges(limits)
})

/**
 * Returns a function that lets the deadlines of the following requests pass. Until then, no timer of the service fires.
 */
function holdDeadlines(): () => void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return () => void vi.advanceTimersByTime(RESPONSE_MS)
}

/** Locks the row of an order; returns a function that releases the lock. */
async function lockOrder(orderId: string) {
  const holder = new pg.Client({ connectionString: started.service.databaseUrl })
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query('begin')
  // With mid, because Citus locks rows of one merchant only.
  const ofOrder = [started.mid, orderId]
  await holder.query('select from payment_intents where mid = $1 and order_id = $2 for update', ofOrder)
  return () => holder.query('rollback')
}

type Instead = Parameters<typeof intercept>[0]

/** Calls `what` with the connection of the first statement that `pattern` matches. */
function atFirst(pattern: RegExp, what: (...of: [Parameters<Instead>[1], Parameters<Instead>[2]]) => Error | null) {
  let isOver = false
  intercept((text, connection, submit) => {
    if (isOver || !pattern.test(text)) return submit()
    isOver = true
    return what(connection, submit)
  })
}

const COMMIT = /^commit$/

async function until(holds: () => Promise<boolean>) {
  while (!(await holds())) await sleep(5)
}

describe.each(CHANGING)('%s', (operation) => {
  it('stores nothing if the deadline passes while the change waits for the lock of its order', async () => {
    const { orderId, send, isStored } = await started.changes[operation]()
    const unlock = await lockOrder(orderId)
    const endDeadlines = holdDeadlines()
    atFirst(/for no key update/, (_connection, submit) => {
      setImmediate(endDeadlines)
      return submit()
    })
    const { status, body } = await send()
    expect([status, body]).toEqual([503, UNAVAILABLE])
    await unlock()
    await started.untilQuiet()
    expect(await isStored()).toBe(false)
    expect((await send()).status).toBe(200)
  })

  it('returns 200 if the commit of a change takes longer than the deadline', async () => {
    const { send, isStored } = await started.changes[operation]()
    const endDeadlines = holdDeadlines()
    atFirst(COMMIT, ({ stream }, submit) => {
      stream.pause()
      setImmediate(() => {
        endDeadlines()
        stream.resume()
      })
      return submit()
    })
    expect((await send()).status).toBe(200)
    expect(await isStored()).toBe(true)
  })

  it('returns 200 if the response to the commit is lost and a look-up finds the stored change', async () => {
    const { send, isStored } = await started.changes[operation]()
    atFirst(COMMIT, ({ stream }, submit) => {
      stream.pause()
      void until(isStored).then(() => stream.destroy())
      return submit()
    })
    expect((await send()).status).toBe(200)
  })

  it('returns 503 if the response to the commit is lost and a look-up does not find the change', async () => {
    const { send, isStored } = await started.changes[operation]()
    atFirst(COMMIT, ({ stream }) => {
      stream.destroy()
      return null
    })
    const { status, body } = await send()
    expect([status, body]).toEqual([503, UNAVAILABLE])
    expect(await isStored()).toBe(false)
    expect((await send()).status).toBe(200)
  })
})

it('the service leaves database connections for other orders while many refunds of one order wait for the order’s lock', async () => {
  const crowd = await started.changes.refundPayment()
  const other = await started.changes.refundPayment()
  const unlock = await lockOrder(crowd.orderId)
  const waiting = Array.from({ length: 50 }, crowd.send)
  await sleep(50)
  expect((await other.send()).status).toBe(200)
  await unlock()
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200)
})
