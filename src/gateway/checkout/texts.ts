import { preferredLanguage } from '../../platform/http/request-headers.ts'
import { toIstText } from '../../platform/time.ts'
import type { FailureReason } from '../payments/failure-reasons.ts'

/** Languages of the pay page. The first one is the default. */
export const LANGUAGES = ['en', 'hi'] as const

export type Language = (typeof LANGUAGES)[number]

export const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', hi: 'हिन्दी' }

/** The language that the page's language link leads to. */
export const otherLanguage = ({ language }: PageTexts): Language => (language === 'en' ? 'hi' : 'en')

/**
 * All texts of the pay page; `{name}` is replaced by a value. A new language needs its code in LANGUAGES, and the
 * compiler then requires its translation of each text. Texts of merchants are never translated.
 */
export const TEXTS = {
  pay: { en: 'Pay', hi: 'भुगतान करें' },
  payMerchant: { en: 'Pay {name}', hi: '{name} को भुगतान करें' },
  order: { en: 'Order', hi: 'ऑर्डर' },
  note: { en: 'Note', hi: 'विवरण' },
  appShows: { en: 'Your app will show', hi: 'आपके ऐप में दिखेगा' },
  upiAddress: { en: 'UPI address', hi: 'UPI आईडी' },
  details: { en: 'Details', hi: 'पूरी जानकारी' },

  chooseApp: { en: 'Choose your UPI app', hi: 'अपना UPI ऐप चुनें' },
  anotherApp: { en: 'Other app', hi: 'कोई और ऐप' },
  anyApp: { en: 'Pay with a UPI app', hi: 'UPI ऐप से भुगतान करें' },
  scan: { en: 'Scan with any UPI app', hi: 'किसी भी UPI ऐप से स्कैन करें' },
  qrCode: { en: 'QR code to pay {amount} with a UPI app', hi: 'UPI ऐप से {amount} का भुगतान करने के लिए QR कोड' },
  showQr: { en: 'Show QR code', hi: 'QR कोड दिखाएँ' },
  openBrowser: { en: 'Open in your browser', hi: 'अपने ब्राउज़र में खोलें' },
  browserMenu: {
    en: 'This app cannot open UPI apps. Tap the three dots in a corner of the screen and open this page in {browser} or in an external browser, or copy its address:',
    hi: 'यह ऐप किसी UPI ऐप को नहीं खोल सकता। स्क्रीन के कोने में तीन बिंदुओं पर टैप करके यह पेज {browser} या किसी बाहरी ब्राउज़र में खोलें। या इसका पता कॉपी करें:',
  },
  scanElsewhere: {
    en: 'Or scan this code with another phone, or open a screenshot of it in your UPI app.',
    hi: 'या यह कोड किसी दूसरे फ़ोन से स्कैन करें, या इसका स्क्रीनशॉट अपने UPI ऐप में खोलें।',
  },
  nothingOpened: {
    en: 'Nothing opened? Choose another app, or show the QR code.',
    hi: 'कुछ नहीं खुला? कोई दूसरा ऐप चुनें, या QR कोड दिखाएँ।',
  },
  payBefore: { en: 'Pay before {time}', hi: '{time} से पहले भुगतान करें' },
  timeLeft: { en: '{time} left to pay', hi: 'भुगतान के लिए {time} बाकी' },
  hoursLeft: { en: '{hours} h {minutes} min left to pay', hi: 'भुगतान के लिए {hours} घंटे {minutes} मिनट बाकी' },
  daysLeft: { en: '{days} days {hours} h left to pay', hi: 'भुगतान के लिए {days} दिन {hours} घंटे बाकी' },
  pageUpdates: {
    en: 'Keep this page open. It updates by itself.',
    hi: 'यह पेज खुला रखें। यह अपने-आप अपडेट होता है।',
  },
  hasPaid: { en: 'I have approved the payment in my app', hi: 'मैंने ऐप में भुगतान कर दिया है' },
  back: { en: 'Return to {name}', hi: '{name} पर वापस जाएँ' },
  backUnpaid: { en: 'Return to {name} without paying', hi: 'भुगतान किए बिना {name} पर वापस जाएँ' },
  paidDirectly: { en: 'UPI · paid directly to the merchant', hi: 'UPI · सीधे विक्रेता को भुगतान' },
  processedBy: { en: 'UPI · processed by {acquirer}', hi: 'UPI · भुगतान {acquirer} के ज़रिए' },
  help: { en: 'Help', hi: 'मदद' },

  // Waiting: the customer has returned from an app.
  approveInApp: { en: 'Approve in {app}', hi: '{app} में मंज़ूरी दें' },
  approve: { en: 'Approve in your UPI app', hi: 'अपने UPI ऐप में मंज़ूरी दें' },
  enterPin: {
    en: 'Enter your UPI PIN there, then come back. Please do not pay a second time.',
    hi: 'वहाँ अपना UPI पिन डालें, फिर यहाँ लौटें। कृपया दूसरी बार भुगतान न करें।',
  },
  stepOpened: { en: '{app} opened', hi: '{app} खुल गया' },
  stepAppOpened: { en: 'UPI app opened', hi: 'UPI ऐप खुल गया' },
  stepBank: { en: 'Waiting for your bank', hi: 'आपके बैंक के जवाब का इंतज़ार' },
  stepBack: { en: 'Back to {name}', hi: '{name} पर वापसी' },
  alreadyPaid: { en: 'Already paid?', hi: 'भुगतान कर चुके हैं?' },
  alreadyPaidText: {
    en: 'Stay here. If {amount} left your account and nothing changes within 2 minutes, you can close this page. {name} is notified, or the money returns by itself within 5 days. Keep the UTR that your app shows.',
    hi: 'यहीं रुकें। अगर आपके खाते से {amount} कट गए हैं और 2 मिनट में कुछ नहीं बदलता, तो आप यह पेज बंद कर सकते हैं। {name} को सूचना मिल जाएगी, या पैसे 5 दिनों में अपने-आप लौट आएँगे। ऐप में दिख रहा UTR संभालकर रखें।',
  },
  notPaidYet: { en: 'I have not paid: choose another app', hi: 'मैंने भुगतान नहीं किया: दूसरा ऐप चुनें' },

  // Failure reasons of the last attempt. Where money may be in transit, the text never suggests another attempt,
  // because the customer might pay twice.
  retryTitle: { en: '{amount} not paid yet', hi: '{amount} का भुगतान अभी नहीं हुआ' },
  waitTitle: { en: '{amount} not confirmed', hi: '{amount} के भुगतान की पुष्टि नहीं हुई' },
  stopTitle: { en: '{name} cannot receive {amount} now', hi: '{name} को अभी {amount} का भुगतान नहीं हो सकता' },
  wrong_pin: { en: 'The UPI PIN was incorrect. Try again.', hi: 'UPI पिन ग़लत था। फिर से कोशिश करें।' },
  pin_tries_exceeded: {
    en: 'The UPI PIN was entered incorrectly too often, so UPI is locked for this account. Use another account, or reset the PIN.',
    hi: 'पिन कई बार ग़लत डाला गया, इसलिए इस खाते पर UPI बंद है। दूसरा खाता चुनें या पिन रीसेट करें।',
  },
  insufficient_funds: {
    en: 'The account does not have enough money. Use another account.',
    hi: 'खाते में पर्याप्त पैसे नहीं हैं। दूसरा खाता चुनें।',
  },
  limit_exceeded: {
    en: 'The limit of your bank or of UPI has been reached. Use another account, or try again tomorrow.',
    hi: 'बैंक या UPI की लिमिट पूरी हो गई है। दूसरा खाता चुनें या कल फिर कोशिश करें।',
  },
  bank_unavailable: { en: 'A bank or UPI was unavailable.', hi: 'बैंक या UPI की सेवा उस समय बंद थी।' },
  declined_by_customer: {
    en: 'The payment was cancelled in the app. You can still pay here.',
    hi: 'ऐप में भुगतान रद्द कर दिया गया। आप अब भी यहीं भुगतान कर सकते हैं।',
  },
  not_authorised_in_time: {
    en: 'The payment was not authorised in time.',
    hi: 'भुगतान को समय रहते मंज़ूरी नहीं मिली।',
  },
  risk_declined: {
    en: 'The bank stopped the payment for security reasons, which can happen with a new phone or payee. Contact your bank, or use another account.',
    hi: 'बैंक ने सुरक्षा कारणों से भुगतान रोक दिया। नए फ़ोन या नए प्राप्तकर्ता के साथ ऐसा हो सकता है। अपने बैंक से संपर्क करें या दूसरा खाता चुनें।',
  },
  account_problem: {
    en: 'This account cannot make UPI payments at the moment. Use another account, or register this one again in your app.',
    hi: 'यह खाता अभी UPI से भुगतान नहीं कर सकता। दूसरा खाता चुनें या इसे अपने ऐप में फिर से जोड़ें।',
  },
  payee_not_allowed: {
    en: '{name} cannot accept payments in this way at the moment. Please contact {name}.',
    hi: '{name} को अभी इस तरह भुगतान नहीं किया जा सकता। कृपया {name} से संपर्क करें।',
  },
  other: { en: 'The last attempt failed.', hi: 'पिछली बार भुगतान नहीं हो पाया।' },
  unconfirmed: {
    en: 'Your bank has not confirmed the payment yet.',
    hi: 'आपके बैंक ने अभी भुगतान की पुष्टि नहीं की है।',
  },
  doNotPayAgain: {
    en: 'If money has left your account, do not pay again: it returns by itself within 5 days. Keep the UTR that your app shows.',
    hi: 'अगर आपके खाते से पैसे कट गए हैं, तो दोबारा भुगतान न करें: वे 5 दिनों में अपने-आप लौट आएँगे। ऐप में दिख रहा UTR संभालकर रखें।',
  },
  payAnotherWay: {
    en: 'My money has not left my account: pay another way',
    hi: 'मेरे खाते से पैसे नहीं कटे: किसी और तरह से भुगतान करें',
  },
  lost: {
    en: 'No connection. A payment that you have already made is not affected. This page updates when the connection is restored.',
    hi: 'इंटरनेट कनेक्शन नहीं है। अगर आप भुगतान कर चुके हैं, तो उस पर कोई असर नहीं पड़ेगा: कनेक्शन लौटते ही यह पेज आपको बता देगा।',
  },

  amountMismatchTitle: { en: '{received} arrived instead of {amount}', hi: '{amount} की जगह {received} मिले' },
  amountMismatchText: {
    en: 'Please do not pay again. {name} has been notified and will contact you or return the money.',
    hi: 'कृपया दोबारा भुगतान न करें। {name} को सूचना दे दी गई है। वे आपसे संपर्क करेंगे या पैसे लौटाएँगे।',
  },

  paidTitle: { en: '{amount} paid', hi: '{amount} का भुगतान हो गया' },
  paidTo: { en: 'to {name}', hi: '{name} को' },
  paidText: {
    en: 'Returning to {name} in a few seconds. Tap the page or press any key to stay.',
    hi: 'कुछ सेकंड में आपको {name} पर वापस ले जाया जाएगा। यहीं रुकने के लिए स्क्रीन पर टैप करें या कोई भी की दबाएँ।',
  },
  utr: { en: 'UTR', hi: 'UTR नंबर' },
  refund: { en: 'Refund', hi: 'रिफ़ंड' },
  refundOn: { en: '{amount} on {date}', hi: '{date} को {amount}' },
  refundPending: { en: '{amount} on its way', hi: '{amount} लौटाए जा रहे हैं' },
  stay: { en: 'Stay here', hi: 'यहीं रुकें' },
  save: { en: 'Save receipt', hi: 'रसीद सहेजें' },
  copy: { en: 'Copy', hi: 'कॉपी' },
  copied: { en: 'Copied', hi: 'कॉपी हो गया' },
  paidTwice: {
    en: 'You paid twice: {payment}. Contact {name} for the second payment.',
    hi: 'आपने दो बार भुगतान किया: {payment}। दूसरे भुगतान के लिए {name} से संपर्क करें।',
  },
  returning: { en: '{payment} is being returned.', hi: '{payment} लौटाए जा रहे हैं।' },
  returned: { en: '{amount} returned on {date}.', hi: '{date} को {amount} लौटाए गए।' },
  returnedAs: {
    en: '{amount} returned on {date}, reference {reference}.',
    hi: '{date} को {amount} लौटाए गए, रेफ़रेंस {reference}।',
  },
  refundedTitle: { en: '{amount} refunded', hi: '{amount} लौटाए गए' },
  refundedText: {
    en: 'The full amount was refunded to the account that paid.',
    hi: 'पूरी रकम उसी खाते में वापस भेज दी गई है, जिससे भुगतान हुआ था।',
  },
  failedTitle: { en: '{amount} not paid', hi: '{amount} का भुगतान नहीं हो पाया' },
  failedText: { en: 'The time to pay has ended.', hi: 'भुगतान का समय समाप्त हो गया है।' },
  expiredTitle: { en: '{amount} not paid in time', hi: '{amount} का भुगतान समय पर नहीं हुआ' },
  expiredText: { en: 'No payment was received.', hi: 'कोई भुगतान नहीं मिला है।' },
  cancelledTitle: { en: 'Order cancelled', hi: 'ऑर्डर रद्द हो गया' },
  cancelledText: {
    en: '{name} has cancelled this order. Please do not pay.',
    hi: '{name} ने यह ऑर्डर रद्द कर दिया है। कृपया अब भुगतान न करें।',
  },
  orderAgain: {
    en: 'To place the order again, return to {name}.',
    hi: 'फिर से ऑर्डर करने के लिए {name} पर वापस जाएँ।',
  },
  closedTitle: { en: 'This payment is no longer open', hi: 'यह भुगतान अब नहीं किया जा सकता' },
  closedText: {
    en: '{name} no longer accepts this payment. Please do not pay. If you have just paid, stay here: this page is still checking for your payment.',
    hi: '{name} अब यह भुगतान स्वीकार नहीं करता। कृपया भुगतान न करें। अगर आपने अभी-अभी भुगतान किया है, तो यहीं रुकें: यह पेज आपके भुगतान की जाँच करता रहेगा।',
  },
  contactFirst: {
    en: 'Contact {name} before you place the order again.',
    hi: 'फिर से ऑर्डर करने से पहले {name} से संपर्क करें।',
  },
  timeUpTitle: { en: 'Time is up', hi: 'समय समाप्त हो गया' },
  timeUpText: {
    en: 'Please do not pay now. If you have just paid, stay here: this page is still checking for your payment.',
    hi: 'कृपया अब भुगतान न करें। अगर आपने अभी-अभी भुगतान किया है, तो यहीं रुकें: यह पेज आपके भुगतान की जाँच करता रहेगा।',
  },
  // The text refers to the bank and the merchant, because the service cannot see the customer's account.
  missingMoney: {
    en: 'If money has left your account, note the reference number (UTR) shown in your UPI app, and contact {name} or your bank.',
    hi: 'अगर आपके खाते से पैसे कट गए हैं, तो आपके UPI ऐप में दिख रहा रेफ़रेंस नंबर (UTR) संभालकर रखें और {name} या अपने बैंक से संपर्क करें।',
  },

  // Titles of the page, which a share sheet shows, so they contain no amount.
  retryTab: { en: 'Not paid yet', hi: 'अभी भुगतान नहीं हुआ' },
  waitTab: { en: 'Payment not confirmed', hi: 'भुगतान की पुष्टि नहीं हुई' },
  stopTab: { en: 'Payment not possible', hi: 'भुगतान नहीं हो सकता' },
  amountMismatchTab: { en: 'Another amount received', hi: 'दूसरी रकम मिली' },
  paidTab: { en: 'Paid', hi: 'भुगतान हो गया' },
  refundedTab: { en: 'Refunded', hi: 'रिफ़ंड हो गया' },
  failedTab: { en: 'Not paid', hi: 'भुगतान नहीं हो पाया' },
  expiredTab: { en: 'Not paid in time', hi: 'समय पर भुगतान नहीं हुआ' },

  payment: { en: 'Payment', hi: 'भुगतान' },
  order_not_found: { en: 'There is no payment at this address', hi: 'इस लिंक पर कोई भुगतान नहीं मिला' },
  notFoundNext: {
    en: 'Check the link, or open it again from the message or page of the merchant that sent it.',
    hi: 'लिंक जाँचें, या उसे विक्रेता के भेजे हुए मैसेज या पेज से फिर से खोलें।',
  },
  unavailable: {
    en: 'The service is briefly unavailable. Try again in a moment.',
    hi: 'सेवा थोड़ी देर के लिए उपलब्ध नहीं है। कृपया कुछ पल बाद फिर से कोशिश करें।',
  },
  internal_error: {
    en: 'Something went wrong on our side. Please try again.',
    hi: 'हमारी ओर से कुछ गड़बड़ हो गई। कृपया फिर से कोशिश करें।',
  },

  sandbox: { en: 'Test mode', hi: 'टेस्ट मोड' },
  noMoney: { en: 'no money moves', hi: 'असली पैसे नहीं कटते' },
  simulate: { en: 'Simulate', hi: 'नतीजा चुनें' },
  simulateSUCCESS: { en: 'Simulate payment', hi: 'नकली भुगतान करें' },
  simulateFAIL: { en: 'Attempt fails', hi: 'कोशिश नाकाम हो' },
  simulateREJECT: { en: 'Attempt is rejected', hi: 'कोशिश अस्वीकार हो' },
  simulatedReason: { en: 'Reason', hi: 'वजह' },
  simulateEXPIRE: { en: 'Time is up', hi: 'समय समाप्त हो' },
  simulateEND: { en: 'Order expires', hi: 'ऑर्डर की अवधि समाप्त हो' },
  simulateCANCEL: { en: 'Merchant cancels', hi: 'विक्रेता रद्द करे' },
  simulateLATE: { en: 'Pay too late', hi: 'देर से भुगतान करें' },
  simulateTWICE: { en: 'Pay twice', hi: 'दो बार भुगतान करें' },
  simulateOTHER_AMOUNT: { en: 'Pay ₹1 more', hi: '₹1 ज़्यादा भुगतान करें' },
  simulateReturn: { en: 'Return from an app', hi: 'ऐप से लौटें' },
  refundOf: { en: 'Refund {refund} of {amount}', hi: 'रिफ़ंड {refund}, {amount}' },
  refundSUCCESS: { en: 'Succeeds', hi: 'सफल हो' },
  refundFAIL: { en: 'Fails', hi: 'नाकाम हो' },
} satisfies Record<FailureReason, Record<Language, string>> & Record<string, Record<Language, string>>

