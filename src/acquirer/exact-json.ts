/**
 * A string (a name if a colon follows), a number, or a brace. Digits that are no number of JSON, or stand for a name, are not
 * matched: JSON.parse refuses them.
 */
const JSON_TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-]|\s*:)|[{}]/g

/**
 * Reads JSON with each number as its text: a decimal amount must not become a float, nor an identifier of 19 digits. Throws a
 * SyntaxError for what is not JSON, and for an object that has a name twice, of which JSON.parse would keep the last.
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
