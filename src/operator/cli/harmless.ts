/**
 * Characters with which foreign text could control a terminal or hide: control and format characters, lone surrogates,
 * line and paragraph separators. Line breaks are excluded, and the joiners that Indian names need.
 */
const OBEYED = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

export const neutralize = (text: string) => text.replace(OBEYED, '\ufffd')

/** Makes foreign text safe to print in one line of a terminal. */
export const toOneLine = (text: string) => neutralize(text).replaceAll('\n', '\ufffd')

/** Escapes OBEYED characters. The value of the JSON is unchanged, because they occur only inside strings. */
export const escapeJson = (json: string) =>
  json.replace(OBEYED, (character) => character.split('').map(toEscape).join(''))

const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
