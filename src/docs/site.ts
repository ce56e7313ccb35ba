import { chaptersOf, GUIDES, type GuideName, guideOf } from './chapters.ts'

/** The guides on the public port. Every other guide is available only on the operator port. */
const PUBLIC_GUIDES: readonly GuideName[] = ['merchant', 'partner', 'plugins', 'acquirer']

export type DocsOptions = {
  publicUrl: string
  /** Whether this service accepts notifications from the acquirer `direct`. If true, the acquirer guide is public. */
  acceptsNotifications: boolean
  /** Whether payments are simulated. If true, the redirect_urls in samples lead to a page of this service. */
  sandbox: boolean
}

/** One of the two documentation sites: the site on the public port, or the site on the operator port. */
export type Site = { port: 'public' | 'operator'; publicUrl: string; sandbox: boolean; guides: readonly GuideName[] }

export function publicSite({ publicUrl, sandbox, acceptsNotifications }: DocsOptions): Site {
  const guides = PUBLIC_GUIDES.filter((name) => acceptsNotifications || name !== 'acquirer')
  return { port: 'public', publicUrl, sandbox, guides }
}

export function operatorSite({ publicUrl }: Pick<DocsOptions, 'publicUrl'>): Site {
  const guides = (Object.keys(GUIDES) as GuideName[]).filter((name) => !PUBLIC_GUIDES.includes(name))
  return { port: 'operator', publicUrl, sandbox: false, guides }
}

export const chaptersOfSite = ({ guides }: Site) => guides.flatMap(chaptersOf)

/** Returns the group of a chapter within its guide, such as `Payments`. */
export function groupOf(chapter: string): string {
  const guide = guideOf(chapter)
  const groups = Object.entries<readonly string[]>(GUIDES[guide].groups)
  return groups.find(([, names]) => names.includes(chapter.slice(guide.length + 1)))?.[0] ?? ''
}

/** Replaces {PUBLIC_URL} and {SHOP_URL} in a chapter with real addresses, so that pasted samples work. */
export function filledIn(text: string, { publicUrl, sandbox }: Site, format = (value: string) => value): string {
  const values: Record<string, string> = {
    PUBLIC_URL: publicUrl,
    SHOP_URL: sandbox ? `${publicUrl}/docs/thanks` : 'https://shop.example/thanks',
  }
  return text.replace(/\{([A-Z]+_URL)\}/g, (whole, name) => format(values[name] ?? whole))
}
