/**
 * Matches a string (a name if a colon follows), a number, or a brace. Digits that are not a JSON number, or that
 * replace a name, do not match, so that JSON.parse rejects them.
 */
const JSON_TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-]|\s*:)|[{}]/g

/**
 * Parses JSON and returns each number as text, so that a decimal amount or a 19-digit identifier never becomes a
 * float. Throws a SyntaxError for invalid JSON and for a duplicate name in an object, which JSON.parse would accept.
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
      if (names?.has(name)) throw new SyntaxError('An object contains the same name twice. Send each name once.')
      names?.add(name)
    }
    return token
  })
  return JSON.parse(exact)
}
