import { chaptersOf, GUIDES, type GuideName } from './chapters.ts'

/** The guides of the public port. Every other guide is on the operator's port only. */
const PUBLIC_GUIDES: readonly GuideName[] = ['merchant', 'partner', 'plugins', 'acquirer']

export type DocsOptions = {
  publicUrl: string
  /** Whether this service accepts notifications of the acquirer `direct`: then the acquirer's guide is public. */
  acceptsNotifications: boolean
  /** Whether payments are simulated: the redirect_urls of samples then lead to a page of this service. */
  sandbox: boolean
}

/** One of the two documentation sites: that of the public port, or that of the operator's port. */
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

/** The group of a chapter within its guide, such as `Payments`. */
export function groupOf(chapter: string): string {
  const [guide = '', name = ''] = chapter.split('/')
  const groups = Object.entries<readonly string[]>(GUIDES[guide as GuideName].groups)
  return groups.find(([, names]) => names.includes(name))?.[0] ?? ''
}

/**
 * Addresses of earlier versions below /docs, and the chapters or pages that they redirect to, relative to the old address:
 * the browser resolves them, so that they also work behind a proxy that serves the service under a path.
 */
export function redirectsOf(site: Site): Record<string, string> {
  const firstChapters = site.guides.map((guide) => [guide, chaptersOf(guide)[0] as string])
  const renamed = site.port === 'public' ? [['shops', 'plugins/overview']] : chaptersOf('acquirers').map(withoutFolder)
  return Object.fromEntries([...firstChapters, ...renamed])
}

const withoutFolder = (chapter: string) => [chapter.slice(chapter.indexOf('/') + 1), chapter]

/** Replaces {PUBLIC_URL} and {SHOP_URL} in a chapter by real addresses, so that its samples work when pasted. */
export function filledIn(text: string, { publicUrl, sandbox }: Site, format = (value: string) => value): string {
  const values: Record<string, string> = {
    PUBLIC_URL: publicUrl,
    SHOP_URL: sandbox ? `${publicUrl}/docs/thanks` : 'https://shop.example/thanks',
  }
  return text.replace(/\{([A-Z]+_URL)\}/g, (whole, name) => format(values[name] ?? whole))
}
