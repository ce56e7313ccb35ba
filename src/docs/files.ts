import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { COLOURS, SAMPLE_COLOURS } from '../platform/colours.ts'
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

/** Library files by name. A build bundles minisearch. */
const LIBRARIES: Record<string, string> = {
  'openapi-explorer.min.js': 'openapi-explorer/dist/browser/openapi-explorer.min.js',
  'minisearch.js': 'minisearch',
}

/** The scripts and style sheets of the documentation. */
export const ASSETS = ['guide.css', 'guide.js', 'search.js', 'reference.js', ...Object.keys(LIBRARIES)]

/** Reads a script or style sheet in src/docs/ui, or the script of a library. */
export async function readAsset(name: string): Promise<string> {
  const ours = new URL(`./ui/${name}`, import.meta.url)
  const file = existsSync(ours) ? ours : fileURLToPath(import.meta.resolve(LIBRARIES[name] as string))
  const text = await readFile(file, 'utf8')
  return name === 'guide.css' ? COLOURS + SAMPLE_COLOURS + text : text
}
