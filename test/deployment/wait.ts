import { setTimeout as sleep } from 'node:timers/promises'

/** Only bounds a trial that fails: the machine may be slow. */
const PATIENCE_MS = 30_000
const POLL_MS = 20

/** Waits until `holds`; throws, naming `what`, when it takes too long. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`It took more than ${PATIENCE_MS} ms until ${what}`)
    await sleep(POLL_MS)
  }
}

/** Waits until `url` answers 200; throws when `hasEnded`, which tells of the process behind it. */
export function untilAnswers(url: string, hasEnded: () => boolean): Promise<void> {
  return until(`${url} answered 200`, async () => {
    if (hasEnded()) throw new Error(`The process behind ${url} ended before it was ready`)
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    return response?.status === 200
  })
}
