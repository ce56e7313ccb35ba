/**
 * A string (a name if a colon follows), a number, or a brace. Digits that are not a JSON number, or stand in place of a
 * name, are not matched, so that JSON.parse refuses them.
 */
const JSON_TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-]|\s*:)|[{}]/g

/**
 * Parses JSON and returns each number as text, because a decimal amount or an identifier of 19 digits must not become a
 * float. Throws a SyntaxError for invalid JSON and for a name that an object has twice, which JSON.parse would accept.
 */
export function parseExact(json: string): unknown {
  const objects: Set<string>[] = []
  const exact = json.replace(JSON_TOKEN, (token: string, string?: string, colon?: string) => {
    if (token === '{') objects.push(new Set())
    else if (token === '}') objects.pop()
    else if (string === undefined) return `"${token}"`
    else if (colon !== undefined) {
      const names = objects.at(-1)
      const name = JSON.parse(string)
      if (names?.has(name)) throw new SyntaxError('A name occurs twice in one object')
      names?.add(name)
    }
    return token
  })
  return JSON.parse(exact)
}
