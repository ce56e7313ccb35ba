import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { splitStatements } from '../../src/platform/db/statements.ts'

const FOLDER = new URL('../../migrations/', import.meta.url)

/** The parts of a statement that a distributed database (Citus) rejects. */
function errors(statement: string): string[] {
  const words = wordsOf(statement)
  if (!/^alter table\b/.test(words)) return []
  const changes = words.split(',')
  const added = changes.filter((change) => /\badd constraint\b/.test(change))
  const withConstraint = changes.filter(
    (change) =>
      /\badd (?!constraint\b)/.test(change) && /\b(constraint|primary key|unique|references|check)\b/.test(change),
  )
  return [
    ...(added.length > 0 && changes.length > 1 ? ['ADD CONSTRAINT is not alone in its ALTER TABLE'] : []),
    ...(withConstraint.length > 0 ? ['a constraint inside ADD COLUMN'] : []),
  ]
}

/** The statement in lower case with single spaces, without comments, strings and text in brackets. */
function wordsOf(statement: string): string {
  let words = statement.replace(/--.*|'[^']*'/g, ' ').toLowerCase()
  while (/\([^()]*\)/.test(words)) words = words.replace(/\([^()]*\)/g, ' ')
  return words.replace(/\s+/g, ' ').trim()
}

describe('migrations of a distributed database', () => {
  const files = readdirSync(FOLDER).sort()

  it.each(files)('migration %s contains nothing that Citus rejects on distributed tables', (file) => {
    const statements = splitStatements(readFileSync(new URL(file, FOLDER), 'utf8'))
    expect(statements.flatMap((statement) => errors(statement).map((why) => `${why}: ${statement}`))).toEqual([])
  })

  it.each([
    ['alter table t add constraint a check (x in (1, 2))', []],
    ["alter table t add column a text not null default ',', add b int", []],
    ['-- add column, check\nalter table t drop constraint a', []],
    ['alter table t add constraint a check (x), add constraint b check (y)', ['ADD CONSTRAINT is not alone']],
    ['alter table t\n  add column x int,\n  add constraint a check (x > 0)', ['ADD CONSTRAINT is not alone']],
    ['alter table t add column x int check (x > 0)', ['a constraint inside']],
    ['alter table t add x int constraint positive check (x > 0)', ['a constraint inside']],
    ['ALTER TABLE t ADD COLUMN x int REFERENCES u (y)', ['a constraint inside']],
    ['alter table t add column x int unique', ['a constraint inside']],
  ])('the migration check finds exactly the statements that Citus rejects: %s', (statement, why) => {
    expect(errors(statement)).toEqual(why.map((beginning) => expect.stringContaining(beginning)))
  })
})
