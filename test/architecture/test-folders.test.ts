import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'

const TEST = resolve(import.meta.dirname, '..')

/** Folders that several others use. The tests of other folders also read the guides, with the helpers beside them. */
const SHARED = ['support', 'guides']

it('a folder of tests imports nothing from another folder of tests except test/support', () => {
  const files = readdirSync(TEST, { recursive: true, encoding: 'utf8' }).filter((path) => /\.m?ts$/.test(path))
  const imports = files.flatMap((file) =>
    [...readFileSync(join(TEST, file), 'utf8').matchAll(/^(?:import|export|\}) .*from '(\.[^']+)'$/gm)].map(
      ([, path = '']) => {
        const folder = relative(TEST, resolve(TEST, dirname(file), path)).split('/')[0] ?? ''
        return { file, path, own: file.split('/')[0], folder }
      },
    ),
  )
  // Some tests contain imports as text, whose files do not exist.
  const existing = imports.filter(({ file, path }) => existsSync(join(TEST, dirname(file), path)))
  const foreign = existing.filter(({ own, folder }) => folder !== '..' && folder !== own && !SHARED.includes(folder))
  expect(foreign.map(({ file, path }) => `${file} imports ${path}`)).toEqual([])
  expect(existing.length).toBeGreaterThan(300)
})
