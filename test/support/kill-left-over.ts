import { afterAll } from 'vitest'
import { killStarted } from './processes.ts'

// A test that fails before its end leaves what it started: a service would look for its database for ever. Registered before the
// hooks of the file, so it runs after them.
afterAll(killStarted)
