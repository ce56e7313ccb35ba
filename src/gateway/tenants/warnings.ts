import { HIGHEST_MAX_RUPEES, USUAL_MAX_RUPEES } from '../../platform/money.ts'
import type { Merchant } from './merchants.ts'
import { UNCLASSIFIED_MCC } from './schema.ts'

/**
 * A setting that is allowed, but makes wallets reject payments, usually because they treat the merchant as an individual
 * .
 */
export type MerchantWarning = 'no category' | 'private address' | 'QR-only address' | 'high max amount'

/**
 * Handles that wallets assign to individuals. Merchants may have the same handles, so such a handle causes a warning,
 * never an error.
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

/** UPI addresses that Paytm assigns to online merchants, with the same handles as for individuals. */
const STORE_UNDER_PRIVATE_HANDLE = /^paytm[.-]/

/**
 * UPI addresses that PhonePe and Paytm assign to small merchants for the QR code at the counter. Source: NPCI, circular
 * OC 76C.
 */
const QR_ONLY = /^(?:q\d+@ybl|paytmqr\w+@)/

/**
 * A UPI address that begins with an Indian mobile number, with or without the country code or a suffix such as `-2`.
 */
const MOBILE_NUMBER = /^(?:91)?[6-9]\d{9}(?:-\w+)?@/

/**
 * The day from which the maximums by category are in force. The maximums for health and education are older and have
 * not changed.
 */
export const CATEGORY_RULE_DATE = '15 September 2025'

/** Largest payment to a verified merchant, and the sum of a customer's payments in 24 hours, in whole rupees. */
type CategoryLimits = { maxRupees: number; dayRupees?: number }

/**
 * Categories whose limits differ from the usual limits. Sources for verified merchants: NPCI's circular of 28 August
 * 2025, OC 185 of December 2023 and OC 185A of August 2024. Source for the sums in 24 hours and for the categories 7409
 * and 7410: the press (hellobanker.in, Mint).
 */
const CATEGORY_LIMITS = new Map<string, CategoryLimits>(
  (
    [
      // Categories for insurance, capital market, travel, government and collections.
      ['5960 6300 6381 6529 6211 4511 4722 7011 9311 9399 7322', 1_000_000],
      // Categories for health.
      ['0742 8011 8021 8031 8041 8042 8049 8050 8062 8071 8099', 1_000_000],
      // Categories for education.
      ['8211 8220 8241 8244 8249 8299', 1_000_000],
      // Category for credit card bills.
      ['5413', 600_000],
      // Categories for financial institutions and term deposits.
      ['6012 7410', 500_000],
      // Categories for jewellery.
      ['5094 5944', 600_000, 200_000],
      // Category for the first payment into a new bank account.
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
  // The category matters only for the acquirer `direct`, because other acquirers write their own category into links.
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
