import type { Merchant } from './merchants.ts'
import { UNCLASSIFIED_MCC } from './schema.ts'

/** A setting that is allowed, yet makes wallets take the merchant for a private person. */
export type MerchantWarning = 'no category' | 'private address'

/** Handles that wallets give to private persons. Shops may have the same handle: a reason to warn, never to refuse. */
const HANDLES_OF_WALLETS = {
  'Google Pay': ['oksbi', 'okaxis', 'okhdfcbank', 'okicici'],
  PhonePe: ['ybl', 'ibl', 'axl'],
  Paytm: ['paytm', 'ptyes', 'ptsbi', 'pthdfc', 'ptaxis'],
  BHIM: ['upi'],
  'Amazon Pay': ['apl', 'yapl', 'rapl'],
  WhatsApp: ['waaxis', 'wahdfcbank', 'waicici', 'wasbi'],
}
const PRIVATE_HANDLES = new Set(Object.values(HANDLES_OF_WALLETS).flat())

/** UPI addresses that PhonePe and Paytm give to shops under the handles of private persons. */
const SHOP_UNDER_PRIVATE_HANDLE = /^(?:q\d+@ybl|paytmqr\w+@|paytm[.-])/

/** An Indian mobile number as UPI address, with or without country code, or a suffix such as `-2`. */
const MOBILE_NUMBER = /^(?:91)?[6-9]\d{9}(?:-\w+)?@/

export function merchantWarnings({ mcc, vpa, acquirer }: Pick<Merchant, 'mcc' | 'vpa' | 'acquirer'>) {
  const warnings: MerchantWarning[] = []
  // The category matters for `direct` only: other acquirers write a category of their own into links.
  if (acquirer === 'direct' && mcc === UNCLASSIFIED_MCC) warnings.push('no category')
  if (looksPrivate(vpa.toLowerCase())) warnings.push('private address')
  return warnings
}

function looksPrivate(vpa: string): boolean {
  if (MOBILE_NUMBER.test(vpa)) return true
  return PRIVATE_HANDLES.has(vpa.slice(vpa.indexOf('@') + 1)) && !SHOP_UNDER_PRIVATE_HANDLE.test(vpa)
}
