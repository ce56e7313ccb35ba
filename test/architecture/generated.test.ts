import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const TEST = resolve(import.meta.dirname, '..')

it('the test project `generated` runs exactly the test files with long input', () => {
  const files = readdirSync(TEST, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.test.ts'))
  const generators = files.filter((path) =>
    /from '.*support\/generated\.ts'/.test(readFileSync(join(TEST, path), 'utf8')),
  )
  expect(generators).toEqual(files.filter((path) => path.endsWith('.gen.test.ts')))
  expect(generators.length).toBeGreaterThan(10)
})
