import { randomInt } from 'node:crypto'
import * as z from 'zod'
import { contrast, darkened } from '../../platform/contrast.ts'
import { displayName, emailAddress, errorText, identifier, matching, readUrl, VPA } from '../../platform/fields.ts'
import { HIGHEST_MAX_RUPEES, USUAL_MAX_RUPEES } from '../../platform/money.ts'
import { HIGHEST_EXPIRY_MINUTES, LEAST_EXPIRY_MINUTES, LONGEST_EXPIRY_MINUTES } from '../payments/order-lifetime.ts'

/** UPI's parameter pn allows at most 99 characters. */
const name = displayName(99)

const vpa = matching(VPA, 'must be a UPI address such as shop@bank')

const PAYEES_LIMIT = 20
const PAYEES_RULE = `must be a UPI address, or at least 3 of a-z 0-9 . - with one * before the @, such as shop.*@bank; at most ${PAYEES_LIMIT} values, or only default`
/** Requires at least three characters before `*`, because a shorter prefix would allow nearly every payee of a bank. */
const PAYEE_PREFIX = /^[a-z0-9.-]{3,255}\*@[a-z0-9.-]{1,64}$/i

/** The field `payees` of `Merchant`. `default` means the merchant's own UPI address, and becomes an empty list. */
const payees = z
  .array(z.string())
  .transform((given) => (given.length === 1 && given[0] === 'default' ? [] : given))
  .refine(
    (given) => given.length <= PAYEES_LIMIT && given.every((one) => VPA.test(one) || PAYEE_PREFIX.test(one)),
    PAYEES_RULE,
  )

const mcc = matching(/^[0-9]{4}$/, 'must be 4 digits, such as 5814')

/** A whole number from `min` to `max` of the `unit`, or `default`, which becomes `usual`. */
function wholeOrDefault<T>(unit: string, { min, max, usual }: { min: number; max: number; usual: T }) {
  const rule = `must be ${unit}, ${min} to ${max}, or default`
  return matching(/^(?:default|[1-9]\d{0,5})$/, rule)
    .transform((text) => (text === 'default' ? usual : Number(text)))
    .refine((given) => typeof given !== 'number' || (given >= min && given <= max), rule)
}

const MINUTES = 'a whole number of minutes'

const PERCENTS_RULE =
  'must be percent with at most two decimals, such as 1.8, optionally followed by a comma and that of the fallback acquirer, or none'
const PERCENT = '[0-9]{1,2}(?:\\.[0-9]{1,2})?'
export const percent = matching(new RegExp(`^${PERCENT}$`), 'must be percent with at most two decimals, such as 1.8')

/**
 * The acquirers' deductions: one value for all acquirers of the merchant, or one value for each acquirer. `none`
 * becomes an empty list.
 */
const percents = matching(new RegExp(`^(?:none|${PERCENT}(?:,${PERCENT})?)$`), PERCENTS_RULE).transform((typed) =>
  typed === 'none' ? [] : typed.split(','),
)

const ACQUIRERS_RULE =
  'must be an acquirer such as setu:ACCOUNT/MERCHANTID, optionally followed by a comma and a fallback acquirer, which is used if the first creates no link'
const NAMED_ACQUIRER = /^([a-z0-9-]{1,32}(?::[A-Za-z0-9_-]{1,64})?)(?:\/([A-Za-z0-9_.-]{1,64}))?$/

/**
 * The acquirer of a merchant, and the fallback acquirer: `setu:acme/ID,cashfree`. The account and the identifier are
 * optional.
 */
const acquirers = z.string(errorText(ACQUIRERS_RULE)).transform((typed, context) => {
  const named = typed.split(',').map((one) => NAMED_ACQUIRER.exec(one))
  const [first, next] = named.map((parts) => ({ name: parts?.[1]?.replace(/:default$/, '') ?? '', id: parts?.[2] }))
  if (first && named.length <= 2 && !named.includes(null)) return { first, next }
  context.addIssue(ACQUIRERS_RULE)
  return z.NEVER
})

/** WCAG 1.4.11 requires this contrast for the parts by which a person recognises a control. */
const LEAST_CONTRAST = 3

const COLOUR_RULE = "must be a colour such as '#0b6b4f', in quotes, or none"

