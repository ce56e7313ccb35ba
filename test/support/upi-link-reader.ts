/**
 * A reader of UPI payment links and of the texts of UPI QRs, as strict as a payer's app.
 *
 * It imports nothing from `src`, so that a link is checked against independent sources and not against a mistake that
 * writer and reader share. Its sources:
 * - NPCI, "UPI Linking Specifications", version 1.6 (public): the format `upi://pay?name=value&…`, the parameters pa, pn,
 *   mc, tid, tr, tn, am, mam, cu, url, mode, orgid and sign, percent-encoding, decimal amounts, INR only, and a
 *   reference (tr) for every merchant;
 * - NPCI's additions for QRs since UPI 2.0, as banks publish them: ver, purpose, qrMedium (06 is a web page), QRver, and
 *   QRts and QRexpire in ISO 8601 with India's offset; at most 99 characters for a name (pn), 50 for a note (tn) and 35
 *   letters, digits, hyphens and underscores for a reference (tr);
 * - Juspay's public table of NPCI's initiation modes (04 is an intent, 22 an online dynamic QR);
 * - Android's documentation of `intent:` links, and the prefixes that public gateways return for each wallet.
 */

export interface UpiLink {
  /** The prefix before the first parameter, including the question mark, such as `phonepe://pay?`. */
  prefix: string
  /** The package of the Android app that the link opens; undefined unless the link is an Android intent. */
  androidPackage: string | undefined
  payeeAddress: string
  payeeName: string
  /** In paise; undefined if the payer enters the amount. */
  amount: number | undefined
  reference: string | undefined
  note: string | undefined
  merchantCategory: string | undefined
  mode: string | undefined
  qrMedium: string | undefined
  qrCreatedAt: Date | undefined
  qrExpiresAt: Date | undefined
  /** Every parameter, decoded, by its name in the link. */
  parameters: ReadonlyMap<string, string>
}

const ANDROID_PREFIX = 'intent://pay?'
const PREFIXES = [
  'upi://pay?',
  'phonepe://pay?',
  'paytmmp://pay?',
  'paytmmp://upi/pay?',
  'tez://upi/pay?',
  'gpay://upi/pay?',
  'bhim://upi/pay?',
  'credpay://upi/pay?',
  ANDROID_PREFIX,
]

/** The format of each parameter after decoding. Lengths count characters, as in UPI's XML schemas. */
const FORMS: Record<string, RegExp> = {
  // A handle contains dots only for an account or Aadhaar number, such as 5010@hdfc0000001.ifsc.npci.
  pa: /^(?=.{5,255}$)[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z][A-Za-z0-9]+(\.ifsc\.npci|\.npci)?$/,
  pn: /^.{1,99}$/u,
  mc: /^\d{4}$/,
  tid: /^[A-Za-z0-9]{1,35}$/,
  tr: /^[A-Za-z0-9_-]{1,35}$/,
  tn: /^.{1,50}$/u,
  am: /^(0|[1-9]\d*)\.\d{2}$/,
  mam: /^(0|[1-9]\d*)\.\d{2}$/,
  cu: /^INR$/,
  url: /^https:\/\/[^\s]+$/,
  ver: /^\d{2}$/,
  mode: /^(0\d|1\d|2[0-4])$/,
  purpose: /^\d{2}$/,
  orgid: /^\d{6}$/,
  sign: /^[A-Za-z0-9+/]+={0,2}$/,
  QRver: /^\d{2}$/,
  QRts: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+05:30$/,
  QRexpire: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+05:30$/,
  qrMedium: /^0[0-6]$/,
}

/**
 * Reads a link at `now` by the payer's clock. Throws an `Error` with the reason why an app would reject or misread the
 * link.
 */
export function readUpiLink(link: string, now: Date): UpiLink {
  const prefix = PREFIXES.find((known) => link.startsWith(known))
  if (prefix === undefined) throw new Error(`no wallet opens ${link.slice(0, 24)}`)
  const { query, androidPackage } = withoutIntent(prefix, link.slice(prefix.length))
  const parameters = readParameters(query)
  const payeeAddress = required(parameters, 'pa')
  const payeeName = required(parameters, 'pn')
  const amount = parameters.get('am')
  if (amount !== undefined) required(parameters, 'cu')
  if (amount !== undefined && paise(amount) === 0) throw new Error('am is zero')
  const merchantCategory = parameters.get('mc')
  if (merchantCategory !== undefined && merchantCategory !== '0000') required(parameters, 'tr')
  const qrCreatedAt = instant(parameters, 'QRts')
  const qrExpiresAt = instant(parameters, 'QRexpire')
  if (qrCreatedAt && qrExpiresAt && qrCreatedAt > qrExpiresAt) throw new Error('QRts is after QRexpire')
  if (qrCreatedAt && qrCreatedAt > now) throw new Error('QRts is in the future')
  if (qrExpiresAt && qrExpiresAt <= now) throw new Error('the link has expired')
  return {
    prefix,
    androidPackage,
    payeeAddress,
    payeeName,
    amount: amount === undefined ? undefined : paise(amount),
    reference: parameters.get('tr'),
    note: parameters.get('tn'),
    merchantCategory,
    mode: parameters.get('mode'),
    qrMedium: parameters.get('qrMedium'),
    qrCreatedAt,
    qrExpiresAt,
    parameters,
  }
}

