import { afterAll, afterEach } from 'vitest'
import { runChecks, stopAll } from './at-end.ts'
import { killStarted } from './processes.ts'

afterEach(runChecks)

// Registered before the hooks of the file, so it runs after them. A test that fails before its end leaves what it started: a
// service would look for its database for ever.
afterAll(async () => {
  await stopAll().finally(killStarted)
})
