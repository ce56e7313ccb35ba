import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import type { Limits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its requests wait for a database that is briefly away, because their callers take a 503 for a final answer. */
    patient?: true
  }
  interface FastifyRequest {
    /** Until when a patient request may wait, by `elapsedMs`; 0 of any other. */
    patientUntil: number
  }
}

/**
 * Returns the result of `read`. A patient request reads again while the database is away. `read` must change nothing: whether
 * an earlier one reached the database is not known.
 */
export type Patiently = <T>(request: FastifyRequest, read: () => Promise<T>) => Promise<T>

export function createPatience(
  isOutage: (error: unknown) => boolean,
  { pauseMs, waiting: limit }: Limits['patience'],
  elapsedMs: () => number,
): Patiently {
  let waiting = 0

  return async (request, read) => {
    for (;;) {
      try {
        return await read()
      } catch (error) {
        const isOver = elapsedMs() + pauseMs > request.patientUntil || request.socket.destroyed
        if (isOver || waiting >= limit || !isOutage(error)) throw error
      }
      waiting++
      await sleep(pauseMs)
      waiting--
    }
  }
}
