import { upiLinks } from '../payments/upi-links.ts'

/** The system on which a link is opened. `unknown` is every device that names neither of the others. */
export type Platform = 'android' | 'ios' | 'unknown'

/** A link and the app that it opens. For `any` the customer, or else the system, chooses the app. */
export type WalletLink = { app: 'any' | 'Google Pay' | 'PhonePe' | 'Paytm' | 'BHIM' | 'CRED'; href: string }

/**
 * The wallets in the order of their number of payments. Sources, read in November 2026: Google, "Integrate Google Pay for
 * in-app payments" for iOS and Android; Juspay, "UPI Package Names"; Razorpay, "List of Supported UPI Apps".
 */
const WALLETS = [
  { app: 'Google Pay', iosScheme: 'gpay', androidPackage: 'com.google.android.apps.nbu.paisa.user' },
  { app: 'PhonePe', iosScheme: 'phonepe', androidPackage: 'com.phonepe.app' },
  { app: 'Paytm', iosScheme: 'paytmmp', androidPackage: 'net.one97.paytm' },
  { app: 'BHIM', iosScheme: 'bhim', androidPackage: 'in.org.npci.upiapp' },
  { app: 'CRED', iosScheme: 'credpay', androidPackage: 'com.dreamplug.androidapp' },
] as const

/**
 * The links of a page on `platform`, in the order of the page. `query` is the query of a UPI link, ours or an acquirer's;
 * every link carries it unchanged.
 */
export function walletLinks(query: string, platform: Platform): WalletLink[] {
  const { intent, gpay, phonepe, paytm } = upiLinks(query)
  switch (platform) {
    case 'android':
      // On Android the customer chooses among all UPI apps. An intent with a package opens the app, or its page in the store.
      return [
        { app: 'any', href: intent },
        ...WALLETS.map(({ app, androidPackage }) => ({
          app,
          href: `intent://pay?${query}#Intent;scheme=upi;package=${androidPackage};end`,
        })),
      ]
    case 'ios':
      // iOS itself chooses an app for the scheme upi: the link comes last, for customers of other apps.
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
 * The system in a User-Agent. The service reads it, so that the links are right without JavaScript too. An iPad claims to be a
 * Mac and is `unknown`: a UPI app needs the SIM of a phone, so an iPad's customer scans the QR.
 */
export function platformOf(userAgent = ''): Platform {
  if (/\bAndroid\b/.test(userAgent)) return 'android'
  return /\b(?:iPhone|iPad|iPod)\b/.test(userAgent) ? 'ios' : 'unknown'
}
