import type { Platform } from '../payments/upi-links.ts'

/**
 * The system that a browser says it runs on, by its User-Agent: so the links are right without JavaScript too. An iPad says
 * that it is a Mac, and so is `unknown`. UPI apps are bound to the SIM of a phone by an SMS, which an iPad cannot send: its
 * customer scans the QR, which a tablet shows beside the links.
 */
export function platformOf(userAgent = ''): Platform {
  if (/\bAndroid\b/.test(userAgent)) return 'android'
  return /\b(?:iPhone|iPad|iPod)\b/.test(userAgent) ? 'ios' : 'unknown'
}
