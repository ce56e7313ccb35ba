import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'

/** A source of pending jobs, such as the refunds of an acquirer. */
export type JobSource = {
  /** Name of the source in the log and in the result of `findPending`. */
  name: string
  /** Returns the queues with pending jobs, without locking rows. */
  findQueues: (poll?: Partial<Poll>) => Promise<Queue[]>
  /** Largest number of concurrent jobs in this instance. */
  concurrency: { ofQueue: number; ofGroup: number }
}

type Poll = {
  /** False if the source has no pending jobs. */
  isPending: boolean
  /**
   * Once it returns true, a search of several statements stops before its next statement, because a stopping instance
   * waits for the search.
   */
  isStopped: () => boolean
}

/** The pending jobs of a merchant or webhook. The queues of a group share the limit `ofGroup`. */
export type Queue = {
  key: string
  group: string
  /**
   * Claims up to `most` pending jobs of the queue by scheduling the jobs for a later time. The jobs of a killed
   * instance therefore become pending again, and another instance can claim them.
   */
  claim: (most: number) => Promise<Job[]>
}

/**
 * Runs one job. Aborting `signal` cancels the job. Resolves to true if the next job of its queue may be claimed
 * immediately.
 */
export type Job = (signal: AbortSignal) => Promise<boolean>

/** A job, and whether its queue may have had more jobs than its claim has returned. */
type Claimed = { job: Job; mayHaveMore: boolean }

type Scheduling = {
  /**
   * Returns by name whether sources may have pending jobs, in one statement, because most polls of an idle instance find
   * none. A source that is not in the result is searched at each poll.
   */
  findPending: () => Promise<{ [source: string]: boolean }>
  log: Pick<Logger, 'warn'>
  limits: Pick<Limits['webhooks'], 'lookIntervalMs' | 'stopMs'>
}

/**
 * Runs pending jobs until `stop` is called. Polls every `lookIntervalMs` for sources with pending jobs, and searches
 * these sources for queues; when a job of a full claim is finished, the next job of its queue is claimed. A later job
 * waits for the next poll. A poll neither waits for its searches nor repeats a search in progress, so that no source
 * waits for another. If `findPending` fails, all sources are searched.
 */
export function startScheduler(sources: readonly JobSource[], { findPending, log, limits }: Scheduling) {
  const giveUp = new AbortController()
  // 0 means no limit. The limit is removed, because every call in progress adds a listener to this signal, and Node.js
  // warns of a leak above a limit.
  setMaxListeners(0, giveUp.signal)
  /** Number of jobs in progress or about to start, by the key of their queue and by their group. */
  const counts = new Map<string, number>()
  const underWay = new Set<Promise<void>>()
  const searches = new Map<JobSource, Promise<void>>()
  let isStopped = false

  const warn = (work: string, { message }: Error) => log.warn({ work, error: message }, 'Polling for jobs failed')
  const polls = startRepeating(
    async () => searchAll(await findPending()),
    limits.lookIntervalMs,
    (error) => {
      warn('pending jobs', error)
      searchAll({})
    },
  )

  function searchAll(pending: { [source: string]: boolean }) {
    for (const source of sources) {
      if (isStopped || searches.has(source)) continue
      const search = look(source, pending[source.name] ?? true).catch((error) => warn(source.name, error))
      searches.set(
        source,
        search.finally(() => searches.delete(source)),
      )
    }
  }

  async function look(source: JobSource, isPending: boolean) {
    for (const queue of await source.findQueues({ isPending, isStopped: () => isStopped })) serve(source, queue)
  }

  /** Claims as many pending jobs of the queue as the limits of queue and group still allow. */
  function serve(source: JobSource, queue: Queue) {
    const { ofQueue, ofGroup } = source.concurrency
    const free = Math.min(ofQueue - countOf(queue.key), ofGroup - countOf(queue.group))
    if (isStopped || free < 1) return
    count(queue, free)
    track(begin(source, queue, free))
  }

  async function begin(source: JobSource, queue: Queue, free: number): Promise<void> {
    const claimed = await orElse(source, queue, () => queue.claim(free), [])
    count(queue, claimed.length - free)
    const mayHaveMore = claimed.length === free
    for (const job of claimed) track(finish(source, queue, { job, mayHaveMore }))
  }

  async function finish(source: JobSource, queue: Queue, { job, mayHaveMore }: Claimed): Promise<void> {
    const goesOn = await orElse(source, queue, () => job(giveUp.signal), false)
    count(queue, -1)
    // If the group was full, this queue leaves the free slot to the next poll, which considers all waiting queues.
    if (goesOn && mayHaveMore && countOf(queue.group) < source.concurrency.ofGroup - 1) serve(source, queue)
  }

  const countOf = (name: string) => counts.get(name) ?? 0

  function count({ key, group }: Queue, by: number) {
    for (const name of [key, group]) {
      const left = countOf(name) + by
      if (left > 0) counts.set(name, left)
      else counts.delete(name)
    }
  }

  function track(job: Promise<void>) {
    underWay.add(job)
    void job.finally(() => underWay.delete(job))
  }

  /** Returns the result of `work`. An error of `work` is logged, and `otherwise` is returned. */
  async function orElse<T>({ name }: JobSource, { key }: Queue, work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const { message } = error as Error
      log.warn({ work: name, of: key, error: message }, 'Job failed, or its result was not stored')
      return otherwise
    }
  }

  async function untilNothingIsUnderWay() {
    while (underWay.size > 0) await Promise.all(underWay)
  }

  return {
    /**
     * Waits up to `stopMs` for jobs in progress, then cancels the remaining jobs. Another instance repeats the
     * cancelled jobs.
     */
    async stop() {
      isStopped = true
      await polls.stop()
      await Promise.all(searches.values())
      await Promise.race([untilNothingIsUnderWay(), sleep(limits.stopMs, undefined, { ref: false })])
      giveUp.abort()
      await untilNothingIsUnderWay()
    },
  }
}

/**
 * Calls `look` until `stop`, each time `pauseMs` after the previous call has finished. An error is passed to `onError`
 * and does not stop the repetition. `stop` waits for a call in progress.
 */
export function startRepeating(look: () => Promise<void>, pauseMs: number, onError: (error: Error) => void) {
  let timer: NodeJS.Timeout | undefined
  let looking = Promise.resolve()
  let stopped = false

  function lookLater() {
    if (stopped) return
    timer = setTimeout(() => {
      looking = look().catch(onError).then(lookLater)
    }, pauseMs)
  }

  lookLater()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await looking
    },
  }
}
