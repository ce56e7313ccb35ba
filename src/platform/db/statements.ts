import { readFile } from 'node:fs/promises'
import type { Queryable } from './pool.ts'

/**
 * Sends each statement in an SQL file as a separate message, because Citus rejects several statements in one message.
 */
export async function runFile(client: Queryable, file: string | URL): Promise<void> {
  for (const statement of splitStatements(await readFile(file, 'utf8'))) await client.query(statement)
}

/**
 * Matches the parts in which a semicolon terminates no statement (comments, strings, names, dollar quotes), syntax that
 * is rejected, and `;`.
 */
const PARTS = /--.*|\/\*|\b[eE]'|'[^']*'|"[^"]*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g

/**
 * Splits an SQL file into statements. The body of a function must be between dollar quotes: any other body is cut at
 * its semicolons, and PostgreSQL rejects the pieces. Throws an Error for `/*` and E'…', whose end PARTS does not find.
 */
export function splitStatements(sql: string): string[] {
  const statements: string[] = []
  let start = 0
  for (const { 0: part, index } of sql.matchAll(PARTS)) {
    if (part === '/*') throw new Error('write comments with -- instead of /*')
    if (/^e'/i.test(part)) throw new Error("write strings as '…' or $$…$$ instead of E'…'")
    if (part !== ';') continue
    statements.push(sql.slice(start, index + 1).trim())
    start = index + 1
  }
  const rest = sql.slice(start).trim()
  const isComment = rest.replace(/--.*/g, '').trim() === ''
  return isComment ? statements : [...statements, rest]
}
