import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { CHANGING, intercept, startChanges } from '../support/late-changes.ts'
import { UNAVAILABLE } from '../support/service.ts'

/** Short, because the tests of changes that are late wait for it. */
const ANSWER_MS = 300

type Changes = Awaited<ReturnType<typeof startChanges>>

let patient: Changes
let impatient: Changes
beforeAll(async () => {
  patient = await startChanges({})
  impatient = await startChanges({ answer: { ms: ANSWER_MS } })
})

/** Holds the row of an order; returns what lets go of it. */
async function lockOrder({ service }: Changes, orderId: string) {
  const holder = new pg.Client({ connectionString: service.databaseUrl })
  await holder.connect()
  onTestFinished(() => holder.end())
  await holder.query('begin')
  await holder.query('select from payment_intents where order_id = $1 for update', [orderId])
  return () => holder.query('rollback')
}

type Instead = Parameters<typeof intercept>[0]

/** Does `what` with the connection of the first `commit`. */
function atCommit(what: (...of: [Parameters<Instead>[1], Parameters<Instead>[2]]) => Error | null) {
  let isOver = false
  intercept((text, connection, submit) => {
    if (text !== 'commit' || isOver) return submit()
    isOver = true
    return what(connection, submit)
  })
}

async function until(holds: () => Promise<boolean>) {
  while (!(await holds())) await sleep(5)
}

describe.each(CHANGING)('%s', (operation) => {
  it('a change stores nothing when its deadline ends while it waits for the lock of its order', async () => {
    const { orderId, send, isStored } = await impatient.changes[operation]()
    const unlock = await lockOrder(impatient, orderId)
    const { status, body } = await send()
    expect([status, body]).toEqual([503, UNAVAILABLE])
    await unlock()
    await impatient.untilQuiet()
    expect(await isStored()).toBe(false)
    expect((await send()).status).toBe(200)
  })

  it('a change is answered 200 when its commit takes longer than the deadline', async () => {
    const { send, isStored } = await impatient.changes[operation]()
    atCommit(({ stream }, submit) => {
      stream.pause()
      // The deadline began earlier, and so ends earlier.
      setTimeout(() => stream.resume(), ANSWER_MS)
      return submit()
    })
    expect((await send()).status).toBe(200)
    expect(await isStored()).toBe(true)
  })

  it('a change is answered 200 when the answer to its commit is lost and a look-up finds it stored', async () => {
    const { send, isStored } = await patient.changes[operation]()
    atCommit(({ stream }, submit) => {
      stream.pause()
      void until(isStored).then(() => stream.destroy())
      return submit()
    })
    expect((await send()).status).toBe(200)
  })

  it('a change is answered 503 when the answer to its commit is lost and a look-up does not find it', async () => {
    const { send, isStored } = await patient.changes[operation]()
    atCommit(({ stream }) => {
      stream.destroy()
      return null
    })
    const { status, body } = await send()
    expect([status, body]).toEqual([503, UNAVAILABLE])
    expect(await isStored()).toBe(false)
    expect((await send()).status).toBe(200)
  })
})

it('many refunds of one order that wait for its lock hold no connection that another order needs', async () => {
  const crowd = await patient.changes.refundPayment()
  const other = await patient.changes.refundPayment()
  const unlock = await lockOrder(patient, crowd.orderId)
  const waiting = Array.from({ length: 50 }, crowd.send)
  await sleep(50)
  expect((await other.send()).status).toBe(200)
  await unlock()
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200)
})
