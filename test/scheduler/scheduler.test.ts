import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Job, type JobSource, type Queue, startScheduler } from '../../src/platform/scheduler.ts'
import { until } from '../support/wait.ts'

const LIMITS = { lookIntervalMs: 10, stopMs: 50 }
const CONCURRENCY = { ofQueue: 4, ofGroup: 8 }
/** Every source may have pending jobs. */
const findPending = async () => ({})

/** A scheduler over one source, whose queues always have more jobs, with its polls and warnings. */
function startOver(queues: Queue[], find: JobSource['findQueues'] = async () => queues) {
  const warnings: string[] = []
  const looks = { count: 0 }
  const counted: JobSource['findQueues'] = async (poll) => {
    looks.count++
    return find(poll)
  }
  const log = { warn: (_facts: object, message: string) => void warnings.push(message) } as never
  const { stop } = startScheduler([{ name: 'work', findQueues: counted, concurrency: CONCURRENCY }], {
    findPending,
    log,
    limits: LIMITS,
  })
  return { warnings, looks, stop }
}

/** A queue of endless jobs, with the current and the largest number in progress. */
function queueOf(job: Job, { key = 'queue', group = 'group' } = {}) {
  const seen = { underWay: 0, most: 0, begun: 0 }
  const counted: Job = async (signal) => {
    seen.begun++
    seen.most = Math.max(seen.most, ++seen.underWay)
    try {
      return await job(signal)
    } finally {
      seen.underWay--
    }
  }
  const queue: Queue = { key, group, claim: async (most) => Array.from({ length: most }, () => counted) }
  return { seen, queue }
}

const hangs: Job = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(false)))

it('the scheduler starts the next job when a job finishes, and never exceeds a queue’s limit of concurrent jobs', async () => {
  const { queue, seen } = queueOf(() => sleep(2, true))
  const { stop, looks } = startOver([queue])
  await until('many were done', () => seen.begun > 100)
  expect(seen.begun).toBeGreaterThan(CONCURRENCY.ofQueue * looks.count)
  await stop()
  expect(seen.most).toBe(CONCURRENCY.ofQueue)
})

it('the scheduler starts jobs of one group of queues although another group has reached the group’s limit of hanging jobs', async () => {
  const slow = ['a', 'b', 'c'].map((key) => queueOf(hangs, { key, group: 'slow' }))
  const quick = queueOf(() => sleep(1, true), { key: 'd', group: 'quick' })
  const { stop } = startOver([...slow, quick].map(({ queue }) => queue))
  await until('the quick one is served', () => quick.seen.begun > 10)
  expect(slow.map(({ seen }) => seen.underWay)).toEqual([4, 4, 0])
  await stop()
})

it('the scheduler starts no more jobs of a queue after a job of the queue has failed', async () => {
  const { queue, seen } = queueOf(async () => {
    throw new Error('the database is away')
  })
  let looked = false
  const { stop, looks, warnings } = startOver([], async () => {
    if (looked) return []
    looked = true
    return [queue]
  })
  await until('it has looked often', () => looks.count > 10)
  await stop()
  expect(seen.begun).toBe(CONCURRENCY.ofQueue)
  expect(new Set(warnings)).toEqual(new Set(['Job failed, or its result was not stored']))
})

it('the scheduler starts no job while claiming jobs fails, and continues to poll for pending jobs', async () => {
  const { queue, seen } = queueOf(hangs)
  let takes = 0
  const claim: Queue['claim'] = async (most) => {
    if (takes++ > 0) throw new Error('the database is away')
    return queue.claim(Math.min(most, 2))
  }
  const { stop, looks } = startOver([{ ...queue, claim }])
  await until('it has looked often', () => looks.count > 10)
  expect([seen.underWay, takes > 5]).toEqual([2, true])
  await stop()
})

it('the scheduler polls for pending jobs again after a failed search', async () => {
  const { stop, looks, warnings } = startOver([], async () => {
    throw new Error('the database is away')
  })
  await until('it has looked again', () => looks.count > 2)
  await stop()
  expect(warnings).toContain('Polling for jobs failed')
})

