import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'

type Process = {
  drainSeconds: number
  log: Pick<Logger, 'info' | 'warn'>
  /** Resolves when requests in progress are finished and the database pools are closed. */
  close: () => Promise<unknown>
  exit: (code: 0 | 1) => void
}

export function createShutdown(
  { drainSeconds, log, close, exit }: Process,
  { closeMs, repeatedSignalMs }: Limits['shutdown'],
) {
  let stoppingSince: number | undefined

  return {
    isDraining: () => stoppingSince !== undefined,

    /**
     * Stops the process. During the drain, requests are served, but /readyz fails and responses have `Connection:
     * close`, so that callers use other instances. Then requests in progress are finished, and the database pools are
     * closed. Exits with 0, or with 1 if some requests took too long and were cut off. A second signal terminates the
     * process immediately.
     */
    async stop(signal: string) {
      if (stoppingSince !== undefined) {
        if (performance.now() - stoppingSince > repeatedSignalMs) exit(1)
        return
      }
      stoppingSince = performance.now()
      log.info({ signal, drainSeconds }, 'Stopping')
      await sleep(drainSeconds * 1000)
      // Without a reference, because the timer would keep a process running that has closed everything.
      const inTime = await Promise.race([close().then(() => true), sleep(closeMs, false, { ref: false })])
      if (inTime) log.info('Stopped')
      else log.warn({ limitSeconds: closeMs / 1000 }, 'Stopped with requests in progress')
      exit(inTime ? 0 : 1)
    },
  }
}
