import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { renderGuide } from '../../src/docs/render-guide.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { GUIDES, guideText, ROOT } from '../guides/guides.ts'
import { run } from '../support/processes.ts'
import { problemsOf } from './problems.ts'

it('the build contains the guides as HTML and Markdown, without their renderer', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-build-'))
  try {
    await run(process.execPath, ['src/dev/build.mjs', folder])
    for (const guide of GUIDES) {
      expect(readFileSync(join(folder, `guides/${guide}.html`), 'utf8')).toBe(renderGuide(guideText(guide)))
      expect(readFileSync(join(folder, `guides/${guide}.md`), 'utf8')).toBe(guideText(guide))
    }
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.js') && !file.startsWith('ui/'),
    )
    const library = readFileSync(join(ROOT, 'node_modules/marked/lib/marked.esm.js'), 'utf8')
    const trace = 'github.com/markedjs/marked'
    expect(library).toContain(trace)
    expect(files.filter((file) => readFileSync(join(folder, file), 'utf8').includes(trace))).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

it('the OpenAPI document without notifications passes a linter’s strictest rules', async () => {
  const { acquirer: _, ...others } = OPERATIONS
  const operations = Object.values(others).flat()
  expect(await problemsOf(openApiDocument({ publicUrl: 'https://pay.example.in/upi', operations }))).toEqual([])
})
