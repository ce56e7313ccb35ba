import { upiLinks } from '../payments/upi-links.ts'

/** Operating system of the customer's device. `unknown` is every system other than Android and iOS. */
export type Platform = 'android' | 'ios' | 'unknown'

/** A link and the app that it opens. With `any`, the customer or the system chooses the app. */
export type WalletLink = { app: 'any' | (typeof APPS)[number]; href: string }

/**
 * The wallets, most payments first. Paytm uses a different prefix on iOS than on Android. Sources, read in November
 * 2026: Google, "Integrate Google Pay for in-app payments" for iOS and Android; Juspay, "UPI Package Names"; Razorpay,
 * "List of Supported UPI Apps".
 */
const WALLETS = [
  { app: 'Google Pay', iosPrefix: 'gpay://upi/pay?', androidPackage: 'com.google.android.apps.nbu.paisa.user' },
  { app: 'PhonePe', iosPrefix: 'phonepe://pay?', androidPackage: 'com.phonepe.app' },
  { app: 'Paytm', iosPrefix: 'paytmmp://upi/pay?', androidPackage: 'net.one97.paytm' },
  { app: 'BHIM', iosPrefix: 'bhim://upi/pay?', androidPackage: 'in.org.npci.upiapp' },
  { app: 'CRED', iosPrefix: 'credpay://upi/pay?', androidPackage: 'com.dreamplug.androidapp' },
] as const

/** The apps by name, for pages that know which one the customer opened. */
export const APPS = WALLETS.map(({ app }) => app)

/**
 * Returns the wallet links of a page for `platform`, in the order of the page. All links contain the unchanged `query`
 * of the service's or the acquirer's UPI link.
 */
export function walletLinks(query: string, platform: Platform): WalletLink[] {
  const { intent, gpay, phonepe, paytm } = upiLinks(query)
  switch (platform) {
    case 'android':
      // A link with a package opens that app or its store page. The plain `upi` link lets customers choose among all
      // UPI apps.
      return [
        ...WALLETS.map(({ app, androidPackage }) => ({
          app,
          href: `intent://pay?${query}#Intent;scheme=upi;package=${androidPackage};end`,
        })),
        { app: 'any', href: intent },
      ]
    case 'ios':
      // iOS itself chooses the app for the scheme `upi`, so this link comes last, for customers of other apps.
      return [
        ...WALLETS.map(({ app, iosPrefix }) => ({ app, href: `${iosPrefix}${query}` })),
        { app: 'any', href: intent },
      ]
    case 'unknown':
      return [
        { app: 'Google Pay', href: gpay },
        { app: 'PhonePe', href: phonepe },
        { app: 'Paytm', href: paytm },
        { app: 'any', href: intent },
      ]
  }
}

/**
 * Detects in-app browsers that open no other app. `FBAN/` and the like are Facebook, `Barcelona` is Threads,
 * `musical_ly` is TikTok. A plain Android WebView (`wv`) is excluded, because a merchant's own app may show the page
 * in one and open UPI apps itself.
 */
export const isInAppBrowser = (userAgent = '') =>
  /\b(?:FB\w+\/|MetaIAB|Instagram|Barcelona|LinkedInApp|Snapchat|Twitter|Line\/|musical_ly|Bytedance)/.test(userAgent)

/** A link by which Android opens the page at `address` in the customer's browser instead of the in-app browser. */
export function browserLink(address: string): string {
  const { protocol, host, pathname } = new URL(address)
  const extras = `action=android.intent.action.VIEW;S.browser_fallback_url=${encodeURIComponent(address)}`
  return `intent://${host}${pathname}#Intent;scheme=${protocol.slice(0, -1)};${extras};end`
}

/**
 * Detects the system from the User-Agent, so that links work without JavaScript. An iPad identifies itself as a Mac
 * and is `unknown`: a UPI app needs a phone's SIM, so a customer with an iPad scans the QR.
 */
export function platformOf(userAgent = ''): Platform {
  if (/\bAndroid\b/.test(userAgent)) return 'android'
  return /\b(?:iPhone|iPad|iPod)\b/.test(userAgent) ? 'ios' : 'unknown'
}
