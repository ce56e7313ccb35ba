export const TEMPLATE = 'template_migrated'

/** The same server and user as `url`, another database. */
export function databaseUrl(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${database}`
  return other.href
}
