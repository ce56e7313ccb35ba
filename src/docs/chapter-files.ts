import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Chapter } from './render-chapter.ts'

/** Reads the Markdown source of a chapter such as `merchant/refunds`. */
export const readMarkdown = (chapter: string) => readFile(new URL(`./guides/${chapter}.md`, import.meta.url), 'utf8')

/**
 * Reads a rendered chapter from the build. A checkout contains no rendered chapters, so the chapter is rendered on
 * request.
 */
export async function readChapter(chapter: string): Promise<Chapter> {
  const built = new URL(`./guides/${chapter}.json`, import.meta.url)
  if (existsSync(built)) return JSON.parse(await readFile(built, 'utf8')) as Chapter
  // Imported only in a checkout, because a build contains neither this module nor its libraries.
  const { renderChapter } = await import('./render-chapter.ts')
  return renderChapter(await readMarkdown(chapter))
}

/** Returns the titles of chapters by path. The title is the heading in the first line of the file. */
export async function readTitles(chapters: readonly string[]): Promise<Record<string, string>> {
  const titles = chapters.map(async (chapter) => {
    const [first = ''] = (await readMarkdown(chapter)).split('\n', 1)
    return [chapter, first.replace(/^# /, '').replaceAll('`', '')] as const
  })
  return Object.fromEntries(await Promise.all(titles))
}
