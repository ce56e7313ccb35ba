import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { PAY_COLOURS } from '../../platform/colours.ts'
import { textOn } from '../../platform/contrast.ts'
import type { Checkout } from '../payments/intents.ts'
import type { PageTexts } from './texts.ts'

const readPart = (name: string) => withoutComments(readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8'))

export const CSS = (withoutComments(PAY_COLOURS) + readPart('page.css'))
  .replace(/\s*([{};,])\s*/g, '$1')
  .replace(/([{;][\w-]+): /g, '$1:')
  .replaceAll(';}', '}')
export const JS = readPart('page.js')

/**
 * Removes comments and indentation, so that pages load faster over slow networks. Supports single-line comments only.
 */
function withoutComments(text: string): string {
  return text.replace(/^\s*(?:\/\/.*|\/\*.*\*\/)?\n?/gm, '')
}

export const DEFAULT_COLOUR = '#3b3fd8'
const HEX_COLOUR = /^#[0-9a-f]{6}$/

/** The brand's colour; the default if none is set, or if the stored one is not `#rrggbb`. */
export const brandColour = ({ brand }: Pick<Checkout, 'brand'>): string =>
  brand.colour !== null && HEX_COLOUR.test(brand.colour) ? brand.colour : DEFAULT_COLOUR

/**
 * The style of one response: the brand's colour and the time left, in which the time bar shrinks. It contains only
 * checked colours and numbers, because the content security policy allows it by its hash.
 */
export function responseStyle(checkout: Pick<Checkout, 'brand' | 'createdAt' | 'expiresAt'>, now: Date): string {
  const colour = brandColour(checkout)
  const { totalSeconds, leftSeconds } = secondsLeft(checkout, now)
  const bar = `animation-duration:${totalSeconds}s;animation-delay:-${totalSeconds - leftSeconds}s`
  const still = `transform:scaleX(${(leftSeconds / totalSeconds).toFixed(3)})`
  return `${brandStyle(colour)}.bar i{${bar};${still}}`
}

export const brandStyle = (colour: string) => `:root{--brand:${colour};--on-brand:${textOn(colour)}}`

/** Whole seconds from the order's creation to its expiry, at least 1, and from `now` to its expiry, at least 0. */
export function secondsLeft({ createdAt, expiresAt }: Pick<Checkout, 'createdAt' | 'expiresAt'>, now: Date) {
  const totalSeconds = Math.max(1, Math.ceil((expiresAt.getTime() - createdAt.getTime()) / 1000))
  const leftSeconds = Math.ceil((expiresAt.getTime() - now.getTime()) / 1000)
  return { totalSeconds, leftSeconds: Math.min(totalSeconds, Math.max(0, leftSeconds)) }
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const CSS_HASH = hashOf(CSS)
const JS_HASH = hashOf(JS)

/**
 * Headers of a page with these styles besides its own. They allow only the page's own styles and script, and forbid
 * frames, Referer and indexing.
 */
export function pageHeaders({ language }: Pick<PageTexts, 'language'>, ...styles: string[]) {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `style-src ${[CSS_HASH, ...styles.map(hashOf)].join(' ')}`,
      `script-src ${JS_HASH}`,
      "img-src 'self' data:",
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'x-robots-tag': 'noindex, nofollow',
    'referrer-policy': 'no-referrer',
    // The page's texts depend on the language, and its layout and wallet links on the customer's device.
    vary: 'accept-encoding, accept-language, user-agent',
    'content-language': language,
  }
}
