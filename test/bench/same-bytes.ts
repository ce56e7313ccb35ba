/** Random values, times and signatures. They differ between messages, with the same length and format. */
const VARIABLE = [
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
  /[0-9a-f]{32}/gi,
  /\d{4}-\d\d-\d\d[ T]\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d{3}Z)?/g,
  /\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g,
  /\b\d{10}\b/g,
  /v1,[\w+/]{43}=/g,
]

/**
 * Throws unless all contenders have sent the same messages byte by byte, apart from variable values. Otherwise their
 * costs are not comparable.
 */
export function requireSameBytes(sent: Record<string, unknown[]>): void {
  const texts = Object.entries(sent).map(([name, messages]) => ({ name, text: maskedText(messages) }))
  for (const { name, text } of texts) {
    if (text !== texts[0]?.text) throw new Error(`${name} and ${texts[0]?.name} differ:\n${text}\n${texts[0]?.text}`)
  }
}

/** Replaces each character of a variable value, so that its length and format remain. */
const maskedText = (messages: unknown[]) =>
  VARIABLE.reduce(
    (text, value) => text.replaceAll(value, (found) => found.replaceAll(/[\w+/]/g, '#')),
    JSON.stringify(messages, null, 1),
  )
