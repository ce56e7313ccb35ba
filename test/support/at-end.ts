/**
 * Checks and clean-up shared by all test files. A worker loads modules once for all of its files, while hooks belong
 * to the file that registers them. Only `setup.ts`, which runs for each file, registers hooks, and they call the
 * functions below.
 */
const checks: (() => void)[] = []
const stops: (() => unknown)[] = []

/**
 * Runs `check` after each test of this file and of all later files of the worker. For modules that are loaded once.
 */
export const checkAfterEach = (check: () => void) => void checks.push(check)

/** Stops what this test file started when the file ends, in reverse order. */
export const stopAtEnd = (stop: () => unknown) => void stops.push(stop)

export function runChecks(): void {
  for (const check of checks) check()
}

export async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
