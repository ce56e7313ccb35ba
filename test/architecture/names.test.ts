import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')
const EXPORTED = /^export (?:type|interface|class|const (?=\w+ = (?:z\b|\w+\.extend\b))) ?(\w+)/gm

it('an exported type or schema name is defined in one file of src', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const homes = new Map<string, Set<string>>()
  for (const file of files) {
    for (const [, name = ''] of readFileSync(join(SRC, file), 'utf8').matchAll(EXPORTED)) {
      homes.set(name, (homes.get(name) ?? new Set()).add(file))
    }
  }
  expect(homes.size).toBeGreaterThan(100)
  expect([...homes].filter(([, of]) => of.size > 1).map(([name, of]) => [name, ...of])).toEqual([])
})
