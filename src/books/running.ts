import type { Instance } from './instances.ts'

/** What the instances tell together. */
export type Running = {
  running: Instance[]
  /** Those that should run, but were not heard of for a minute: of each host the last one, and how many there were. */
  silent: (Instance & { times: number })[]
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
    silent: lastOfHosts(
      notStopped.filter((instance) => !isSeen(instance)),
      instances,
    ),
    refused: instances.reduce((sum, { refused }) => sum + refused, 0),
    lastNotificationAt: told.sort((a, b) => b.getTime() - a.getTime())[0],
    acquirersAway: [...new Set(running.flatMap(({ acquirersAway }) => acquirersAway))].sort(),
  }
}

/** Without the hosts on which another instance was started afterwards, as a killed one usually is. */
function lastOfHosts(silent: readonly Instance[], all: readonly Instance[]): Running['silent'] {
  const hosts = new Map<string, Running['silent'][number]>()
  for (const instance of silent) {
    const known = hosts.get(instance.host)
    const last = known && known.seenAt >= instance.seenAt ? known : instance
    hosts.set(instance.host, { ...last, times: (known?.times ?? 0) + 1 })
  }
  const newest = new Map<string, number>()
  for (const { host, startedAt } of all) newest.set(host, Math.max(newest.get(host) ?? 0, startedAt.getTime()))
  return [...hosts.values()].filter(({ host, seenAt }) => (newest.get(host) ?? 0) < seenAt.getTime())
}
