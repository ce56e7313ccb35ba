import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
export const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** A fenced block; `section` is the heading of second rank that it stands under. */
export type Block = { section: string; language: string; text: string }

export const blocks: readonly Block[] = README.split(/^## /m).flatMap((part) => {
  const section = part.split('\n', 1)[0] ?? ''
  return [...part.matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => {
    return { section, language, text }
  })
})

export const MERCHANT = "For the merchant's developer"
export const PARTNER = "For the partner's developer"
export const OPERATOR = 'For the operator'

/** The blocks of a section in one language, in order. */
export const blocksOf = (section: string, language: string) =>
  blocks.filter((block) => block.section === section && block.language === language).map(({ text }) => text)

/** The one block of a section in `language` that contains `part`; there must be exactly one. */
export function blockWith(section: string, language: string, part = ''): string {
  const found = blocksOf(section, language).filter((text) => text.includes(part))
  if (found.length !== 1) throw new Error(`${found.length} blocks of ${language} in "${section}" contain "${part}"`)
  return found[0] as string
}
