import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { unauthorized } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { paceByKey, registerCredentialLimits } from '../../platform/http/rate-limits.ts'
import type { WaitForDatabase } from '../../platform/http/time-limits.ts'
import { istDayOf, nextDay, toIstDay } from '../../platform/time.ts'
import type { AccessKey, AccessKeys, Caller } from './access-keys.ts'
import { secretMatches } from './credentials.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The merchant or partner to which the key belongs. Set on every route under /v1 before the body is read. */
    caller: Caller
    /**
     * The public key in the request, for the rate limits and the log; undefined if the text is not in the form of one.
     */
    publicKey: string | undefined
    /** The merchant of the request, for the log. Set once the caller is authorized for the merchant. */
    mid: string | undefined
  }
}

// All public keys have this form, so other text is rejected without a query.
const PUBLIC_KEY = /^pk_[A-Za-z0-9]{1,61}$/

type Dependencies = {
  findKey: (publicKey: string) => Promise<AccessKey | undefined>
  noteUse: AccessKeys['noteUse']
  config: { rateLimitPerSecond: number }
  limits: Pick<Limits, 'rates'>
  waitForDatabase: WaitForDatabase
  now: () => Date
  elapsedMs: () => number
  sleep: (ms: number) => Promise<unknown>
}

/**
 * Requires an API key on every route of `app`, and limits the requests of each key. Checks Basic credentials before the
 * body is parsed: rejects with 401 or 429, or sets `request.caller`.
 */
export async function requireKey(
  app: FastifyInstance,
  { findKey, noteUse, config, limits, waitForDatabase, now, ...clock }: Dependencies,
) {
  const paceRequest = paceByKey(config.rateLimitPerSecond, clock)
  await requireCredentials<AccessKey>(app, {
    rates: limits.rates,
    findKey: (publicKey, request) => waitForDatabase(request, () => findKey(publicKey)),
    accept(key, request) {
      noteDay(key)
      request.caller = key.caller
      if (key.caller.kind === 'merchant') request.mid = key.caller.merchant.mid
      return paceRequest(key.publicKey)
    },
  })

  /**
   * Stores the day on which a key is used. No request waits for the write. After an error, the next look-up of the key
   * repeats the write.
   */
  function noteDay(key: AccessKey) {
    const moment = now()
    if (moment < key.notedUntil) return
    // The key is cached for a second, and other requests in this second must not store the day again.
    key.notedUntil = nextDay(istDayOf(moment))
    noteUse(key.publicKey, toIstDay(moment)).catch(() => undefined)
  }
}

type Credentials<Key> = {
  rates: Limits['rates']
  findKey: (publicKey: string, request: FastifyRequest) => Promise<Key | undefined>
  /** Called with the key of a valid request, which waits for a promise that `accept` returns. */
  accept: (key: Key, request: FastifyRequest) => unknown
}

/**
 * Requires Basic credentials on every route of `app`: a public key that `findKey` returns, and its secret. Rejects with
 * 401, or with 429 after too many invalid credentials.
 */
export async function requireCredentials<Key extends { secretHash: Buffer }>(
  app: FastifyInstance,
  { rates, findKey, accept }: Credentials<Key>,
) {
  const { countUnknownKey, countFailure } = await registerCredentialLimits(app, rates)
  await app.register(basicAuth, {
    authenticate: { realm: 'UPI payments' },
    // RFC 9110, section 11.4, allows several blanks between the scheme and the credentials.
    strictCredentials: false,
    async validate(publicKey, secret, request) {
      request.publicKey = PUBLIC_KEY.test(publicKey) ? publicKey : undefined
      const key = request.publicKey && (await findKey(publicKey, request).catch(failedLookUp))
      if (!key) {
        await countUnknownKey(request)
        throw unauthorized()
      }
      if (!secretMatches(secret, key.secretHash)) {
        await countFailure(request)
        throw unauthorized()
      }
      await accept(key, request)
    },
  })
  app.addHook('onRequest', app.basicAuth)

  // The plugin would send 401 for an error without a status, but a database outage is not the caller's error.
  function failedLookUp(error: Error): never {
    throw Object.assign(error, { statusCode: 500 })
  }
}
