import { expect, it, vi } from 'vitest'
import { errorResponse, responseOf, startService } from '../support/service.ts'

it('the service reads the open refunds for /readyz once per interval, however many requests arrive', async () => {
  const service = await startService({ limits: { lookUps: { cachedMs: 3_600_000 } } })
  const query = vi.spyOn(service.pools.pages, 'query')
  const requested = await Promise.all(Array.from({ length: 20 }, () => service.app.inject('/readyz')))
  expect(new Set(requested.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  // No refund is open.
  expect(query.mock.calls.filter(([statement]) => JSON.stringify(statement).includes('from refunds'))).toHaveLength(1)
})

it('the service returns 503 with the reason for /readyz while the database accepts no writes', async () => {
  const service = await startService()
  const setReadOnly = async (value: 'on' | 'off') => {
    // Only new sessions use the changed setting of a database.
    const name = new URL(service.databaseUrl).pathname.slice(1)
    await service.db.query(
      `begin read write; alter database ${name} set default_transaction_read_only = ${value}; commit`,
    )
    await service.db.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
  }
  const ready = async () => responseOf(await service.app.inject('/readyz'))
  expect((await ready()).status).toBe(200)
  await setReadOnly('on')
  await vi.waitFor(async () =>
    expect(await ready()).toMatchObject({
      status: 503,
      body: errorResponse(
        503,
        'The database accepts no writes because default_transaction_read_only is on. Some providers set it when the disk is full: check the free space.',
      ),
    }),
  )
  await setReadOnly('off')
  await vi.waitFor(async () => expect((await ready()).status).toBe(200))
})
