import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { anchorsOf, chapterText, ROOT } from './guides.ts'

const PAGE = readFileSync(join(ROOT, 'src/operator/console/page.ts'), 'utf8')
const LINKS = [...PAGE.matchAll(/href="docs\/(operator\/[\w-]+)#?([\w-]*)"/g)].map(([, chapter, anchor]) => [
  chapter as string,
  anchor as string,
])

it('the operator dashboard links to chapters of the operator manual', () => {
  expect(LINKS.length).toBeGreaterThan(4)
  expect(PAGE).not.toContain('href="docs#')
})

it.each(LINKS)('the operator dashboard links to the existing chapter %s and its section "%s"', (chapter, anchor) => {
  expect(chaptersOf('operator')).toContain(chapter)
  expect(anchorsOf(chapterText(chapter))).toContain(anchor)
})
