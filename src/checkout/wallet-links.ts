import { upiLinks } from '../payments/upi-links.ts'

/** What a link is opened on. `unknown` is every device that does not say that it is one of the others. */
export type Platform = 'android' | 'ios' | 'unknown'

/** A link and the app that it opens; `any` opens the one that the customer, or else the system, chooses. */
export type WalletLink = { app: 'any' | 'Google Pay' | 'PhonePe' | 'Paytm' | 'BHIM' | 'CRED'; href: string }

/**
 * The wallets by their number of payments, as each system finds them. Sources, read in November 2026: Google, "Integrate Google
 * Pay for in-app payments" for iOS and Android; Juspay, "UPI Package Names"; Razorpay, "List of Supported UPI Apps".
 */
const WALLETS = [
  { app: 'Google Pay', iosScheme: 'gpay', androidPackage: 'com.google.android.apps.nbu.paisa.user' },
  { app: 'PhonePe', iosScheme: 'phonepe', androidPackage: 'com.phonepe.app' },
  { app: 'Paytm', iosScheme: 'paytmmp', androidPackage: 'net.one97.paytm' },
  { app: 'BHIM', iosScheme: 'bhim', androidPackage: 'in.org.npci.upiapp' },
  { app: 'CRED', iosScheme: 'credpay', androidPackage: 'com.dreamplug.androidapp' },
] as const

/**
 * The links of a page that is opened on `platform`, in the order in which it shows them. `query` is what follows the
 * `?` of a UPI link, ours or an acquirer's; every link carries it unchanged.
 */
export function walletLinks(query: string, platform: Platform): WalletLink[] {
  const { intent, gpay, phonepe, paytm } = upiLinks(query)
  switch (platform) {
    case 'android':
      // Android lets the customer choose among all UPI apps. An intent with a package opens that app, or its page in the store.
      return [
        { app: 'any', href: intent },
        ...WALLETS.map(({ app, androidPackage }) => ({
          app,
          href: `intent://pay?${query}#Intent;scheme=upi;package=${androidPackage};end`,
        })),
      ]
    case 'ios':
      // iOS opens one of the apps that take the scheme upi, without asking: that link comes last, for customers of
      // other apps.
      return [
        ...WALLETS.map(({ app, iosScheme }) => ({ app, href: `${iosScheme}://upi/pay?${query}` })),
        { app: 'any', href: intent },
      ]
    case 'unknown':
      return [
        { app: 'any', href: intent },
        { app: 'Google Pay', href: gpay },
        { app: 'PhonePe', href: phonepe },
        { app: 'Paytm', href: paytm },
      ]
  }
}

/**
 * The system that a User-Agent names. The service reads it, so that the links are right without JavaScript too. An iPad
 * says that it is a Mac, and is `unknown`: its customer scans the QR, which a tablet shows beside the links. A UPI app
 * is bound to the SIM of a phone by an SMS, which an iPad cannot send.
 */
export function platformOf(userAgent = ''): Platform {
  if (/\bAndroid\b/.test(userAgent)) return 'android'
  return /\b(?:iPhone|iPad|iPod)\b/.test(userAgent) ? 'ios' : 'unknown'
}
