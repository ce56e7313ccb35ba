import { type Html, html } from '../../platform/html.ts'
import type { Checkout } from '../payments/intents.ts'
import type { PageTexts } from './texts.ts'

type Brand = Checkout['brand']

/** The address of the merchant's contact: `mailto:`, `tel:` or the website; undefined if the merchant has none. */
function contactAddress({ support, website }: Brand): string | undefined {
  if (support === null) return website ?? undefined
  if (!support.includes('@')) return `tel:${support.replace(/[^+\d]/g, '')}`
  // A `?` or `#` of the address would begin the fields of the message.
  return `mailto:${encodeURIComponent(support).replace('%40', '@')}`
}

/** The link in the footer by which the customer contacts the merchant. */
export function helpLink(brand: Brand, texts: PageTexts): Html | undefined {
  const address = contactAddress(brand)
  return address === undefined ? undefined : html`<a class="help" href="${address}">${texts.help}</a>`
}

/** The contact as text, for states in which the customer may need it. */
export function contactLine(brand: Brand): Html | undefined {
  const address = contactAddress(brand)
  if (address === undefined) return undefined
  return html`<p><a class="contact" href="${address}"><bdi>${brand.support ?? hostOf(address)}</bdi></a></p>`
}

/** The host of a website without `www.`. */
export const hostOf = (website: string) => new URL(website).hostname.replace(/^www\./, '')
