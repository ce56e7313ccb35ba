import type { Caller } from '../auth/access-keys.ts'
import { forbidden } from '../errors.ts'
import type { Merchant } from './merchants.ts'
import type { Partners } from './partners.ts'

/** The merchant that `caller` is, when it is the one it names and may take payments; else 403. */
export function authorizeMerchant(caller: Caller, mid: string): Merchant {
  if (caller.kind !== 'merchant' || caller.merchant.mid !== mid || caller.merchant.disabledAt !== null)
    throw forbidden()
  return caller.merchant
}

/**
 * Passes when `caller` is the partner it names and looks after the merchant; else 403.
 * The merchant may be disabled: its partners still read what was settled. One look-up by (pid, mid), whether or not
 * the merchant exists, so that the time tells nothing.
 */
export async function authorizePartner(caller: Caller, pid: string, mid: string, isLinked: Partners['isLinked']) {
  if (caller.kind !== 'partner' || caller.pid !== pid || !(await isLinked(pid, mid))) throw forbidden()
}
