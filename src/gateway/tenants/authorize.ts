import { forbidden, mayNotRefund } from '../../errors.ts'
import type { Caller } from './access-keys.ts'
import type { Merchant } from './merchants.ts'
import type { Partners } from './partners.ts'

/** Returns the key's merchant if the merchant's mid is `mid` and the merchant is not disabled; otherwise throws 403. */
export function authorizeMerchant(caller: Caller, mid: string): Merchant {
  if (caller.kind !== 'merchant' || caller.merchant.mid !== mid || caller.merchant.disabledAt !== null)
    throw forbidden()
  return caller.merchant
}

/** Returns the merchant like authorizeMerchant if the key has the right to refund; otherwise throws 403. */
export function authorizeRefunds(caller: Caller, mid: string): Merchant {
  const merchant = authorizeMerchant(caller, mid)
  if (caller.kind !== 'merchant' || !caller.mayRefund) throw mayNotRefund()
  return merchant
}

/** Throws 403 unless the key belongs to the partner `pid`. */
export function authorizePartner(caller: Caller, pid: string) {
  if (caller.kind !== 'partner' || caller.pid !== pid) throw forbidden()
}

/**
 * Throws 403 unless the key belongs to `pid` and the operator has linked that partner to `mid`. Partners of a disabled
 * merchant still read its settlements. A single look-up by (pid, mid) decides, so that the response time does not
 * reveal which merchants exist.
 */
export async function authorizeLinked(
  caller: Caller,
  { pid, mid }: { pid: string; mid: string },
  isLinked: Partners['isLinked'],
) {
  authorizePartner(caller, pid)
  if (!(await isLinked(pid, mid))) throw forbidden()
}
