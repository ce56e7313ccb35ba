import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'

type Process = {
  drainSeconds: number
  log: Logger
  /** Resolves when requests under way are finished and the databases are closed. */
  close: () => Promise<void>
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
     * Stops the service. During the drain requests are served, but /readyz fails and answers have `Connection: close`,
     * so that callers use other instances. Then requests under way are finished, and the databases are closed. Exits
     * with 0, or with 1 when requests took too long and were cut off. A second signal ends the process at once.
     */
    async stop(signal: string) {
      if (stoppingSince !== undefined) {
        if (performance.now() - stoppingSince > repeatedSignalMs) exit(1)
        return
      }
      stoppingSince = performance.now()
      log.info({ signal, drainSeconds }, 'stopping')
      await sleep(drainSeconds * 1000)
      const inTime = await Promise.race([close().then(() => true), sleep(closeMs, false)])
      if (inTime) log.info('stopped')
      else log.warn({ limitSeconds: closeMs / 1000 }, 'stopped what was still under way')
      exit(inTime ? 0 : 1)
    },
  }
}
