import { LRUCache } from 'lru-cache'
import type { Limits } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Logo } from './logo.ts'

/** Returns the PNG of a merchant's logo by its hash; undefined if the merchant has another logo or none. */
export type FindLogo = (mid: string, sha256: string) => Promise<Buffer | undefined>

const FIND_LOGO = prepared('select png from merchant_logos where mid = $1 and sha256 = $2')

/** Caches logos, because every customer's browser requests the same few. A hash names the same bytes for ever. */
export function createLogoFinder(db: Queryable, { logosBytes }: Pick<Limits['pages'], 'logosBytes'>): FindLogo {
  const logos = new LRUCache<string, Buffer, { mid: string }>({
    maxSize: logosBytes,
    sizeCalculation: (png) => png.length,
    ignoreFetchAbort: true,
    async fetchMethod(sha256, _stale, { context: { mid } }) {
      const { rows } = await db.query<{ png: Buffer }>(FIND_LOGO(mid, sha256))
      return rows[0]?.png
    },
  })
  return (mid, sha256) => logos.fetch(sha256, { context: { mid } })
}

/**
 * Stores the logo of a merchant, or deletes it if `logo` is null. The caller changes the hash of the merchant in the
 * same transaction.
 */
export async function saveLogo(db: Queryable, mid: string, logo: Logo | null): Promise<void> {
  if (logo === null) {
    await db.query('delete from merchant_logos where mid = $1', [mid])
    return
  }
  await db.query(
    `insert into merchant_logos (mid, sha256, png)
     values ($1, $2, $3)
     on conflict (mid) do update set sha256 = excluded.sha256, png = excluded.png`,
    [mid, logo.sha256, logo.png],
  )
}
