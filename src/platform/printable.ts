/**
 * Returns untrusted text as one line that is safe to show anywhere: without control characters and characters that
 * reverse text.
 */
export function printableLine(text: string, characters: number): string {
  const line = text.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S}]+|\uFFFD+/gu, ' ')
  return [...line.trim()].slice(0, characters).join('')
}

/**
 * Characters with which untrusted text could control a terminal or hide parts of itself: control and format characters,
 * lone surrogates, and line and paragraph separators. Line breaks are excluded, and so are the joiners that Indian
 * names need.
 */
const OBEYED = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

export const neutralize = (text: string) => text.replace(OBEYED, '\ufffd')

/** Makes untrusted text safe to print in one line on a terminal. */
export const toOneLine = (text: string) => neutralize(text).replaceAll('\n', '\ufffd')

/**
 * Escapes OBEYED characters in JSON. The parsed value stays the same, because these characters occur only inside JSON
 * strings.
 */
export const escapeJson = (json: string) =>
  json.replace(OBEYED, (character) => character.split('').map(toEscape).join(''))

const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
