import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { startRepeating } from '../repeat.ts'

/** One kind of work that becomes due. */
export type Kind = {
  /** For the log. */
  name: string
  /** Returns the owners that have work due. It takes no locks. */
  find: () => Promise<Owner[]>
  /** Pieces of work that are under way at once, in this instance. */
  atOnce: { ofOwner: number; ofGroup: number }
}

/** Somebody for whom work is due, such as a merchant's webhook. Owners of one group share the limit `ofGroup`. */
export type Owner = {
  key: string
  group: string
  /**
   * Takes up to `most` pieces of the owner's due work by making them due at a later time. If this instance is killed,
   * they therefore become due again after a while, and any instance can take them.
   */
  take: (most: number) => Promise<Work[]>
}

/**
 * Does one piece of work; aborting `signal` cancels it. Resolves to true when the owner's next piece may be taken at
 * once.
 */
export type Work = (signal: AbortSignal) => Promise<boolean>

/**
 * Does due work until `stop` is called. Every `lookIntervalMs` it looks for owners with due work; when a piece of work
 * ends, the next one of its owner is taken. Each kind has its own loop, so that no kind waits for another.
 */
export function startClock(
  kinds: readonly Kind[],
  {
    log,
    limits: { lookIntervalMs, stopMs },
  }: { log: Pick<Logger, 'warn'>; limits: Pick<Limits['webhooks'], 'lookIntervalMs' | 'stopMs'> },
) {
  const giveUp = new AbortController()
  // Every call under way adds a listener to this signal; Node.js warns of more than a few unless the limit is removed
  // (0).
  setMaxListeners(0, giveUp.signal)
  /** Pieces under way, or about to begin, by the key of their owner and by their group. */
  const counts = new Map<string, number>()
  const underWay = new Set<Promise<void>>()
  let isStopped = false

  const loops = kinds.map((kind) => {
    const look = async () => {
      for (const owner of await kind.find()) serve(kind, owner)
    }
    return startRepeating(look, lookIntervalMs, (error) => {
      log.warn({ work: kind.name, error: error.message }, 'what is due was not looked up')
    })
  })

  /** Takes as much of the owner's due work as the limits of owner and group still allow. */
  function serve(kind: Kind, owner: Owner) {
    const { ofOwner, ofGroup } = kind.atOnce
    const free = Math.min(ofOwner - countOf(owner.key), ofGroup - countOf(owner.group))
    if (isStopped || free < 1) return
    count(owner, free)
    track(begin(kind, owner, free))
  }

  async function begin(kind: Kind, owner: Owner, free: number): Promise<void> {
    let taken: Work[] = []
    try {
      taken = await owner.take(free)
    } catch (error) {
      warn(kind, owner, error as Error)
    }
    count(owner, taken.length - free)
    for (const work of taken) track(finish(kind, owner, work))
  }

  async function finish(kind: Kind, owner: Owner, work: Work): Promise<void> {
    let goesOn = false
    try {
      goesOn = await work(giveUp.signal)
    } catch (error) {
      warn(kind, owner, error as Error)
    }
    count(owner, -1)
    // A group that was full may have other owners waiting: its free slot is left to the next look, which finds all of
    // them.
    if (goesOn && countOf(owner.group) < kind.atOnce.ofGroup - 1) serve(kind, owner)
  }

  const countOf = (name: string) => counts.get(name) ?? 0

  function count({ key, group }: Owner, by: number) {
    for (const name of [key, group]) {
      const left = countOf(name) + by
      if (left > 0) counts.set(name, left)
      else counts.delete(name)
    }
  }

  function track(work: Promise<void>) {
    underWay.add(work)
    void work.finally(() => underWay.delete(work))
  }

  function warn({ name }: Kind, { key }: Owner, error: Error) {
    log.warn({ work: name, of: key, error: error.message }, 'what is due was not done, or not stored as done')
  }

  async function untilNothingIsUnderWay() {
    while (underWay.size > 0) await Promise.all(underWay)
  }

  return {
    /**
     * Begins no more work, waits up to `stopMs` for the work under way, then cancels it: another instance does it
     * again.
     */
    async stop() {
      isStopped = true
      await Promise.all(loops.map((loop) => loop.stop()))
      await Promise.race([untilNothingIsUnderWay(), sleep(stopMs, undefined, { ref: false })])
      giveUp.abort()
      await untilNothingIsUnderWay()
    },
  }
}
