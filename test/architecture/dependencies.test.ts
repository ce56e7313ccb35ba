import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

it.each(['', 'test/oracles'])(
  'the lock file in ./%s names no registry, so that npm uses the configured registry',
  (folder) => {
    expect(readFileSync(join(ROOT, folder, 'package-lock.json'), 'utf8')).not.toContain('"resolved"')
  },
)