const colour = matching(/^(?:none|#[0-9a-fA-F]{6})$/, COLOUR_RULE).transform((typed, context) => {
  if (typed === 'none') return null
  const given = typed.toLowerCase()
  const ratio = contrast(given, '#ffffff')
  if (ratio >= LEAST_CONTRAST) return given
  const shown = (Math.floor(ratio * 100) / 100).toFixed(2)
  const nearest = darkened(given, LEAST_CONTRAST)
  context.addIssue(
    `has a contrast of ${shown}:1 to white, and needs ${LEAST_CONTRAST}:1: use '${nearest}', the nearest colour that has it`,
  )
  return z.NEVER
})

const WEBSITE_LIMIT_CHARACTERS = 255
const WEBSITE_RULE = `must be an https URL of at most ${WEBSITE_LIMIT_CHARACTERS} characters, such as https://shop.example, or none`

/** Becomes the form in which browsers write the URL. */
const website = z.string(errorText(WEBSITE_RULE)).transform((typed, context) => {
  if (typed === 'none') return null
  const url = readUrl(typed)
  const isPublic = url?.protocol === 'https:' && url.username === '' && url.password === ''
  if (isPublic && url.href.length <= WEBSITE_LIMIT_CHARACTERS) return url.href
  context.addIssue(WEBSITE_RULE)
  return z.NEVER
})

const SUPPORT_RULE =
  'must be an e-mail address such as care@shop.example, a telephone number such as +91 80 1234 5678, or none'
const TELEPHONE = /^\+?[0-9](?:[ -]?[0-9]){2,14}$/

const support = z.string(errorText(SUPPORT_RULE)).transform((typed, context) => {
  if (typed === 'none') return null
  if (TELEPHONE.test(typed)) return typed
  const address = emailAddress.safeParse(typed)
  if (address.success) return address.data
  context.addIssue(SUPPORT_RULE)
  return z.NEVER
})

const MerchantFields = z.object({
  mid: identifier,
  name,
  vpa,
  payee: payees,
  mcc,
  dynamicQr: z.enum(['link', 'image'], errorText('must be link or image')),
  acquirer: acquirers,
  /** An acquirer account; `default` is the account that the environment configures. */
  account: identifier,
  acquirerMerchantId: matching(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 characters of A-Z a-z 0-9 _ . -'),
  input: z.enum(['strict', 'shop'], errorText('must be strict or shop')),
  /** Time to pay; null means the service's own setting. */
  expiryMinutes: wholeOrDefault(MINUTES, { min: 1, max: LONGEST_EXPIRY_MINUTES, usual: null }),
  maxExpiryMinutes: wholeOrDefault(MINUTES, {
    ...{ min: LEAST_EXPIRY_MINUTES, max: HIGHEST_EXPIRY_MINUTES, usual: LONGEST_EXPIRY_MINUTES },
  }),
  /** Largest amount of an intent. */
  maxAmount: wholeOrDefault('whole rupees', { min: 1, max: HIGHEST_MAX_RUPEES, usual: USUAL_MAX_RUPEES }),
  fee: percents,
  tax: percents,
  /** Whether the service itself calls the redirect_url of a paid order. */
  returnCall: z.enum(['on', 'off'], errorText('must be on or off')),
  /** The path of a PNG, `-` for standard input, or `none`. */
  logo: z.string(errorText('must be the path of a PNG, - for standard input, or none')),
  colour,
  website,
  support,
})

/** UPI's category code for payments between individuals, also used for merchants without a category. */
export const UNCLASSIFIED_MCC = '0000'

export const NewMerchant = MerchantFields.partial().extend({
  mid: identifier.default(assignMid),
  name,
  vpa,
  mcc: mcc.default(UNCLASSIFIED_MCC),
  dynamicQr: MerchantFields.shape.dynamicQr.default('link'),
  acquirer: MerchantFields.shape.acquirer.prefault('direct'),
})

export const ChangedMerchant = MerchantFields.partial().required({ mid: true })

export const NewPartner = z.object({ pid: identifier, name })

/** Capital letters and digits, without characters that are easily confused, such as O and 0. */
const UNAMBIGUOUS = '23456789ABCDEFGHJKMNPQRSTVWXYZ'
const ASSIGNED_LENGTH = 10

/** Returns a mid for a merchant that is added without a mid: `M` followed by 10 random characters (49 bits). */
function assignMid(): string {
  return `M${Array.from({ length: ASSIGNED_LENGTH }, () => UNAMBIGUOUS[randomInt(UNAMBIGUOUS.length)]).join('')}`
}
