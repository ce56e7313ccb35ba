/** Comments, texts, names and dollar quotes, in which a semicolon ends no statement; refused spellings; and `;`. */
const PARTS = /--.*|\/\*|\b[eE]'|'[^']*'|"[^"]*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g

/**
 * The statements of an SQL file, each for a message of its own, because Citus refuses a message with several statements. The
 * body of a function must stand between dollar quotes: any other body is cut at its semicolons, and PostgreSQL refuses the
 * pieces. Throws at `/*` and E'…', whose end PARTS does not find.
 */
export function splitStatements(sql: string): string[] {
  const statements: string[] = []
  let start = 0
  for (const { 0: part, index } of sql.matchAll(PARTS)) {
    if (part === '/*') throw new Error('write comments with --, not with /*')
    if (/^e'/i.test(part)) throw new Error("write texts without backslashes, '…' or $$…$$, not E'…'")
    if (part !== ';') continue
    statements.push(sql.slice(start, index + 1).trim())
    start = index + 1
  }
  const rest = sql.slice(start).trim()
  const isComment = rest.replace(/--.*/g, '').trim() === ''
  return isComment ? statements : [...statements, rest]
}
