import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from './support/database.ts'
import { freePort } from './support/processes.ts'

const ROOT = join(import.meta.dirname, '..')

let url: string
beforeAll(async () => {
  ;({ url } = await createTestDatabase())
})

const statusOf = (port: number, path: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) }).then(
    ({ status }) => status,
    () => undefined,
  )

describe.skipIf(!existsSync('/dev/full'))('log on a full disk', () => {
  it('the service handles requests and shuts down although the disk for its log is full', async () => {
    const port = await freePort()
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/server.ts'], {
      cwd: ROOT,
      env: {
        ...process.env,
        DATABASE_URL: url,
        PORT: String(port),
        OPS_PORT: '0',
        SHUTDOWN_DRAIN_SECONDS: '0',
        PUBLIC_URL: 'http://localhost',
      },
      stdio: ['ignore', openSync('/dev/full', 'w'), 'inherit'],
    })
    try {
      await expect.poll(() => statusOf(port, '/livez'), { timeout: 20_000 }).toBe(200)
      // More lines than are written together, and a flush after them.
      await Promise.all(Array.from({ length: 100 }, () => statusOf(port, '/nowhere')))
      await sleep(1_000)
      expect(await statusOf(port, '/livez')).toBe(200)
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})
