import type { Instance } from './instances.ts'

/** What the instances tell together. */
export type Running = {
  /** Those that run; and those that should, but were not heard of for a minute. */
  running: Instance[]
  silent: Instance[]
  /** Notifications that were refused today, also by instances that have ended. */
  refused: number
  lastNotificationAt: Date | undefined
  /** Acquirers that did not answer the last call of an instance that runs. */
  acquirersAway: string[]
}

/** An instance that was not seen for `silentMs` has ended without saying so. */
export function summarize(instances: readonly Instance[], now: Date, silentMs: number): Running {
  const isSeen = ({ seenAt }: Instance) => now.getTime() - seenAt.getTime() < silentMs
  const notStopped = instances.filter(({ stoppedAt }) => stoppedAt === null)
  const running = notStopped.filter(isSeen)
  const told = instances.flatMap(({ lastNotificationAt }) => lastNotificationAt ?? [])
  return {
    running,
    silent: notStopped.filter((instance) => !isSeen(instance)),
    refused: instances.reduce((sum, { refused }) => sum + refused, 0),
    lastNotificationAt: told.sort((a, b) => b.getTime() - a.getTime())[0],
    acquirersAway: [...new Set(running.flatMap(({ acquirersAway }) => acquirersAway))].sort(),
  }
}
