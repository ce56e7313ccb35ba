import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { vi } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import type { Job } from '../../src/platform/scheduler.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { seeded } from '../support/bank-faults.ts'
import { type HttpResponse, responseOf } from '../support/inject.ts'
import { type Instance, startInstance } from './instance.ts'
import type { CrashPlan } from './plan.ts'

/*
 * The clock that jumps to the next event, the two instances of the service, and the balancer in front of them. Everything that
 * happens is written into the diary.
 */

export const BEGIN = new Date('2026-04-01T00:00:00+05:30').getTime()
/** Errors of a crash, and of an acquirer's spoilt response. */
const IS_EXPLAINED = /Connection terminated|the instance has crashed|"outcome":/
/** Name of the events that compare the service with the bank, while nothing else happens. */
export const QUIET = 'quiet'
/** Longest chain of jobs at one moment. */
const MOST_ROUNDS = 50

type Event = { at: number; name: string; run: () => Promise<unknown> }

export type World = Awaited<ReturnType<typeof createWorld>>

type Counts = Record<string, number>

export async function createWorld(seed: number) {
  const random = seeded(seed)
  let events: Event[] = []
  const steps = new Set<number>()
  const diary: string[] = []
  const log: string[] = []
  const counts: Counts = {}
  let instances: Instance[] = []
  let db: Database | undefined
  let options: Parameters<typeof startInstance>[0] | undefined
  let isNextFirst = false
  let lastPayment = new Date(0)
  let during = ''

  const world = {
    diary,
    log,
    counts,
    /** Errors that neither a crash nor an acquirer explains. */
    unexpected: [] as string[],
    now: () => Date.now() - BEGIN,
    today: () => toIstDay(new Date()),
    count: (what: string) => {
      counts[what] = (counts[what] ?? 0) + 1
    },
    write: (line: string) => {
      diary.push(`${new Date(Date.now() + 19_800_000).toISOString().slice(0, 19).replace('T', ' ')} ${line}`)
    },
    /** Plans an event, in milliseconds after the beginning. Events of one second happen concurrently, and QUIET ones afterwards. */
    plan(at: number, name: string, run: Event['run']) {
      events.push({ at: Math.max(Math.floor(at / 1000) * 1000, world.now()), name, run })
    },
    /** Plans runs of the jobs, in seconds from now. */
    work(...seconds: number[]) {
      for (const after of seconds) {
        const at = Math.ceil(world.now() / 1000 + after) * 1000
        if (steps.has(at)) continue
        steps.add(at)
        world.plan(at, 'jobs', async () => {
          steps.delete(at)
          await runJobs()
        })
      }
    },
    start,
    run,
    runJobs,
    request,
    crashing,
    stop: () => Promise.all(instances.map((instance) => instance.stop())),
  }
  return world

  async function start(url: string, own: Database, acquirers: Parameters<typeof startInstance>[0]['acquirers']) {
    db = own
    options = { url, acquirers, elapsedMs: () => world.now(), log: note }
    instances = await Promise.all([startInstance(options), startInstance(options)])
  }

  function note(line: string) {
    log.push(line)
    const { level, msg, ...facts } = JSON.parse(line)
    if (level >= 50) noteUnexpected(`${msg} ${JSON.stringify(facts)}`)
    if (level > 30) world.write(`log: ${msg} ${JSON.stringify(facts)}`.slice(0, 300))
  }

  /** Lets events happen until none is left. */
  async function run(): Promise<void> {
    while (events.length > 0) {
      const at = Math.min(...events.map((event) => event.at))
      vi.setSystemTime(BEGIN + at)
      const together = events.filter((event) => event.at === at)
      events = events.filter((event) => event.at > at)
      await Promise.all(together.filter(({ name }) => name !== QUIET).map(({ run }) => run()))
      for (const { run } of together.filter(({ name }) => name === QUIET)) await run()
      await replaceCrashed()
    }
  }

  async function replaceCrashed() {
    for (const [index, instance] of instances.entries()) {
      instance.crashAfter(undefined)
      if (!instance.isCrashed()) continue
      world.count(`crashes during ${during}`)
      world.write(`instance ${index} has crashed during ${during}; another one starts`)
      await instance.stop()
      instances[index] = await startInstance(options as NonNullable<typeof options>)
      world.work(1, 45, 60)
    }
  }

  /** Plans the crash of an instance while `happens` runs. */
  async function crashing<T>(crash: CrashPlan | undefined, name: CrashPlan['during'], happens: () => Promise<T>) {
    if (crash?.during !== name) return happens()
    during = name
    instances[crash.instance]?.crashAfter({ count: crash.edges, takesEffect: crash.takesEffect })
    isNextFirst = crash.instance === 0
    return happens()
  }

  /** The balancer chooses the instances in turns. */
  function choose(): Instance {
    isNextFirst = !isNextFirst
    return instances[isNextFirst ? 1 : 0] as Instance
  }

  /** Sends a request. Returns undefined without a response. */
  async function request(sent: {
    method: 'GET' | 'POST'
    path: string
    headers?: Record<string, string>
    body?: string
  }): Promise<HttpResponse | undefined> {
    const { app, crashed, isCrashed } = choose()
    if (isCrashed()) return undefined
    const { method, path: url, headers = {}, body } = sent
    const response = app.inject({ method, url, headers, ...(body !== undefined && { payload: body }) })
    const result = await Promise.race([response.catch(() => undefined), crashed])
    return result === undefined || result === 'crashed' ? undefined : responseOf(result)
  }

  /** Runs the due jobs of one instance, or of both concurrently. */
  async function runJobs(): Promise<void> {
    const first = random() < 0.5 ? 0 : 1
    const both = random() < 0.2
    await Promise.all(
      [0, 1].filter((index) => both || index === first).map((index) => runJobsOf(instances[index] as Instance)),
    )
  }

  async function runJobsOf({ sources, findPending, isCrashed }: Instance): Promise<void> {
    const never = new AbortController().signal
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      if (isCrashed()) return
      const pending = await findPending().catch(() => ({}) as Record<string, boolean>)
      const jobs: Job[] = []
      const isIdle = !(await mayExplain())
      for (const { name, findQueues, concurrency } of sources) {
        if (isIdle && name === 'UTRs of other merchants') continue
        const search = findQueues({ isPending: pending[name] ?? true, isStopped: isCrashed })
        for (const { claim } of await search.catch(noteFailure(name, [])))
          jobs.push(...(await claim(concurrency.ofQueue).catch(noteFailure(name, []))))
      }
      if (jobs.length === 0) return
      await Promise.all(jobs.map((job) => job(never).catch(noteFailure('job', false))))
    }
    throw new Error('the jobs do not end')
  }

  /**
   * Returns whether a new payment may explain an open exception. The comparison searches minute by minute, so it runs only then.
   * Customers of two merchants never pay with one UTR.
   */
  async function mayExplain(): Promise<boolean> {
    const { rows } = await (db as Database).query(
      `select (select max(received_at) from payments) as last,
              exists (select from payment_exceptions e where kind = 'unknown order'
                  and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)) as "isOpen"`,
    )
    const [{ last, isOpen }] = rows as [{ last: Date; isOpen: boolean }]
    const isNew = last > lastPayment
    if (isNew && isOpen) lastPayment = last
    return isNew && isOpen
  }

  /** Notes a failure that neither a crash nor an acquirer explains. */
  function noteUnexpected(text: string) {
    if (!IS_EXPLAINED.test(text)) world.unexpected.push(text.slice(0, 500))
  }

  /** A failed job is logged and repeated later, as by the scheduler. */
  function noteFailure<T>(of: string, otherwise: T) {
    return (error: Error): T => {
      noteUnexpected(`${of}: ${error.message}`)
      world.write(`${of}: ${error.message}`)
      return otherwise
    }
  }
}

/** Starts the address to which the acquirers send notifications. Every request is passed to `pass`. */
export async function startBalancer(
  pass: (path: string, headers: Record<string, string>, body: string) => Promise<HttpResponse | undefined>,
): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    text(request)
      .then((body) => pass(request.url ?? '', request.headers as Record<string, string>, body))
      .then((result) => (result ? response.writeHead(result.status).end(result.text) : response.destroy()))
      .catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
