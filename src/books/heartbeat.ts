import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { startRepeating } from '../repeat.ts'
import type { InstanceName, Instances } from './instances.ts'
import type { Vitals } from './vitals.ts'

/** Writes down every few seconds that this instance runs, and what only it knows, until `stop`. */
export function startHeartbeat({
  instances,
  instance,
  readVitals,
  log,
  now,
  limits,
}: {
  instances: Pick<Instances, 'beat' | 'stop'>
  instance: Omit<InstanceName, 'startedAt'>
  readVitals: () => Vitals
  log: Pick<Logger, 'warn'>
  now: () => Date
  limits: Limits['heartbeat']
}) {
  const name = { ...instance, startedAt: now() }
  let isKnown = false
  const { stop: stopBeating } = startRepeating(beat, limits.firstMs)

  async function beat(): Promise<number> {
    const moment = now()
    const forgetBefore = new Date(moment.getTime() - limits.rememberedMs)
    await attempt(async () => {
      await instances.beat(name, readVitals(), { now: moment, forgetBefore })
      isKnown = true
    })
    return limits.intervalMs
  }

  /** Nothing depends on it, so a database that is away is no more than a line in the log. */
  async function attempt(work: () => Promise<void>) {
    try {
      await work()
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'that this instance runs was not written down')
    }
  }

  return {
    async stop() {
      await stopBeating()
      if (isKnown) await attempt(() => instances.stop(instance.instanceId, now()))
    },
  }
}
