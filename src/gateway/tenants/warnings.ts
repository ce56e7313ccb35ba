import { HIGHEST_MAX_RUPEES, USUAL_MAX_RUPEES } from '../../platform/money.ts'
import type { Merchant } from './merchants.ts'
import { UNCLASSIFIED_MCC } from './schema.ts'

/**
 * A setting that is allowed, but makes wallets reject payments, usually because they treat the merchant as a private
 * person.
 */
export type MerchantWarning = 'no category' | 'private address' | 'QR-only address' | 'high max amount'

/**
 * Handles that wallets assign to private persons. Merchants may have the same handle: a reason to warn, never to
 * reject.
 */
const HANDLES_OF_WALLETS = {
  'Google Pay': ['oksbi', 'okaxis', 'okhdfcbank', 'okicici'],
  PhonePe: ['ybl', 'ibl', 'axl'],
  Paytm: ['paytm', 'ptyes', 'ptsbi', 'pthdfc', 'ptaxis'],
  BHIM: ['upi'],
  'Amazon Pay': ['apl', 'yapl', 'rapl'],
  WhatsApp: ['waaxis', 'wahdfcbank', 'waicici', 'wasbi'],
}
const PRIVATE_HANDLES = new Set(Object.values(HANDLES_OF_WALLETS).flat())

/** UPI addresses that Paytm assigns to online merchants under the handles of private persons. */
const STORE_UNDER_PRIVATE_HANDLE = /^paytm[.-]/

/**
 * UPI addresses that PhonePe and Paytm assign to small merchants for the QR at their counter. Source: NPCI, circular OC
 * 76C.
 */
const QR_ONLY = /^(?:q\d+@ybl|paytmqr\w+@)/

/** An Indian mobile number as UPI address, with or without country code, or a suffix such as `-2`. */
const MOBILE_NUMBER = /^(?:91)?[6-9]\d{9}(?:-\w+)?@/

/** The day from which the maximums by category are in force; those of health and education are older and unchanged. */
export const CATEGORY_RULE_DATE = '15 September 2025'

/** Largest payment to a verified merchant, and the sum of a customer's payments in 24 hours, in whole rupees. */
type CategoryLimits = { maxRupees: number; dayRupees?: number }

/**
 * Categories with other limits than the usual ones. Sources: NPCI's circular of 28 August 2025, OC 185 of December 2023
 * and OC 185A of August 2024, on verified merchants; sums in 24 hours and 7409, 7410 by the press (hellobanker.in,
 * Mint).
 */
const CATEGORY_LIMITS = new Map<string, CategoryLimits>(
  (
    [
      // Insurance, capital market, travel, government, collections.
      ['5960 6300 6381 6529 6211 4511 4722 7011 9311 9399 7322', 1_000_000],
      // Health.
      ['0742 8011 8021 8031 8041 8042 8049 8050 8062 8071 8099', 1_000_000],
      // Education.
      ['8211 8220 8241 8244 8249 8299', 1_000_000],
      // Card bills.
      ['5413', 600_000],
      // Financial institutions, term deposits.
      ['6012 7410', 500_000],
      // Jewellery.
      ['5094 5944', 600_000, 200_000],
      // First payment into a new bank account.
      ['7409', 200_000, 200_000],
    ] as const
  ).flatMap(([codes, dayRupees, maxRupees = HIGHEST_MAX_RUPEES]) =>
    codes.split(' ').map((mcc) => [mcc, { maxRupees, dayRupees }] as const),
  ),
)

export const categoryLimits = (mcc: string): CategoryLimits =>
  CATEGORY_LIMITS.get(mcc) ?? { maxRupees: USUAL_MAX_RUPEES }

type Warned = Pick<Merchant, 'mcc' | 'vpa' | 'acquirer' | 'maxAmount'>

export function merchantWarnings({ mcc, vpa, acquirer, maxAmount }: Warned) {
  const warnings: MerchantWarning[] = []
  // The category matters for `direct` only: other acquirers write their own category into links.
  const isDirect = acquirer === 'direct'
  if (isDirect && mcc === UNCLASSIFIED_MCC) warnings.push('no category')
  if (QR_ONLY.test(vpa.toLowerCase())) warnings.push('QR-only address')
  else if (looksPrivate(vpa.toLowerCase())) warnings.push('private address')
  if (isDirect && maxAmount > categoryLimits(mcc).maxRupees) warnings.push('high max amount')
  return warnings
}

function looksPrivate(vpa: string): boolean {
  if (MOBILE_NUMBER.test(vpa)) return true
  return PRIVATE_HANDLES.has(vpa.slice(vpa.indexOf('@') + 1)) && !STORE_UNDER_PRIVATE_HANDLE.test(vpa)
}
