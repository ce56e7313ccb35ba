import fc from 'fast-check'
import { afterAll, afterEach, vi } from 'vitest'
import { runChecks, stopAll } from './at-end.ts'
import { isGenerated } from './generated.ts'
import { killStarted } from './processes.ts'

// Uses the same input each time, so that no test fails by chance; `npm run test:generated` tries new input.
if (!isGenerated()) fc.configureGlobal({ seed: 1 })

afterEach(runChecks)

// Registered before the hooks of the file, so it runs after them. Stops what a failed test left running: a service
// would try to reach its database forever.
afterAll(async () => {
  await stopAll().finally(killStarted)
  // The worker's next file shares these globals.
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  vi.useRealTimers()
})
