import type { FastifyRequest } from 'fastify'
import { expect, it } from 'vitest'
import { isOutage } from '../../src/platform/db/outage.ts'
import { createDatabaseWait } from '../../src/platform/http/time-limits.ts'

const AWAY = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' })

/** A request that may wait for 8 s, on a clock that advances by 100 ms at each call. */
function newDatabaseWait({ waiting = 10 } = {}) {
  let elapsed = 0
  const waitForDatabase = createDatabaseWait(isOutage, { pauseMs: 1, waiting }, () => {
    elapsed += 100
    return elapsed
  })
  const socket = { destroyed: false }
  const request = { waitsUntil: 8_000, socket } as unknown as FastifyRequest
  return { waitForDatabase, request, socket }
}

/** Fails `times` times, then returns the number of calls. */
function backAfter(times: number, error: Error = AWAY) {
  let requested = 0
  return async () => {
    if (requested++ < times) throw error
    return requested
  }
}

it('the service queries the database again until the database is available, for a request that may wait', async () => {
  const { waitForDatabase, request } = newDatabaseWait()
  expect(await waitForDatabase(request, backAfter(20))).toBe(21)
})

it('the service returns the last error once a request has waited for the database for the longest allowed time', async () => {
  const { waitForDatabase, request } = newDatabaseWait()
  await expect(waitForDatabase(request, backAfter(100))).rejects.toBe(AWAY)
})

it('the service queries the database only once for a request that may not wait', async () => {
  const { waitForDatabase, request } = newDatabaseWait()
  await expect(waitForDatabase({ ...request, waitsUntil: 0 } as FastifyRequest, backAfter(1))).rejects.toBe(AWAY)
})

it('the service does not repeat a query that fails because of an error in the service', async () => {
  const fault = new Error('an error')
  const { waitForDatabase, request } = newDatabaseWait()
  await expect(waitForDatabase(request, backAfter(1, fault))).rejects.toBe(fault)
})

it('the service stops querying the database for a waiting request whose client has disconnected', async () => {
  const { waitForDatabase, request, socket } = newDatabaseWait()
  let requested = 0
  const leaving = waitForDatabase(request, async () => {
    if (++requested === 3) socket.destroyed = true
    throw AWAY
  })
  await expect(leaving).rejects.toBe(AWAY)
  expect(requested).toBe(3)
})

it('the service immediately rejects requests beyond the limit on waiting requests', async () => {
  const { waitForDatabase, request } = newDatabaseWait({ waiting: 3 })
  const requested = await Promise.allSettled(Array.from({ length: 5 }, () => waitForDatabase(request, backAfter(2))))
  expect(requested.map(({ status }) => status)).toEqual([...Array(3).fill('fulfilled'), ...Array(2).fill('rejected')])
})
