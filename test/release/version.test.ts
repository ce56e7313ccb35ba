import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openApiDocument } from '../../src/docs/openapi.ts'

const ROOT = join(import.meta.dirname, '../..')
const fileText = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { name: NAME, version: VERSION } = JSON.parse(fileText('package.json')) as { name: string; version: string }
const DOCKERFILE = fileText('Dockerfile')

it('package-lock.json and the OpenAPI document have the version of package.json', () => {
  const lock = JSON.parse(fileText('package-lock.json'))
  const { info } = openApiDocument({ publicUrl: 'https://pay.example', operations: [], webhooks: [] })
  expect([lock.version, lock.packages[''].version, info.version]).toEqual([VERSION, VERSION, VERSION])
})

it('the image has labels with the name and version of package.json, and with the commit and source of the build', () => {
  const [, labels = ''] = /^LABEL ((?:.*\\\n)*.*)$/m.exec(DOCKERFILE) ?? []
  const pairs = [...labels.matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)].map(([, key, value]) => [
    key,
    value,
  ])
  expect(Object.fromEntries(pairs)).toEqual({
    ...{ title: NAME, version: VERSION, revision: '$COMMIT', source: '$SOURCE' },
  })
})

it('the image contains the build with its SBOM, and an unset COMMIT or SOURCE is unknown, as in ops --version', () => {
  const [globals = '', ...stages] = DOCKERFILE.split(/^(?=FROM )/m)
  expect(globals.match(/^ARG .*$/gm)).toEqual(['ARG COMMIT=unknown', 'ARG SOURCE=unknown'])
  const final = stages.at(-1) ?? ''
  const build = stages.find((stage) => stage.includes('npm run build')) ?? ''
  expect(build.indexOf('ARG COMMIT\n')).toBeGreaterThan(0)
  expect(build.indexOf('npm run build')).toBeGreaterThan(build.indexOf('ARG COMMIT\n'))
  for (const name of ['COMMIT', 'SOURCE'])
    expect(final.indexOf('LABEL ')).toBeGreaterThan(final.indexOf(`ARG ${name}\n`))
  expect(final).toMatch(/^COPY --from=build \/app\/dist dist$/m)
  const values = ['COMMIT', 'SOURCE'].map((name) => `${name}: '\${${name}:-unknown}'`)
  expect(fileText('docker-compose.yml')).toContain(`build: { context: ., args: { ${values.join(', ')} } }`)
})

it('the changelog lists versions in descending order, each with its date, except one unreleased version at the top', () => {
  const text = fileText('src/docs/guides/merchant/changelog.md')
  const headings = [...text.matchAll(/^## (\d.*)$/gm)].map(([, heading = '']) => heading)
  const parts = headings.map((heading) => /^(\d+\.\d+\.\d+) \((unreleased|\d{1,2} [A-Z][a-z]+ \d{4})\)$/.exec(heading))
  expect(headings.filter((_, index) => parts[index] === null)).toEqual([])
  expect(parts.slice(1).map((part) => part?.[2])).not.toContain('unreleased')
  const versions = parts.map((part) => part?.[1] ?? '')
  const isLower = (one: string, other: string) => one.localeCompare(other, 'en', { numeric: true }) < 0
  expect(versions.filter((version, index) => index > 0 && !isLower(version, versions[index - 1] ?? ''))).toEqual([])
  expect(versions).toContain(VERSION)
})
