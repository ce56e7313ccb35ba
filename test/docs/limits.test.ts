import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { headersTooLarge } from '../../src/errors.ts'
import { LIMITS } from '../../src/limits.ts'

const DEFAULTS = readConfig({ DATABASE_URL: 'postgres://localhost/any' })

const { connections, answer, lookUps, database, inserts, lateness, lists, pages, shutdown } = LIMITS

describe('the limits', () => {
  it('are what refusals tell callers', () => {
    expect(headersTooLarge().message).toContain(`at most ${connections.headersBytes / 1024} KiB `)
  })

  it('add up to 503 within 2 s while the database is away', () => {
    expect(database.connectTimeoutMs + answer.ms).toBeLessThan(2_000)
    // The caller of an intent that still waits to be stored has not been answered yet.
    expect(inserts.waitingMs).toBeLessThan(answer.ms)
  })

  it('let nobody read on for 5 s after the key was revoked or the link was cut', () => {
    const lookUpMs = database.connectTimeoutMs + database.queryTimeoutMs
    expect(lookUps.rememberedMs + lists.readerCheckIntervalMs + lookUpMs).toBeLessThan(5_000)
  })

  it('leave a connection to others than open pay pages, and refuse pay pages before payments', () => {
    expect(pages.open).toBeLessThan(connections.connections)
    expect(lateness.pagesMs).toBeLessThan(lateness.operationsMs)
  })

  it('end the process before container platforms kill it, after 30 s', () => {
    expect(DEFAULTS.shutdownDrainSeconds * 1000 + shutdown.closeMs).toBeLessThan(30_000)
  })
})
