import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { headersTooLarge } from '../../src/errors.ts'
import { LIMITS } from '../../src/limits.ts'

const DEFAULTS = readConfig({ DATABASE_URL: 'postgres://localhost/any' })

const { connections, response, lookUps, database, inserts, lists, pages, shutdown } = LIMITS

describe('default limits', () => {
  it('the error for large headers names the default limit of the header size', () => {
    expect(headersTooLarge().message).toContain(`at most ${connections.headersBytes / 1024} KiB `)
  })

  it('the default limits lead to 503 within 2 s while the database is unavailable', () => {
    expect(database.connectTimeoutMs + response.ms).toBeLessThan(2_000)
    // The caller of an intent that still waits to be stored has not been answered yet.
    expect(inserts.waitingMs).toBeLessThan(response.ms)
  })

  it('the default limits stop a long list within 5 s after the key is revoked or the partner link is removed', () => {
    const lookUpMs = database.connectTimeoutMs + database.queryTimeoutMs
    expect(lookUps.cachedMs + lists.readerCheckIntervalMs + lookUpMs).toBeLessThan(5_000)
  })

  it('the default limits leave connections for other clients while pay pages are open', () => {
    expect(pages.open).toBeLessThan(connections.connections)
  })

  it('the default limits terminate the process within 30 s, before container platforms kill it', () => {
    expect(DEFAULTS.shutdownDrainSeconds * 1000 + shutdown.closeMs).toBeLessThan(30_000)
  })
})
