import type { FastifyRequest } from 'fastify'
import { forbidden, lacksRight } from '../../errors.ts'
import type { Merchant } from './merchants.ts'
import type { Partners } from './partners.ts'

type Authorizing<Body> = Pick<FastifyRequest, 'caller' | 'routeOptions'> & { body: Body }

/**
 * Returns the key's merchant if the merchant's mid is that of the request, the merchant is not disabled, and the key
 * has the right that the operation requires; otherwise throws 403.
 */
export function authorizeMerchant(request: Authorizing<{ mid: string }>): Merchant {
  const { caller, body } = request
  if (caller.kind !== 'merchant' || caller.merchant.mid !== body.mid || caller.merchant.disabledAt !== null)
    throw forbidden()
  requireRight(request)
  return caller.merchant
}

/** Throws 403 unless the key belongs to the request's pid and has the right that the operation requires. */
export function authorizePartner(request: Authorizing<{ pid: string }>): void {
  const { caller, body } = request
  if (caller.kind !== 'partner' || caller.pid !== body.pid) throw forbidden()
  requireRight(request)
}

/**
 * Throws 403 like authorizePartner, and unless the operator has linked the partner to the request's mid. Partners of a
 * disabled merchant still read its lists. A single look-up by (pid, mid) decides, so that the response time does not
 * reveal which merchants exist.
 */
export async function authorizeLinked(
  request: Authorizing<{ pid: string; mid: string }>,
  isLinked: Partners['isLinked'],
): Promise<void> {
  authorizePartner(request)
  if (!(await isLinked(request.body.pid, request.body.mid))) throw forbidden()
}

function requireRight({ caller, routeOptions }: Pick<FastifyRequest, 'caller' | 'routeOptions'>) {
  const { access } = routeOptions.config
  if (!caller.rights.some((right) => right === access)) throw lacksRight(String(access))
}