/** Reads the text of a QR, for which wallets accept only the generic prefix. Throws like `readUpiLink`. */
export function readUpiQr(text: string, now: Date): UpiLink {
  if (!text.startsWith('upi://pay?')) throw new Error(`a QR contains upi://pay?, not ${text.slice(0, 24)}`)
  return readUpiLink(text, now)
}

/** Android reads the text after the last # as the intent; all other links have no fragment. */
function withoutIntent(prefix: string, rest: string): { query: string; androidPackage: string | undefined } {
  if (prefix !== ANDROID_PREFIX) return { query: rest, androidPackage: undefined }
  const intent = /^([^#]*)#Intent;((?:[A-Za-z._]+=[^;#]*;)+)end$/.exec(rest)
  if (!intent) throw new Error('the link does not end as an Android intent, #Intent;…;end')
  const [, query = '', settings = ''] = intent
  const values = new Map<string, string>()
  for (const setting of settings.split(';').slice(0, -1)) {
    const at = setting.indexOf('=')
    const name = setting.slice(0, at)
    if (values.has(name)) throw new Error(`the intent names ${name} twice`)
    values.set(name, setting.slice(at + 1))
  }
  if (values.get('scheme') !== 'upi') throw new Error('the scheme of the intent is not upi')
  const androidPackage = values.get('package')
  if (androidPackage !== undefined && !/^[A-Za-z]\w*(\.[A-Za-z]\w*)+$/.test(androidPackage)) {
    throw new Error(`${androidPackage} is no package of Android`)
  }
  return { query, androidPackage }
}

function readParameters(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  const seen = new Set<string>()
  for (const pair of query.split('&')) {
    const [, name = '', raw = ''] = /^([A-Za-z]+)=(.+)$/s.exec(pair) ?? []
    if (!name) throw new Error(`"${pair}" is not a parameter and its value`)
    if (seen.has(name.toLowerCase())) throw new Error(`${name} is given twice`)
    seen.add(name.toLowerCase())
    const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined
    if (!form) throw new Error(`${name} is no parameter of a UPI link`)
    const value = decoded(name, raw)
    if (!form.test(value)) throw new Error(`${name} is not of its form: ${value}`)
    parameters.set(name, value)
  }
  return parameters
}

/**
 * Some apps decode a plus as a space and others as a plus, so a link must encode both: %20 for a space and %2B for a
 * plus.
 */
function decoded(name: string, raw: string): string {
  if (raw.includes('+')) throw new Error(`${name} contains a plus that is not encoded`)
  if (!/^(?:[A-Za-z0-9._~!$'()*,;:@/?-]|%[0-9A-Fa-f]{2})+$/.test(raw)) {
    throw new Error(`${name} contains a character that is not encoded: ${raw}`)
  }
  let value: string
  try {
    value = decodeURIComponent(raw)
  } catch {
    throw new Error(`${name} is not UTF-8: ${raw}`)
  }
  if (/\p{Cc}/u.test(value)) throw new Error(`${name} contains a control character`)
  return value
}

function required(parameters: ReadonlyMap<string, string>, name: string): string {
  const value = parameters.get(name)
  if (value === undefined) throw new Error(`${name} is missing`)
  return value
}

function paise(rupees: string): number {
  const amount = Number(rupees.replace('.', ''))
  if (!Number.isSafeInteger(amount)) throw new Error(`${rupees} is too much`)
  return amount
}

/** Rejects a date that does not exist, such as 30 February, because it changes when it is formatted again. */
function instant(parameters: ReadonlyMap<string, string>, name: string): Date | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const at = new Date(text)
  const indian = Number.isNaN(at.getTime()) ? '' : new Date(at.getTime() + 330 * 60_000).toISOString().slice(0, 19)
  if (`${indian}+05:30` !== text) throw new Error(`${name} is no date: ${text}`)
  return at
}
