import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')

/**
 * PostgreSQL caches each text of a prepared statement until its connection is closed: texts that vary would fill its
 * memory. Statements are therefore prepared when a module is loaded, from a constant or by a function that is called
 * for a constant.
 */
it('modules prepare every statement when loaded, and no request prepares a statement', () => {
  const MAKERS = ['prepared', 'describeRows', 'defineList', 'query']
  const call = new RegExp(`(?<!function |override |\\.)\\b(${MAKERS.join('|')})[<(]`)
  const constant = new RegExp(`^(export )?const \\w+ = (${MAKERS.join('|')})[<(]`)
  const inMaker = /^ {2}(const insertArrays =|const statement = prepared\((config|short))/
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const calls = files.flatMap((file) =>
    readFileSync(join(SRC, file), 'utf8')
      .split('\n')
      .filter((line) => call.test(line) && !line.startsWith(' *'))
      .map((line) => ({ file, line })),
  )
  expect(calls.length).toBeGreaterThan(10)
  expect(calls.filter(({ line }) => !constant.test(line) && !inMaker.test(line))).toEqual([])
})
