import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { renderChapter } from '../../src/docs/render-chapter.ts'
import { WEBHOOKS } from '../../src/gateway/webhooks/events.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { chapterText, GUIDES, ROOT } from '../guides/guides.ts'
import { run } from '../support/processes.ts'
import { problemsOf } from './problems.ts'

it('the build contains the chapters as HTML and Markdown, without the chapters’ renderer', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-build-'))
  try {
    await run(process.execPath, ['src/dev/build.mjs', folder])
    for (const chapter of GUIDES.flatMap(chaptersOf)) {
      const rendered = JSON.parse(readFileSync(join(folder, `guides/${chapter}.json`), 'utf8'))
      expect(rendered).toEqual(renderChapter(chapterText(chapter)))
      expect(readFileSync(join(folder, `guides/${chapter}.md`), 'utf8')).toBe(chapterText(chapter))
    }
    // The browser's library is minified: it weighs a quarter of the file in node_modules.
    expect(statSync(join(folder, 'ui/minisearch.js')).size).toBeLessThan(20_000)
    expect(readdirSync(join(folder, 'ui'))).toContain('minisearch.LICENSE')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.js') && !file.startsWith('ui/'),
    )
    const libraries = {
      'marked/lib/marked.esm.js': 'github.com/markedjs/marked',
      'highlight.js/lib/core.js': 'Unknown language',
      'minisearch/dist/es/index.js': 'addAllAsync',
    }
    for (const [file, trace] of Object.entries(libraries)) {
      expect(readFileSync(join(ROOT, 'node_modules', file), 'utf8')).toContain(trace)
      expect(files.filter((file) => readFileSync(join(folder, file), 'utf8').includes(trace))).toEqual([])
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

it('the build contains an SBOM of every package in its bundles, without addresses and paths of the machine', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-build-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  await run(process.execPath, ['src/dev/build.mjs', folder])
  const text = readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')
  const { bomFormat, metadata, components } = JSON.parse(text)
  const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(bomFormat).toBe('CycloneDX')
  const purl = `pkg:npm/${name}@${version}`
  expect(metadata.component).toMatchObject({ type: 'application', name, version, purl, externalReferences: [] })

  type Component = { name: string; version: string; hashes: { alg: string }[]; externalReferences: object[] }
  const packages = components as Component[]
  expect(packages.flatMap(({ externalReferences }) => externalReferences)).toEqual([])
  expect(packages.filter(({ hashes }) => hashes[0]?.alg !== 'SHA-512')).toEqual([])
  for (const trace of ['/node_modules/', 'registry', ROOT, homedir(), tmpdir()]) expect(text).not.toContain(trace)
  // esbuild writes the path of each module above its code, unless it minifies.
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'))
  const bundled = scripts.flatMap((file) =>
    [
      ...readFileSync(join(folder, file), 'utf8').matchAll(/^\/\/ (?:\S*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//gm),
    ].map(([, name = '']) => name),
  )
  expect(new Set(bundled).size).toBeGreaterThan(20)
  const listed = packages.map(({ name }) => name)
  expect([...bundled, 'minisearch', 'openapi-explorer'].filter((name) => !listed.includes(name))).toEqual([])
  // Tools for development.
  for (const name of ['vitest', 'esbuild', 'typescript']) expect(listed).not.toContain(name)
})

it('the OpenAPI document without notifications passes a linter’s strictest rules', async () => {
  const { acquirer: _, ...others } = OPERATIONS
  const operations = Object.values(others).flat()
  expect(
    await problemsOf(openApiDocument({ publicUrl: 'https://pay.example.in/upi', operations, webhooks: WEBHOOKS })),
  ).toEqual([])
})
