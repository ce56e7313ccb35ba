import type { FastifyRequest } from 'fastify'
import { expect, it } from 'vitest'
import { isOutage } from '../../src/platform/db/outage.ts'
import { createPatience } from '../../src/platform/http/time-limits.ts'

const AWAY = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' })

/** A request that may wait, whose time is 8 s of a clock that each look at it moves by 100 ms. */
function newPatience({ waiting = 10 } = {}) {
  let elapsed = 0
  const patiently = createPatience(isOutage, { pauseMs: 1, waiting }, () => {
    elapsed += 100
    return elapsed
  })
  const socket = { destroyed: false }
  const request = { waitsUntil: 8_000, socket } as unknown as FastifyRequest
  return { patiently, request, socket }
}

/** Fails `times`, and then returns how often it was asked. */
function backAfter(times: number, error: Error = AWAY) {
  let asked = 0
  return async () => {
    if (asked++ < times) throw error
    return asked
  }
}

it('a request that may wait queries the database again until the database is back', async () => {
  const { patiently, request } = newPatience()
  expect(await patiently(request, backAfter(20))).toBe(21)
})

it('a request that may wait for the database gives up with the last error when its time is over', async () => {
  const { patiently, request } = newPatience()
  await expect(patiently(request, backAfter(100))).rejects.toBe(AWAY)
})

it('a request that may not wait for the database queries it once', async () => {
  const { patiently, request } = newPatience()
  await expect(patiently({ ...request, waitsUntil: 0 } as FastifyRequest, backAfter(1))).rejects.toBe(AWAY)
})

it('a query that fails by a fault of the service is not repeated', async () => {
  const fault = new Error('a fault')
  const { patiently, request } = newPatience()
  await expect(patiently(request, backAfter(1, fault))).rejects.toBe(fault)
})

it('a waiting request whose client has left queries the database no more', async () => {
  const { patiently, request, socket } = newPatience()
  let asked = 0
  const leaving = patiently(request, async () => {
    if (++asked === 3) socket.destroyed = true
    throw AWAY
  })
  await expect(leaving).rejects.toBe(AWAY)
  expect(asked).toBe(3)
})

it('requests beyond the number that may wait are refused at once', async () => {
  const { patiently, request } = newPatience({ waiting: 3 })
  const asked = await Promise.allSettled(Array.from({ length: 5 }, () => patiently(request, backAfter(2))))
  expect(asked.map(({ status }) => status)).toEqual([...Array(3).fill('fulfilled'), ...Array(2).fill('rejected')])
})
