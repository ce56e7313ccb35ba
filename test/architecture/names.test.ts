import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const EXPORTED = /^export (?:type|interface|class|const (?=\w+ = (?:z\b|\w+\.extend\b))) ?(\w+)/gm

it('every exported type or schema name of src has its definition in only one file', () => {
  const homes = new Map<string, Set<string>>()
  for (const file of files) {
    for (const [, name = ''] of readFileSync(join(SRC, file), 'utf8').matchAll(EXPORTED)) {
      homes.set(name, (homes.get(name) ?? new Set()).add(file))
    }
  }
  expect(homes.size).toBeGreaterThan(100)
  expect([...homes].filter(([, of]) => of.size > 1).map(([name, of]) => [name, ...of])).toEqual([])
})

const MOST_PARAMETERS = 4

it('no function or function type of src has more than four parameters', () => {
  const found = new Set<string>()
  for (const file of files) {
    const source = ts.createSourceFile(file, readFileSync(join(SRC, file), 'utf8'), ts.ScriptTarget.Latest)
    const visit = (node: ts.Node) => {
      if (ts.isFunctionLike(node) && node.parameters.length > MOST_PARAMETERS) {
        found.add(`${file}:${source.getLineAndCharacterOfPosition(node.parameters.pos).line + 1}`)
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  expect([...found]).toEqual([])
})
