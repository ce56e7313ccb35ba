import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance } from 'fastify'
import { unauthorized } from '../errors.ts'
import type { RateLimits } from '../http/rate-limits.ts'
import type { Patiently } from '../http/time-limits.ts'
import { istDayOf, nextDay, toIstDay } from '../ist.ts'
import type { AccessKey, AccessKeys, Caller } from './access-keys.ts'
import { secretMatches } from './credentials.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on every route under /v1 before its body is read. */
    caller: Caller
    /** The public key that was sent, if it has the form of ours; used by the rate limits and the log. */
    publicKey: string | undefined
    /** The merchant that the request is about, once the caller is known to be allowed to; for the log. */
    mid: string | undefined
  }
}

// We make public keys in this form only, so anything else is refused without a query.
const PUBLIC_KEY = /^pk_[A-Za-z0-9]{1,61}$/

type Authentication = {
  findKey: AccessKeys['find']
  noteUse: AccessKeys['noteUse']
  limits: RateLimits
  patiently: Patiently
  now: () => Date
}

/** Checks the Basic credentials of every request to `app` before a byte of its body is parsed: 401, 429, or `request.caller`. */
export async function registerAuthentication(
  app: FastifyInstance,
  { findKey, noteUse, limits, patiently, now }: Authentication,
) {
  await app.register(basicAuth, {
    authenticate: { realm: 'UPI payments' },
    async validate(publicKey, secret, request) {
      request.publicKey = PUBLIC_KEY.test(publicKey) ? publicKey : undefined
      const key = request.publicKey && (await patiently(request, () => findKey(publicKey)).catch(failedLookUp))
      if (!key) {
        await limits.countUnknownKey(request)
        throw unauthorized()
      }
      if (!secretMatches(secret, key.secretHash)) {
        await limits.countFailure(request)
        throw unauthorized()
      }
      noteDay(key)
      // Without a promise nothing is awaited, because most requests need not wait.
      const paced = limits.paceRequest(publicKey)
      if (paced) await paced
      request.caller = key.caller
      if (key.caller.kind === 'merchant') request.mid = key.caller.merchant.mid
    },
  })
  app.addHook('onRequest', app.basicAuth)

  /** Notes the day on which a key is used, for which no request waits. After a failure the key's next look-up notes it. */
  function noteDay(key: AccessKey) {
    const moment = now()
    if (moment < key.notedUntil) return
    // The key is remembered for a second, in which its other requests have nothing to note.
    key.notedUntil = nextDay(istDayOf(moment))
    noteUse(key.publicKey, toIstDay(moment)).catch(() => undefined)
  }

  // Gives an error the status 500, because the plugin answers 401 to every error without a status code, and a database
  // that is away is not the caller's fault.
  function failedLookUp(error: Error): never {
    throw Object.assign(error, { statusCode: 500 })
  }
}
