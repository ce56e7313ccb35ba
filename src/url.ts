/**
 * `text` as a URL; undefined when it is none. `canParse` of URL is not used: in Node.js 20, once V8 has optimised it, it
 * refuses every address with a letter such as ü.
 */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
