import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

it('npm ci finds no package that requires a newer Node.js than the running version', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-install-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const file of ['package.json', 'package-lock.json', '.npmrc']) cpSync(join(ROOT, file), join(folder, file))
  const args = ['ci', '--dry-run', '--offline', '--engine-strict']
  await expect(promisify(execFile)('npm', args, { cwd: folder })).resolves.toBeDefined()
})
