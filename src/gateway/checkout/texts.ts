import { preferredLanguage } from '../../platform/http/accept-language.ts'
import type { FailureReason } from '../payments/failure-reasons.ts'

/** Languages of the pay page. The first one is the default. */
const LANGUAGES = ['en', 'hi'] as const

export type Language = (typeof LANGUAGES)[number]

/**
 * All texts of the pay page; `{name}` is replaced by a value. A new language needs its code in LANGUAGES, and the
 * compiler then requires its translation of each text. Texts of merchants are never translated.
 */
export const TEXTS = {
  pay: { en: 'Pay', hi: 'भुगतान करें' },
  paymentTo: { en: 'Payment to {name}', hi: '{name} को भुगतान' },
  upiAddress: { en: 'UPI address', hi: 'UPI आईडी' },
  orderNumber: { en: 'Order number', hi: 'ऑर्डर नंबर' },
  scan: { en: 'Scan with any UPI app', hi: 'किसी भी UPI ऐप से स्कैन करें' },
  qrCode: { en: 'QR code to pay {amount} with a UPI app', hi: 'UPI ऐप से {amount} का भुगतान करने के लिए QR कोड' },
  showQr: { en: 'Show the QR code', hi: 'QR कोड दिखाएँ' },
  apps: { en: 'Pay with an app on this device', hi: 'इस डिवाइस के किसी ऐप से भुगतान करें' },
  anyApp: { en: 'Pay with a UPI app', hi: 'UPI ऐप से भुगतान करें' },
  anotherApp: { en: 'Another UPI app', hi: 'कोई दूसरा UPI ऐप' },
  openBrowser: { en: 'Open in your browser', hi: 'अपने ब्राउज़र में खोलें' },
  browserMenu: {
    en: 'This app cannot open UPI apps. Tap the three dots in a corner of the screen and open this page in {browser} or in an external browser, or copy its address:',
    hi: 'यह ऐप किसी UPI ऐप को नहीं खोल सकता। स्क्रीन के कोने में तीन बिंदुओं को छूकर यह पेज {browser} या किसी बाहरी ब्राउज़र में खोलें। या इसका पता कॉपी करें:',
  },
  scanElsewhere: {
    en: 'Or scan this code with another phone, or open a screenshot of it in your UPI app.',
    hi: 'या यह कोड किसी दूसरे फ़ोन से स्कैन करें, या इसका स्क्रीनशॉट अपने UPI ऐप में खोलें।',
  },
  waiting: {
    en: 'Waiting for confirmation from your bank. If you have not paid yet, choose an app again.',
    hi: 'आपके बैंक के जवाब का इंतज़ार है। अगर आपने अभी तक भुगतान नहीं किया है, तो फिर से कोई ऐप चुनें।',
  },
  nothingOpened: {
    en: 'Nothing opened? Choose another app, or show the QR code.',
    hi: 'कुछ नहीं खुला? कोई दूसरा ऐप चुनें, या QR कोड दिखाएँ।',
  },
  payBefore: { en: 'Pay before {time} IST', hi: 'भारतीय समय के अनुसार {time} से पहले भुगतान करें' },
  timeLeft: { en: '{time} left to pay', hi: 'भुगतान के लिए {time} बाकी' },
  hoursLeft: { en: '{hours} h {minutes} min left to pay', hi: 'भुगतान के लिए {hours} घं {minutes} मि बाकी' },
  pageUpdates: { en: 'This page updates when your payment is received.', hi: 'भुगतान मिलते ही यह पेज आपको बता देगा।' },
  back: { en: 'Back to {name}', hi: '{name} पर वापस जाएँ' },
  backUnpaid: { en: 'Back without paying', hi: 'भुगतान किए बिना वापस जाएँ' },

  // Failure reasons of the last attempt. Where money may be in transit, the text never suggests another attempt,
  // because the customer might pay twice.
  wrong_pin: { en: 'The UPI PIN was incorrect. Try again.', hi: 'UPI पिन ग़लत था। फिर से कोशिश करें।' },
  pin_tries_exceeded: {
    en: 'The UPI PIN was entered incorrectly too often, so UPI is locked for this account. Use another account, or reset the PIN.',
    hi: 'पिन कई बार ग़लत डाला गया, इसलिए इस खाते पर UPI बंद है। दूसरा खाता चुनें या पिन रीसेट करें।',
  },
  insufficient_funds: {
    en: 'The account does not have enough money. Use another account.',
    hi: 'खाते में पैसे कम हैं। दूसरा खाता चुनें।',
  },
  limit_exceeded: {
    en: 'The limit of your bank or of UPI has been reached. Use another account, or try again tomorrow.',
    hi: 'बैंक या UPI की सीमा पूरी हो गई है। दूसरा खाता चुनें या कल कोशिश करें।',
  },
  bank_unavailable: {
    en: 'A bank or UPI was unavailable. If money has left your account, do not pay again: it is returned automatically within 5 days. Otherwise, use another account.',
    hi: 'कोई बैंक या UPI काम नहीं कर रहा था। अगर आपके खाते से पैसे कट गए हैं, तो दोबारा भुगतान न करें: वे 5 दिनों में अपने-आप वापस आ जाएँगे। नहीं तो दूसरा खाता चुनें।',
  },
  declined_by_customer: {
    en: 'The payment was cancelled in the app. You can still pay here.',
    hi: 'भुगतान ऐप में रद्द किया गया। आप अब भी यहीं भुगतान कर सकते हैं।',
  },
  not_authorised_in_time: {
    en: 'The payment was not authorised in time. If money has left your account, do not pay again: it is returned automatically within 5 days.',
    hi: 'भुगतान समय पर मंज़ूर नहीं हुआ। अगर आपके खाते से पैसे कट गए हैं, तो दोबारा भुगतान न करें: वे 5 दिनों में अपने-आप वापस आ जाएँगे।',
  },
  risk_declined: {
    en: 'The bank stopped the payment for security reasons, which can happen with a new phone or payee. Contact your bank, or use another account.',
    hi: 'बैंक ने सुरक्षा के लिए भुगतान रोका, जैसे नए फ़ोन या नए प्राप्तकर्ता पर। अपने बैंक से पूछें या दूसरा खाता चुनें।',
  },
  account_problem: {
    en: 'This account cannot make UPI payments at the moment. Use another account, or register this one again in your app.',
    hi: 'यह खाता अभी UPI से भुगतान नहीं कर सकता। दूसरा खाता चुनें या इसे अपने ऐप में फिर से जोड़ें।',
  },
  payee_not_allowed: {
    en: 'The merchant cannot accept payments in this way at the moment. Please contact the merchant.',
    hi: 'विक्रेता को अभी इस तरह भुगतान नहीं किया जा सकता। कृपया विक्रेता को बताएँ।',
  },
  other: {
    en: 'Your last attempt failed. You can pay here with another app or account.',
    hi: 'आपकी पिछली कोशिश पूरी नहीं हुई। आप यहीं किसी दूसरे ऐप या खाते से भुगतान कर सकते हैं।',
  },
  lost: {
    en: 'No connection. A payment that you have already made is not affected. This page updates when the connection is restored.',
    hi: 'इंटरनेट कनेक्शन नहीं है। अगर आप भुगतान कर चुके हैं, तो उस पर कोई असर नहीं पड़ेगा: कनेक्शन लौटते ही यह पेज आपको बता देगा।',
  },

  paidTitle: { en: 'Paid', hi: 'भुगतान हो गया' },
  paidText: {
    en: 'Returning to the merchant in a few seconds. Tap the page or press any key to stay.',
    hi: 'कुछ सेकंड में आपको विक्रेता के पास वापस ले जाया जाएगा। यहीं रुकने के लिए पेज को छुएँ या कोई भी बटन दबाएँ।',
  },
  copy: { en: 'Copy', hi: 'कॉपी करें' },
  copied: { en: 'Copied', hi: 'कॉपी हो गया' },
  refundedTitle: { en: 'Refunded', hi: 'पैसे वापस किए गए' },
  refundedText: {
    en: 'The full amount was refunded to the account that paid.',
    hi: 'पूरी रकम उसी खाते में वापस भेज दी गई है, जिससे भुगतान हुआ था।',
  },
  failedTitle: { en: 'Payment failed', hi: 'भुगतान नहीं हो पाया' },
  failedText: {
    en: 'The last attempt failed, and the time to pay has expired.',
    hi: 'पिछली कोशिश पूरी नहीं हुई और समय समाप्त हो गया है।',
  },
  expiredTitle: { en: 'Payment expired', hi: 'समय पर भुगतान नहीं हुआ' },
  expiredText: { en: 'No payment was received.', hi: 'कोई भुगतान नहीं मिला है।' },
  cancelledTitle: { en: 'Order cancelled', hi: 'ऑर्डर बंद हो गया' },
  cancelledText: {
    en: 'The merchant has cancelled this order. Please do not pay.',
    hi: 'विक्रेता ने यह ऑर्डर बंद कर दिया है। कृपया अब भुगतान न करें।',
  },
  timeUpTitle: { en: 'Time is up', hi: 'समय समाप्त हो गया' },
  timeUpText: {
    en: 'Please do not pay now. If you have just paid, stay here: this page is still checking for your payment.',
    hi: 'कृपया अब भुगतान न करें। अगर आपने अभी-अभी भुगतान किया है, तो यहीं रुकें: यह पेज आपके भुगतान की जाँच करता रहेगा।',
  },
  // The text refers to the bank and the merchant, because the service cannot see the customer's account.
  missingMoney: {
    en: 'If money has left your account, note the reference number (UTR) shown in your UPI app, and contact the merchant or your bank.',
    hi: 'अगर आपके खाते से पैसे कट गए हैं, तो आपके UPI ऐप में दिख रहा रेफ़रेंस नंबर (UTR) संभालकर रखें और विक्रेता या अपने बैंक से पूछें।',
  },

  payment: { en: 'Payment', hi: 'भुगतान' },
  notFound: { en: 'There is no payment at this address', hi: 'इस पते पर कोई भुगतान नहीं है' },
  gone: {
    en: 'This payment is no longer open. Ask the merchant for a new one.',
    hi: 'यह भुगतान अब नहीं किया जा सकता; विक्रेता से नया भुगतान लिंक माँगें',
  },
  unavailable: {
    en: 'The service is briefly unavailable; try again in a moment',
    hi: 'सेवा थोड़ी देर के लिए उपलब्ध नहीं है; कृपया कुछ पल बाद फिर से कोशिश करें',
  },
  internalError: {
    en: 'Something went wrong on our side; please try again',
    hi: 'हमारी ओर से कुछ गड़बड़ हो गई; कृपया फिर से कोशिश करें',
  },

  sandbox: { en: 'Sandbox', hi: 'सैंडबॉक्स' },
  noMoney: { en: 'no money moves', hi: 'असली पैसे नहीं कटते' },
  otherOutcomes: { en: 'Other outcomes', hi: 'दूसरे नतीजे' },
  simulateSUCCESS: { en: 'Simulate payment', hi: 'नकली भुगतान करें' },
  simulateFAIL: { en: 'Attempt fails', hi: 'कोशिश नाकाम हो' },
  simulateREJECT: { en: 'Attempt is rejected', hi: 'कोशिश अस्वीकार हो' },
  simulatedReason: { en: 'Reason', hi: 'वजह' },
  simulateEXPIRE: { en: 'Time is up', hi: 'समय समाप्त हो' },
  simulateLATE: { en: 'Pay too late', hi: 'देर से भुगतान करें' },
  simulateTWICE: { en: 'Pay twice', hi: 'दो बार भुगतान करें' },
  simulateOTHER_AMOUNT: { en: 'Pay ₹1 more', hi: '₹1 ज़्यादा भुगतान करें' },
  refundOf: { en: 'Refund {refund} of {amount}', hi: 'वापसी {refund}, {amount}' },
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

export function textsFor(acceptLanguage: string | undefined): PageTexts {
  return COLUMNS.get(preferredLanguage(acceptLanguage, LANGUAGES)) as PageTexts
}
