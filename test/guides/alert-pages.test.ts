import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { flagsIn } from '../../src/operator/commands/field.ts'
import { pageName } from '../../src/operator/console/view.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { type Key, startService } from '../support/service.ts'
import { chapterText, guideText, ROOT } from './guides.ts'

const RULES = readFileSync(join(ROOT, 'src/operator/monitoring/alerts.yml'), 'utf8')
/** The rules by the name of the alert. */
const ALERTS = RULES.split(/^ {6}- alert: /m)
  .slice(1)
  .map((rule) => ({ name: rule.slice(0, rule.indexOf('\n')), rule }))
const CONSOLE_LINK = /In the console, open \[([^\]]+)\]\(http:\/\/localhost:3002\/([a-z-]+)(?:\?([a-z-]+)=on)?\)/g
const HEADINGS = ['## Impact', '## Checks', '## Fix', '## When it resolves']

let site: TestConsole
let key: Key
beforeAll(async () => {
  const service = await startService()
  site = await createTestConsole(service)
  key = await newOperatorKey(service.db)
})

describe('every alert has a page', () => {
  it('the tests for alert pages read all rules of alerts.yml', () => {
    expect(ALERTS.length).toBe(RULES.match(/alert:/g)?.length)
    expect(ALERTS.length).toBeGreaterThan(20)
  })

  it('the folder of pages and the list of chapters contain exactly the alerts of alerts.yml', () => {
    const names = ALERTS.map(({ name }) => name).sort()
    const files = readdirSync(join(ROOT, 'src/docs/guides/alerts')).map((file) => file.replace(/\.md$/, ''))
    expect(files.sort()).toEqual(names)
    expect(
      chaptersOf('alerts')
        .map((chapter) => chapter.replace('alerts/', ''))
        .sort(),
    ).toEqual(names)
  })

  it.each(ALERTS)('the alert $name links to its page by runbook_url', ({ name, rule }) => {
    expect(rule.match(/runbook_url: (\S+)/)?.[1]).toBe(`http://127.0.0.1:3001/docs/alerts/${name}`)
  })

  it.each(ALERTS)(
    'the page of the alert $name states severity and delay, and has the common sections',
    ({ name, rule }) => {
      const text = chapterText(`alerts/${name}`)
      expect(text.split('\n')[0]).toBe(`# ${name}`)
      expect(text.match(/^## .*$/gm)).toEqual(HEADINGS)
      const severity = /severity: (?:(\w+)|'\{\{ if)/.exec(rule)?.[1] ?? 'page'
      expect(text).toContain(`**Severity: ${severity}`)
      const minutes = /^ {8}for: (\d+)m$/m.exec(rule)?.[1]
      const delay = minutes === undefined ? 'immediately' : `after ${minutes} minute${minutes === '1' ? '' : 's'}`
      expect(text).toContain(`Fires ${delay}`)
    },
  )

  it.each(ALERTS)('the page of the alert $name links to the page of the console to open', async ({ name }) => {
    const links = [...chapterText(`alerts/${name}`).matchAll(CONSOLE_LINK)]
    expect(links).toHaveLength(1)
    const [[, label, page = '', flag] = []] = links
    const command = COMMANDS.find((one) => !one.changes && pageName(one) === page)
    expect(command?.title).toBe(label)
    expect(Object.keys(flagsIn(command?.fields ?? {}))).toEqual(
      expect.arrayContaining(flag === undefined ? [] : [flag]),
    )
    expect((await site.get(`/${page}${flag ? `?${flag}=on` : ''}`, key)).status).toBe(200)
  })

  it('alerts and pages name only commands that exist', () => {
    const named = [...`${RULES}${guideText('alerts')}`.matchAll(/(?<=["`( ]|^)ops ((?:[a-z]+(?:-[a-z]+)*\b ?){1,2})/gm)]
    const names = [...new Set(named.map(([, name = '']) => name.trim()))]
    expect(names.length).toBeGreaterThan(10)
    const isCommand = (name: string) =>
      COMMANDS.some((one) => `${one.name} `.startsWith(`${name} `) || one.name === name.split(' ')[0])
    expect(names.filter((name) => !isCommand(name))).toEqual([])
  })
})
