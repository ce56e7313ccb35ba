import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from './limits.ts'

type Process = {
  drainSeconds: number
  log: Logger
  /** Resolves when what is under way is finished and the databases are closed. */
  close: () => Promise<void>
  exit: (code: 0 | 1) => void
}

/** How the process ends. */
export function createShutdown(
  { drainSeconds, log, close, exit }: Process,
  { closeMs, repeatedSignalMs }: Limits['shutdown'],
) {
  let stoppingSince: number | undefined

  return {
    isDraining: () => stoppingSince !== undefined,

    /**
     * Tells the balancer by readiness, and every client by `Connection: close`, to go elsewhere, and serves on meanwhile;
     * then takes no more, finishes what is under way and closes the database. What takes too long is cut off: it exits
     * with 1 then, with 0 otherwise. A second signal ends the process at once.
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
