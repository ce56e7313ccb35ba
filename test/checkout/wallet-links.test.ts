import { describe, expect, it } from 'vitest'
import { browserLink, isInAppBrowser, platformOf, walletLinks } from '../../src/gateway/checkout/wallet-links.ts'
import { ANDROID_WEBVIEW, IPHONE_WEBVIEW, USER_AGENTS } from '../support/user-agents.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'

it.each([
  ['android', 'Chrome on a phone', USER_AGENTS.chromeOnAndroid],
  ['android', 'Firefox on a phone', 'Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0'],
  ['android', 'Instagram on Android', USER_AGENTS.instagramOnAndroid],
  ['ios', 'Instagram on an iPhone', USER_AGENTS.instagramOnIphone],
  ['ios', 'Safari on an iPhone', USER_AGENTS.safariOnIphone],
  [
    'ios',
    'Chrome on an iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1',
  ],
  [
    'unknown',
    'an iPad, which identifies itself as a Mac',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
  ],
  ['unknown', 'Windows', `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/142.0.0.0 Safari/537.36`],
  [
    'unknown',
    'a phone that requests the desktop page',
    `Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/142.0.0.0 Safari/537.36`,
  ],
  ['unknown', 'curl', 'curl/8.14.1'],
  ['unknown', 'nobody', undefined],
])('platformOf returns %s for the User-Agent of %s', (platform, _who, userAgent) => {
  expect(platformOf(userAgent)).toBe(platform)
})

it.each([
  ['Instagram on Android', USER_AGENTS.instagramOnAndroid],
  ['Instagram on an iPhone', USER_AGENTS.instagramOnIphone],
  ['Facebook on Android', USER_AGENTS.facebookOnAndroid],
  ['Facebook on an iPhone', USER_AGENTS.facebookOnIphone],
  ['Facebook on an iPhone, by its shorter name', `${IPHONE_WEBVIEW} Safari/604.1 MetaIAB Facebook`],
  ['Messenger on Android', `${ANDROID_WEBVIEW} [FB_IAB/MESSENGER;FBAV/482.0.0.71.108;]`],
  ['Messenger on an iPhone', `${IPHONE_WEBVIEW} [FBAN/MessengerForiOS;FBAV/482.2.0.68.110;FBBV/658316928]`],
  ['Threads', `${ANDROID_WEBVIEW} Barcelona 355.0.0.39.109 Android (34/14; 420dpi; 1080x2205; en_US)`],
  ['LinkedIn', `${IPHONE_WEBVIEW} {useragents: [LinkedInApp]/9.30.1753`],
  ['Snapchat', `${IPHONE_WEBVIEW} Snapchat/12.72.0.39 (like Safari/8617.2.4.10.8, panda)`],
  ['X', `${IPHONE_WEBVIEW} Twitter for iPhone/11.20`],
  ['LINE', `${IPHONE_WEBVIEW} Safari Line/7.3.2`],
  ['TikTok', `${IPHONE_WEBVIEW} Safari/604.1 musical_ly_41.9.0`],
  ['TikTok’s WebView', `${ANDROID_WEBVIEW} trill_2022206050 JsSdk/1.0 BytedanceWebview/d8a21c6`],
])('isInAppBrowser detects %s', (_who, userAgent) => {
  expect(isInAppBrowser(userAgent)).toBe(true)
})

it.each([
  ['Chrome on Android', USER_AGENTS.chromeOnAndroid],
  ['Safari on an iPhone', USER_AGENTS.safariOnIphone],
  [
    'Samsung Internet',
    `Mozilla/5.0 (Linux; Android 10; K) ${WEBKIT} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
  ],
  ['a merchant’s own app on Android', ANDROID_WEBVIEW],
  ['a merchant’s own app with a name', `${ANDROID_WEBVIEW} ChaiPoint/3.2`],
  ['a merchant’s own app on an iPhone', IPHONE_WEBVIEW],
  ['Windows', `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/142.0.0.0 Safari/537.36`],
  ['nobody', undefined],
])('isInAppBrowser does not match %s', (_who, userAgent) => {
  expect(isInAppBrowser(userAgent)).toBe(false)
})

it.each([
  [
    'https://pay.example/pay/019aa0b1',
    'intent://pay.example/pay/019aa0b1#Intent;scheme=https;action=android.intent.action.VIEW;S.browser_fallback_url=https%3A%2F%2Fpay.example%2Fpay%2F019aa0b1;end',
  ],
  [
    'http://10.0.0.7:3000/upi/pay/019aa0b1',
    'intent://10.0.0.7:3000/upi/pay/019aa0b1#Intent;scheme=http;action=android.intent.action.VIEW;S.browser_fallback_url=http%3A%2F%2F10.0.0.7%3A3000%2Fupi%2Fpay%2F019aa0b1;end',
  ],
])('browserLink opens %s in the customer’s browser with the same scheme, host, port and path', (address, link) => {
  expect(browserLink(address)).toBe(link)
})

describe('the wallet links of a page', () => {
  const intentFor = (name: string) => `intent://pay?QUERY#Intent;scheme=upi;package=${name};end`
  it.each([
    [
      'android',
      [
        ['Google Pay', intentFor('com.google.android.apps.nbu.paisa.user')],
        ['PhonePe', intentFor('com.phonepe.app')],
        ['Paytm', intentFor('net.one97.paytm')],
        ['BHIM', intentFor('in.org.npci.upiapp')],
        ['CRED', intentFor('com.dreamplug.androidapp')],
        ['any', 'upi://pay?QUERY'],
      ],
    ],
    [
      'ios',
      [
        ['Google Pay', 'gpay://upi/pay?QUERY'],
        ['PhonePe', 'phonepe://pay?QUERY'],
        ['Paytm', 'paytmmp://upi/pay?QUERY'],
        ['BHIM', 'bhim://upi/pay?QUERY'],
        ['CRED', 'credpay://upi/pay?QUERY'],
        ['any', 'upi://pay?QUERY'],
      ],
    ],
    [
      'unknown',
      [
        ['Google Pay', 'tez://upi/pay?QUERY'],
        ['PhonePe', 'phonepe://pay?QUERY'],
        ['Paytm', 'paytmmp://pay?QUERY'],
        ['any', 'upi://pay?QUERY'],
      ],
    ],
  ] as const)('open each app by the scheme of %s, all with the same query', (platform, expected) => {
    const query = 'pa=a%40b&sign=MEU%2BCg%3D%3D&pn=%E0%A4%9A'
    const links = walletLinks(query, platform).map(({ app, href }) => [app, href])
    expect(links).toEqual(expected.map(([app, href]) => [app, href.replace('QUERY', query)]))
  })
})
