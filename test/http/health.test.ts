import { expect, it, vi } from 'vitest'
import { startService } from '../support/service.ts'

it('/readyz reads the open refunds once per interval, however many requests come', async () => {
  const service = await startService({ limits: { lookUps: { cachedMs: 3_600_000 } } })
  const query = vi.spyOn(service.pools.pages, 'query')
  const asked = await Promise.all(Array.from({ length: 20 }, () => service.app.inject('/readyz')))
  expect(new Set(asked.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  // None is open.
  expect(query.mock.calls.filter(([sql]) => String(sql).includes('from refunds'))).toHaveLength(1)
})