it('the scheduler runs the jobs of one source while the search for pending jobs of another source hangs', async () => {
  const { queue, seen } = queueOf(() => sleep(1, true))
  const log = { warn: () => undefined }
  let isOver: (queues: Queue[]) => void = () => undefined
  const endless = () => new Promise<Queue[]>((resolve) => (isOver = resolve))
  const sources = [endless, async () => [queue]].map((findQueues) => ({
    name: 'work',
    findQueues,
    concurrency: CONCURRENCY,
  }))
  const { stop } = startScheduler(sources, { findPending, log, limits: LIMITS })
  await until('the other one is done', () => seen.begun > 0)
  const stopping = stop()
  isOver([])
  await stopping
})

describe('a scheduler of two sources', () => {
  /** Starts a scheduler whose sources record by name whether each search found them pending. */
  function startBoth(find: () => Promise<{ [source: string]: boolean }>) {
    const seen: { [source: string]: (boolean | undefined)[] } = { refunds: [], webhooks: [] }
    const warnings: object[] = []
    const sources = Object.entries(seen).map(([name, searches]) => ({
      name,
      findQueues: async ({ isPending }: { isPending?: boolean } = {}) => {
        searches.push(isPending)
        return []
      },
      concurrency: CONCURRENCY,
    }))
    const log = { warn: (facts: object) => void warnings.push(facts) }
    return { seen, warnings, ...startScheduler(sources, { findPending: find, log, limits: LIMITS }) }
  }

  it('polls once for both, and only the source that may have pending jobs searches for them', async () => {
    let polls = 0
    const { seen, stop } = startBoth(async () => {
      polls++
      return { refunds: true, webhooks: false }
    })
    await until('it has looked often', () => polls > 3)
    await stop()
    expect(new Set(seen.refunds)).toEqual(new Set([true]))
    expect(new Set(seen.webhooks)).toEqual(new Set([false]))
    expect(seen.refunds).toHaveLength(polls)
  })

  it('searches both when the poll fails', async () => {
    const { seen, warnings, stop } = startBoth(async () => {
      throw new Error('the database is away')
    })
    await until('it has looked again', () => warnings.length > 1)
    await stop()
    expect([seen.refunds?.[0], seen.webhooks?.[0]]).toEqual([true, true])
    expect(warnings[0]).toEqual({ work: 'pending jobs', error: 'the database is away' })
  })
})

it('the scheduler polls on while a search hangs, and does not repeat the search', async () => {
  let polls = 0
  let isOver: (queues: Queue[]) => void = () => undefined
  const searches = { count: 0 }
  const findQueues = () => {
    searches.count++
    return new Promise<Queue[]>((resolve) => (isOver = resolve))
  }
  const { stop } = startScheduler([{ name: 'work', findQueues, concurrency: CONCURRENCY }], {
    findPending: async () => ({ work: ++polls > 0 }),
    log: { warn: () => undefined },
    limits: LIMITS,
  })
  await until('it has polled often', () => polls > 3)
  const stopping = stop()
  isOver([])
  await stopping
  expect(searches.count).toBe(1)
})

it('the stopped scheduler ends a search for pending jobs that consists of many statements', async () => {
  const { stop, looks } = startOver([], async ({ isStopped = () => false } = {}) => {
    while (!isStopped()) await sleep(1)
    return []
  })
  await until('it is searching', () => looks.count > 0)
  await stop()
  expect(looks.count).toBe(1)
})

it('the stopped scheduler starts no new job, and waits a limited time for jobs in progress', async () => {
  const long = queueOf(hangs, { key: 'long' })
  const short = queueOf(() => sleep(20, true), { key: 'short' })
  const { stop } = startOver([long.queue, short.queue])
  await until('both are in progress', () => long.seen.underWay + short.seen.underWay === 8)
  await stop()
  const begun = short.seen.begun
  await sleep(50)
  expect([long.seen.underWay, short.seen.underWay, short.seen.begun]).toEqual([0, 0, begun])
})

it('the scheduler does not claim again after the job of a claim that was not full, until the next poll', async () => {
  let jobs = 1
  const claims: number[] = []
  const claim: Queue['claim'] = async (most) => {
    claims.push(most)
    return Array.from({ length: jobs-- }, () => () => sleep(2, true))
  }
  let looked = false
  const { stop, looks } = startOver([], async () => {
    if (looked) return []
    looked = true
    return [{ key: 'queue', group: 'group', claim }]
  })
  await until('it has looked often', () => looks.count > 10)
  await stop()
  expect(claims).toEqual([CONCURRENCY.ofQueue])
})
