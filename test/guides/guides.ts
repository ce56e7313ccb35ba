import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GUIDES as CHAPTERS, chaptersOf, type GuideName } from '../../src/docs/chapters.ts'
import { renderChapter } from '../../src/docs/render-chapter.ts'

export const ROOT = join(import.meta.dirname, '../..')

export const GUIDES = Object.keys(CHAPTERS) as GuideName[]
export type Guide = GuideName

export const chapterText = (chapter: string) => readFileSync(join(ROOT, `src/docs/guides/${chapter}.md`), 'utf8')

/** All chapters of a guide, in reading order. */
export const guideText = (guide: Guide) => chaptersOf(guide).map(chapterText).join('\n')

/** Markdown without its fenced blocks, where a # begins a comment and brackets are code. */
export const proseOf = (markdown: string) => markdown.replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')

/** Anchors of a text's headings; the empty one is the top of the page. */
export const anchorsOf = (markdown: string) => [
  '',
  ...[...renderChapter(markdown).html.matchAll(/ id="([^"]+)"/g)].map(([, anchor = '']) => anchor),
]

/** A fenced block of a guide, with the placeholders that `filledIn` replaces. */
export type Block = { guide: Guide; language: string; text: string }

export const blocks: readonly Block[] = GUIDES.flatMap((guide) =>
  // A block of a list item is indented.
  [...guideText(guide).matchAll(/^( *)```(\S*)(?: .*)?\n([\s\S]*?)^\1```$/gm)].map(
    ([, indent = '', language = '', text = '']) => {
      return { guide, language, text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), '') }
    },
  ),
)

/** The blocks of a guide in one language, in order. */
export const blocksOf = (guide: Guide, language: string) =>
  blocks.filter((block) => block.guide === guide && block.language === language).map(({ text }) => text)

/** The only block of a guide in `language` that contains `part`. Throws unless there is exactly one. */
export function blockWith(guide: Guide, language: string, part = ''): string {
  const found = blocksOf(guide, language).filter((text) => text.includes(part))
  if (found.length !== 1)
    throw new Error(`${found.length} blocks of ${language} in the ${guide}'s guide contain "${part}"`)
  return found[0] as string
}

export function filledIn(text: string, publicUrl: string, shopUrl = `${publicUrl}/docs/thanks`): string {
  return text.replaceAll('{PUBLIC_URL}', publicUrl).replaceAll('{SHOP_URL}', shopUrl)
}
