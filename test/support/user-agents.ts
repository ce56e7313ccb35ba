const CHROMIUM = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const APPLE = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'

/** The User-Agent of Android's WebView; an app may append its own name. */
export const ANDROID_WEBVIEW = `Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP2A.240905.003; wv) ${CHROMIUM} Version/4.0 Chrome/130.0.6723.58 Mobile Safari/537.36`
export const IPHONE_WEBVIEW = `Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) ${APPLE} Mobile/15E148`

/** User-Agents of real browsers from 2024 to 2026. */
export const USER_AGENTS = {
  chromeOnAndroid: `Mozilla/5.0 (Linux; Android 10; K) ${CHROMIUM} Chrome/142.0.0.0 Mobile Safari/537.36`,
  safariOnIphone: `Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) ${APPLE} Version/26.0 Mobile/15E148 Safari/604.1`,
  instagramOnAndroid: `${ANDROID_WEBVIEW} Instagram 355.1.0.44.103 Android (34/14; 420dpi; 1080x2205; Google/google; Pixel 8; shiba; shiba; en_US; 658190016)`,
  instagramOnIphone: `Mozilla/5.0 (iPhone; CPU iPhone OS 26_4_1 like Mac OS X) ${APPLE} Mobile/23E254 Instagram 424.1.0.31.54 (iPhone18,4; iOS 26_4_1; en_GB; en-GB; scale=3.00; 1260x2736; IABMV/1; 933996394) NW/3 Safari/604.1`,
  facebookOnAndroid: `${ANDROID_WEBVIEW} [FB_IAB/FB4A;FBAV/488.0.0.62.79;IABMV/1;]`,
  facebookOnIphone: `${IPHONE_WEBVIEW} [FBAN/FBIOS;FBAV/488.0.0.68.101;FBBV/658219612;FBDV/iPhone12,8;FBMD/iPhone;FBSN/iOS;FBSV/18.1;FBSS/2;FBID/phone;FBLC/en_US;FBOP/5;FBRV/0;IABMV/1]`,
}
