import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')

it('only colours.ts contains the colours of the pages', () => {
  const sheets = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css'))
  expect(sheets.length).toBe(3)
  const colours = sheets.flatMap((name) => [
    ...readFileSync(join(SRC, name), 'utf8').matchAll(/#[\da-f]{3,8}\b|\brgba?\([^)]*\)/gi),
  ])
  expect(colours.map(([colour]) => colour)).toEqual([])
})
