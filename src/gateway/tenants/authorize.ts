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

/**
 * Throws 403 unless the key belongs to the request's pid, the operator has linked that partner to the mid, and the key
 * has the right that the operation requires. Partners of a disabled merchant still read its settlements. A single
 * look-up by (pid, mid) decides, so that the response time does not reveal which merchants exist.
 */
export async function authorizePartner(
  request: Authorizing<{ pid: string; mid: string }>,
  isLinked: Partners['isLinked'],
): Promise<void> {
  const { caller, body } = request
  if (caller.kind !== 'partner' || caller.pid !== body.pid || !(await isLinked(body.pid, body.mid))) throw forbidden()
  requireRight(request)
}

function requireRight({ caller, routeOptions }: Pick<FastifyRequest, 'caller' | 'routeOptions'>) {
  const { access } = routeOptions.config
  if (!caller.rights.some((right) => right === access)) throw lacksRight(String(access))
}
