import fc from 'fast-check'
import { afterAll, afterEach, vi } from 'vitest'
import { runChecks, stopAll } from './at-end.ts'
import { isGenerated } from './generated.ts'
import { killStarted } from './processes.ts'

// The same input each time, so that nothing fails by chance; `npm run test:generated` looks for new input that fails.
if (!isGenerated()) fc.configureGlobal({ seed: 1 })

afterEach(runChecks)

// Registered before the hooks of the file, so it runs after them. A test that fails before its end leaves what it started: a
// service would look for its database for ever.
afterAll(async () => {
  await stopAll().finally(killStarted)
  // The next file of the worker has the same globals.
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  vi.useRealTimers()
})
