import { setTimeout as sleep } from 'node:timers/promises'

/** Only bounds a test that fails: the machine may be slow. */
const TIMEOUT_MS = 30_000
const POLL_MS = 20

/** Waits until `holds`; throws, naming `what`, when it takes too long. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { timeoutMs = TIMEOUT_MS, pollMs = POLL_MS }: { timeoutMs?: number; pollMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`It took more than ${timeoutMs} ms until ${what}`)
    await sleep(pollMs)
  }
}

/** Waits until `url` answers 200; throws when the process behind it has ended. */
export function untilAnswers(url: string, hasEnded: () => boolean): Promise<void> {
  return until(`${url} answered 200`, async () => {
    if (hasEnded()) throw new Error(`The process behind ${url} ended before it was ready`)
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    return response?.status === 200
  })
}
