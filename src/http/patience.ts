import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Limits } from '../limits.ts'
import { createPlaces } from './places.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Waits for a database that is briefly away, because its callers take a 503 for a final answer. */
    patient?: true
  }
  interface FastifyRequest {
    /** Of a patient request. */
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
  /** The last one that it met. */
  outage?: unknown
}

/** One that waits: it is `over` when it has its answer, or needs none. */
type Waiting = { over: boolean; readAgain: () => Promise<void>; giveUp: () => void }

/** Gives every request `patiently`. The first read is made at once; what fails with an outage waits for its turn. */
export function registerPatience(
  app: FastifyInstance,
  isOutage: (error: unknown) => boolean,
  limits: Limits['patience'],
) {
  // In the order in which they wait. Without a connection: a turn takes one, as any request does.
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
    // Who has waited once goes on by turns, or all who waited for a key would read its payments at once.
    if (patience.outage !== undefined) return wait(read, patience)
    return read().catch((error) => {
      if (!isOutage(error)) throw error
      patience.outage = error
      return wait(read, patience)
    })
  }

  /** Rejects with the last outage when its time is up, its client has left, or there is no room. */
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

  /** Lets those who wait read again, the longest waiting first, until nobody waits. */
  async function serveWaiting() {
    readers++
    // What is put back in here is met again, after all others.
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
