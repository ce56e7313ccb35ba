import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fastify } from 'fastify'
import MiniSearch from 'minisearch'
import { describe, expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { operatorGuideRoutes } from '../../src/docs/routes.ts'
import type { SearchEntry } from '../../src/docs/search.ts'
import { LIMITS } from '../../src/limits.ts'
import { chapterText, ROOT } from '../guides/guides.ts'
import { PUBLIC_URL } from '../support/service.ts'

const PAGES = chaptersOf('decisions')
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const site = fastify()
operatorGuideRoutes(site, { publicUrl: PUBLIC_URL })
const entries = (await site.inject('/docs/search.json')).json<SearchEntry[]>()

/** The ranking that the browser loads. */
type Ranking = { createSearch: (library: unknown, entries: SearchEntry[]) => (query: string) => SearchEntry[] }
const ranking: Ranking = await import(join(ROOT, 'src/docs/ui/search.js'))
const find = ranking.createSearch(MiniSearch, entries)

describe('the search of the operator documentation', () => {
  it.each([
    ['why is there no event-loop check?', 'event-loop-check'],
    ['may I delete a merchant?', 'delete-a-merchant'],
    ['why is FAIL not final while an order is open?', 'fail-is-not-final'],
    ['why is a refund not sent again?', 'refunds-sent-once'],
    ['why does the close of a month wait 15 seconds?', 'month-close'],
    ['why is money stored in paise?', 'money-in-paise'],
    ['which words are forbidden?', 'forbidden-words'],
    ['can I use Redis or LISTEN and NOTIFY?', 'postgresql-only'],
    ['why does the console have no JavaScript?', 'console'],
    ['may a function have five parameters?', 'code-limits'],
  ])('finds among its first three results the decision about “%s”', (question, page) => {
    expect(
      find(question)
        .slice(0, 3)
        .map(({ url }) => url),
    ).toContain(`decisions/${page}`)
  })
})

describe('the pages of decisions', () => {
  it.each(PAGES)('%s has at most 25 lines of at most 140 characters, and one heading', (page) => {
    const lines = chapterText(page).trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(25)
    expect(lines.filter((line) => line.length > 140)).toEqual([])
    expect(lines.filter((line) => line.startsWith('#'))).toEqual(lines.slice(0, 1))
  })

  it.each(PAGES)('%s states the decision, what enforces it, and when to reconsider it', (page) => {
    const parts = [...chapterText(page).matchAll(/^\*\*([^*]+)\.\*\*(?: |$)/gm)].map(([, part]) => part)
    expect(parts).toEqual(expect.arrayContaining(['Decision', 'Enforced by', 'Reconsider']))
  })

  it('name only constraints, indexes, triggers and limits that exist', () => {
    const text = PAGES.map(chapterText).join('\n')
    const migrations = readdirSync(join(ROOT, 'migrations')).map((file) => textOf(`migrations/${file}`))
    const lists = [...text.matchAll(/\b(?:constraint|index|trigger|key)s?((?:\s`\w+`,?(?:\sand)?)+)/gi)]
    const names = lists.flatMap(([, list = '']) => [...list.matchAll(/\w+_\w+/g)].map(([name]) => name))
    expect(names.length).toBeGreaterThan(15)
    expect(names.filter((name) => !migrations.some((sql) => sql.includes(` ${name} `)))).toEqual([])
    const limits = [...text.matchAll(/`([a-z]\w+)\.([a-zA-Z]+)`/g)].filter(([, area = '']) => area in LIMITS)
    expect(limits.length).toBeGreaterThan(5)
    const areas: Record<string, object> = LIMITS
    expect(limits.filter(([, area = '', name = '']) => !(name in (areas[area] ?? {})))).toEqual([])
  })

  it('src/README.md links each decision', () => {
    const readme = textOf('src/README.md')
    expect(PAGES.filter((page) => !readme.includes(`(docs/guides/${page}.md)`))).toEqual([])
  })
})