/** All texts in one language. */
export type PageTexts = { language: Language } & Record<keyof typeof TEXTS, string>

const COLUMNS = new Map(
  LANGUAGES.map((language) => {
    const texts = Object.entries(TEXTS).map(([key, row]) => [key, row[language]])
    return [language, { language, ...Object.fromEntries(texts) } as PageTexts]
  }),
)

/** The texts in the language `requested` of the page's address, otherwise in the one that the browser prefers. */
export function textsFor(acceptLanguage: string | undefined, requested?: unknown): PageTexts {
  const language = LANGUAGES.find((code) => code === requested) ?? preferredLanguage(acceptLanguage, LANGUAGES)
  return COLUMNS.get(language) as PageTexts
}

/** Replaces each `{name}` in a text by its value. */
export const fillText = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')

const MONTHS: Record<Language, readonly string[]> = {
  en: 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' '),
  hi: 'जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर'.split(' '),
}

/** `26 Nov 2026` in IST. */
export function dateText({ language }: PageTexts, moment: Date): string {
  const [year, month, day] = toIstText(moment).slice(0, 10).split('-').map(Number)
  return `${day} ${MONTHS[language][Number(month) - 1]} ${year}`
}

/** Hindi words for the times of the day, by the hour at which they begin. */
const DAYTIMES: readonly [hour: number, name: string][] = [
  [20, 'रात'],
  [16, 'शाम'],
  [12, 'दोपहर'],
  [4, 'सुबह'],
  [0, 'रात'],
]

/** `1:34 pm IST`, in Hindi `दोपहर 1:34 बजे (IST)`. No-break spaces keep it on one line. */
export function clockText({ language }: PageTexts, moment: Date): string {
  const time = toIstText(moment).slice(11, 16)
  const hour = Number(time.slice(0, 2))
  const onClock = `${hour % 12 || 12}${time.slice(2)}`
  if (language === 'en') return `${onClock}\u00a0${hour < 12 ? 'am' : 'pm'}\u00a0IST`
  const daytime = DAYTIMES.find(([from]) => hour >= from)?.[1]
  return `${daytime}\u00a0${onClock}\u00a0बजे\u00a0(IST)`
}

/** `26 Nov 2026, 1:34 pm IST`, in Hindi `26 नवंबर 2026, दोपहर 1:34 बजे (IST)`. */
export const dateTimeText = (texts: PageTexts, moment: Date): string =>
  `${dateText(texts, moment)}, ${clockText(texts, moment)}`
