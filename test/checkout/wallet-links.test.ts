import { describe, expect, it } from 'vitest'
import { platformOf, walletLinks } from '../../src/checkout/wallet-links.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'

it.each([
  [
    'android',
    'Chrome on a phone',
    `Mozilla/5.0 (Linux; Android 10; K) ${WEBKIT} Chrome/142.0.0.0 Mobile Safari/537.36`,
  ],
  ['android', 'Firefox on a phone', 'Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0'],
  [
    'android',
    'a page inside an app',
    `Mozilla/5.0 (Linux; Android 14; RMX3999 Build/UKQ1; wv) ${WEBKIT} Version/4.0 Chrome/141.0.0.0 Mobile Safari/537.36 Instagram 402.0`,
  ],
  [
    'ios',
    'Safari on an iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1',
  ],
  [
    'ios',
    'Chrome on an iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1',
  ],
  [
    'unknown',
    'an iPad, which says that it is a Mac',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
  ],
  ['unknown', 'Windows', `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/142.0.0.0 Safari/537.36`],
  [
    'unknown',
    'a phone that asks for the desktop page',
    `Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/142.0.0.0 Safari/537.36`,
  ],
  ['unknown', 'curl', 'curl/8.14.1'],
  ['unknown', 'nobody', undefined],
])('the platform is %s for the User-Agent of %s', (platform, _who, userAgent) => {
  expect(platformOf(userAgent)).toBe(platform)
})

describe('the wallet links of a page', () => {
  const intentFor = (name: string) => `intent://pay?QUERY#Intent;scheme=upi;package=${name};end`
  it.each([
    [
      'android',
      [
        ['any', 'upi://pay?QUERY'],
        ['Google Pay', intentFor('com.google.android.apps.nbu.paisa.user')],
        ['PhonePe', intentFor('com.phonepe.app')],
        ['Paytm', intentFor('net.one97.paytm')],
        ['BHIM', intentFor('in.org.npci.upiapp')],
        ['CRED', intentFor('com.dreamplug.androidapp')],
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
        ['any', 'upi://pay?QUERY'],
        ['Google Pay', 'tez://upi/pay?QUERY'],
        ['PhonePe', 'phonepe://pay?QUERY'],
        ['Paytm', 'paytmmp://pay?QUERY'],
      ],
    ],
  ] as const)('the wallet links open each app by the scheme of %s, all with equal queries', (platform, expected) => {
    const query = 'pa=a%40b&sign=MEU%2BCg%3D%3D&pn=%E0%A4%9A'
    const links = walletLinks(query, platform).map(({ app, href }) => [app, href])
    expect(links).toEqual(expected.map(([app, href]) => [app, href.replace('QUERY', query)]))
  })
})
