/**
 * What test files have in common, and what they have started. A worker loads modules once for all of its files, while hooks
 * belong to the file that registers them: `setup.ts`, which runs for each file, has the only hooks, and asks here.
 */
const checks: (() => void)[] = []
const stops: (() => unknown)[] = []

/** Runs `check` after each test, of this file and of all that follow it in the worker. For modules that are loaded once. */
export const checkAfterEach = (check: () => void) => void checks.push(check)

/** Stops what this test file has started, when it ends; the last one first. */
export const stopAtEnd = (stop: () => unknown) => void stops.push(stop)

export function runChecks(): void {
  for (const check of checks) check()
}

export async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
