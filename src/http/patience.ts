import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Limits } from '../limits.ts'
import { createPlaces } from './places.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its requests wait for a database that is briefly away, because their callers take a 503 for a final answer. */
    patient?: true
  }
  interface FastifyRequest {
    /** Set on requests of patient operations. */
    patience: Patience | undefined
    /**
     * The result of `read`. A patient request reads again while the database is away. `read` must change nothing: whether
     * an earlier one reached the database is not known.
     */
    patiently: <T>(read: () => Promise<T>) => Promise<T>
  }
}

type Patience = {
  ip: string
  /** By performance.now(). */
  until: number
  /** Aborts when the client has left. */
  left: AbortSignal
  /** The last error of its reads. */
  outage?: unknown
}

/** A waiting read. `over` means that it has succeeded, failed for good, or is not needed any more. */
type Waiting = { over: boolean; readAgain: () => Promise<void>; giveUp: () => void }

/** Gives every request `patiently`. The first read is made at once; what fails with an outage waits for its turn. */
export function registerPatience(
  app: FastifyInstance,
  isOutage: (error: unknown) => boolean,
  limits: Limits['patience'],
) {
  // Longest waiting first. Waiting holds no database connection; only a read does.
  const waiting = new Set<Waiting>()
  const { scarceFrom, scarceOfAddress } = limits
  const places = createPlaces({ all: limits.waiting, scarceFrom, scarceOfAddress })
  let readers = 0
  let closing = false

  app.decorateRequest('patience', undefined)
  app.decorateRequest('patiently', patiently)
  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.patient) {
      const left = new AbortController()
      // Not request.signal, which already tells of a body that has been read.
      reply.raw.once('close', () => left.abort())
      request.patience = { ip: request.ip, until: performance.now() + limits.ms, left: left.signal }
    }
    done()
  })
  // Otherwise the service would end up to 8 s later.
  app.addHook('preClose', (done) => {
    closing = true
    for (const { giveUp } of waiting) giveUp()
    done()
  })

  function patiently<T>(this: FastifyRequest, read: () => Promise<T>): Promise<T> {
    const { patience } = this
    if (patience === undefined) return read()
    // A request that has waited for its key waits its turn for its payment too. Otherwise all of them would read at once.
    if (patience.outage !== undefined) return wait(read, patience)
    return read().catch((error) => {
      if (!isOutage(error)) throw error
      patience.outage = error
      return wait(read, patience)
    })
  }

  /** Rejects with the last error when the time is up, the client has left, or no place is free. */
  function wait<T>(read: () => Promise<T>, patience: Patience): Promise<T> {
    const { ip, until, left } = patience
    const leavePlace = closing || left.aborted ? undefined : places.take(ip)
    if (leavePlace === undefined) return Promise.reject(patience.outage)
    return new Promise((resolve, reject) => {
      const call: Waiting = {
        over: false,
        async readAgain() {
          try {
            resolve(await read())
            end()
          } catch (error) {
            if (isOutage(error)) patience.outage = error
            else {
              reject(error)
              end()
            }
          }
        },
        giveUp() {
          reject(patience.outage)
          end()
        },
      }
      const timer = setTimeout(call.giveUp, until - performance.now())
      left.addEventListener('abort', call.giveUp)
      const end = () => {
        call.over = true
        leavePlace()
        waiting.delete(call)
        clearTimeout(timer)
        left.removeEventListener('abort', call.giveUp)
      }
      waiting.add(call)
      if (readers < limits.readsAtOnce) void serveWaiting()
    })
  }

  /** Reads again for one waiting request after the other, the longest waiting first, until none is left. */
  async function serveWaiting() {
    readers++
    // A Set iterates in insertion order, so a request that is put back comes after all others.
    for (const call of waiting) {
      waiting.delete(call)
      await call.readAgain()
      if (call.over) continue
      if (closing) call.giveUp()
      else waiting.add(call)
      await sleep(limits.pauseMs)
    }
    readers--
  }
}
