import type { Described } from '../platform/http/operation.ts'
import { GUIDES, guideOf } from './chapters.ts'
import type { Chapter } from './render-chapter.ts'
import { filledIn, type Site } from './site.ts'

/** A search result: a section of a chapter, or an operation. `url` is relative to /docs/. */
export type SearchEntry = { url: string; guide: string; title: string; heading: string; text: string }

/** Returns the search entries of a chapter, one for each section. */
export function entriesOf(chapter: string, { title, sections }: Chapter, site: Site): SearchEntry[] {
  const guide = GUIDES[guideOf(chapter)].title
  return sections.map(({ heading, anchor, text }) => {
    return { url: anchor ? `${chapter}#${anchor}` : chapter, guide, title, heading, text: filledIn(text, site) }
  })
}

/** Returns one search entry for each operation. The entry opens the operation in the API reference. */
export function entriesOfOperations(operations: readonly Described[]): SearchEntry[] {
  return operations.map(({ name, method, path, summary, description }) => ({
    url: `reference#?route=${method.toLowerCase()}-${path.replace(/:(\w+)/g, '-$1-')}`,
    guide: 'API reference',
    title: name,
    heading: summary,
    text: `${method} ${path} ${description}`,
  }))
}
