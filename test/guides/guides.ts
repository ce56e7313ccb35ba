import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export const GUIDES = ['merchant', 'shops', 'partner', 'acquirer', 'operator', 'setu', 'cashfree', 'phonepe'] as const
export type Guide = (typeof GUIDES)[number]

export const guideText = (guide: Guide) => readFileSync(join(ROOT, `src/docs/guides/${guide}.md`), 'utf8')

/** A fenced block of a guide, as it is written; `filledIn` makes of it what the reader sees. */
export type Block = { guide: Guide; language: string; text: string }

export const blocks: readonly Block[] = GUIDES.flatMap((guide) =>
  [...guideText(guide).matchAll(/^```(\S*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => {
    return { guide, language, text }
  }),
)

/** The blocks of a guide in one language, in order. */
export const blocksOf = (guide: Guide, language: string) =>
  blocks.filter((block) => block.guide === guide && block.language === language).map(({ text }) => text)

/** The one block of a guide in `language` that contains `part`; there must be exactly one. */
export function blockWith(guide: Guide, language: string, part = ''): string {
  const found = blocksOf(guide, language).filter((text) => text.includes(part))
  if (found.length !== 1)
    throw new Error(`${found.length} blocks of ${language} in the ${guide}'s guide contain "${part}"`)
  return found[0] as string
}

export function filledIn(text: string, publicUrl: string, shopUrl = `${publicUrl}/docs/thanks`): string {
  return text.replaceAll('{PUBLIC_URL}', publicUrl).replaceAll('{SHOP_URL}', shopUrl)
}
