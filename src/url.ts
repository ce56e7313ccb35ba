/**
 * Returns undefined when `text` is no URL. Not by `canParse` of URL: in Node.js 20, once optimised by V8, canParse refuses every
 * address with a letter such as ü.
 */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
