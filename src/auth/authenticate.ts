import basicAuth from '@fastify/basic-auth'
import type { FastifyInstance } from 'fastify'
import { unauthorized, unavailable } from '../errors.ts'
import type { AccessKeys, Caller } from './access-keys.ts'
import { secretMatches } from './credentials.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on every route under /v1 before its body is read. */
    caller: Caller
    /** The public half of the credential that was accepted; for the log. */
    publicKey: string | undefined
  }
}

// Public keys are made by us in this shape; whatever else is sent needs no look-up.
const PUBLIC_KEY = /^pk_[A-Za-z0-9]{1,61}$/

export type Authentication = { findKey: AccessKeys['find']; isOutage: (error: unknown) => boolean }

/** Checks the Basic credentials of every request to `app` before a byte of its body is parsed: 401, or `request.caller`. */
export async function registerAuthentication(app: FastifyInstance, { findKey, isOutage }: Authentication) {
  await app.register(basicAuth, {
    authenticate: { realm: 'UPI payments' },
    async validate(publicKey, secret, request) {
      const key = PUBLIC_KEY.test(publicKey) ? await findKey(publicKey).catch(failedLookUp) : undefined
      if (key === undefined || !secretMatches(secret, key.secretHash)) throw unauthorized()
      request.caller = key.caller
      request.publicKey = key.publicKey
    },
  })
  app.addHook('onRequest', app.basicAuth)

  // The plugin answers 401 to every error without a status code; a database that is away is not the caller's fault.
  function failedLookUp(error: Error): never {
    throw isOutage(error) ? unavailable() : Object.assign(error, { statusCode: 500 })
  }
}
