import { forbidden, mayNotRefund } from '../errors.ts'
import type { Caller } from './access-keys.ts'
import type { Merchant } from './merchants.ts'
import type { Partners } from './partners.ts'

/** Returns the merchant whose key the caller holds, if that is `mid` and is not disabled; else throws 403. */
export function authorizeMerchant(caller: Caller, mid: string): Merchant {
  if (caller.kind !== 'merchant' || caller.merchant.mid !== mid || caller.merchant.disabledAt !== null)
    throw forbidden()
  return caller.merchant
}

/** The same, for a key that has the right to send money back. */
export function authorizeRefunds(caller: Caller, mid: string): Merchant {
  const merchant = authorizeMerchant(caller, mid)
  if (caller.kind !== 'merchant' || !caller.mayRefund) throw mayNotRefund()
  return merchant
}

/**
 * Throws 403 unless the caller holds a key of `pid` and the operator has linked that partner to `mid`. The merchant may be
 * disabled: its partners still read what was settled. There is one look-up by (pid, mid) whether or not the merchant
 * exists, so that the response time does not reveal which merchants exist.
 */
export async function authorizePartner(caller: Caller, pid: string, mid: string, isLinked: Partners['isLinked']) {
  if (caller.kind !== 'partner' || caller.pid !== pid || !(await isLinked(pid, mid))) throw forbidden()
}
