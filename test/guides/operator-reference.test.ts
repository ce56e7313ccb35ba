import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { chapterText, ROOT } from './guides.ts'

it('the configuration reference lists exactly the settings of .env.example', () => {
  const example = readFileSync(join(ROOT, '.env.example'), 'utf8')
  const settings = [...example.matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name)
  const rows = chapterText('operator/configuration').match(/^\| `[A-Z].*$/gm) ?? []
  const documented = rows.flatMap((row) => (row.split(' | ')[0] as string).match(/[A-Z_]+/g) ?? [])
  expect(documented.sort()).toEqual(settings.sort())
})

/** The source of the service, without the programs of developers. */
const SOURCE = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('dev/'))
  .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'))
  .join('\n')
const LOWER_CASE_SOURCE = SOURCE.toLowerCase()
const LOGS = chapterText('operator/logs')

/** Messages of log calls on one line. */
const LOGGED = [...SOURCE.matchAll(/\blog\??(?:\.\w+|\[level\])\(.*'([^']+)'\)$/gm)].map(([, message = '']) => message)

it.each([...new Set(LOGGED)])('the chapter on logs describes the message "%s"', (message) => {
  expect(LOGS.toLowerCase()).toContain(`\`${message.toLowerCase()}`)
})

const ROWS = [...LOGS.matchAll(/^\| (?:info|warn|error|fatal) \| (.*?) \|/gm)]
const DESCRIBED = ROWS.flatMap(([, cell = '']) => cell.match(/`[^`]{9,}`/g) ?? []).map((quoted) =>
  // Only the name of the acquirer and the advice differ from message to message.
  quoted.replaceAll('`', '').replace(/^.*?Setu|: …$/g, ''),
)

it.each(DESCRIBED)('the service logs the message "%s" from the chapter on logs', (message) => {
  expect(LOWER_CASE_SOURCE).toContain(message.toLowerCase())
})
