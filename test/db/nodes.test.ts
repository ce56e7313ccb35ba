import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { nodesOf } from '../../src/db/nodes.ts'
import { isOutage, POOL_CROWDED } from '../../src/db/outage.ts'
import type { Database } from '../../src/db/pool.ts'
import { LIMITS } from '../../src/limits.ts'
import { createEnquiries } from '../../src/payments/enquiries.ts'
import { createIntents } from '../../src/payments/intents.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'

// `npm run test:deployment -- citus` kills and silences real nodes under load.

afterEach(() => void vi.restoreAllMocks())

const MERCHANTS = 40
const WORKERS = 2
const SILENCE = new Error('Query read timeout')
const refusal = (code: string, message: string) =>
  Object.assign(new pg.DatabaseError(message, message.length, 'error'), { severity: 'ERROR', code })
const nobodyIsHeard = () => expect.unreachable()

/** What answers in the place of a spread database; `answer` gets what is not asked of the metadata of Citus. */
function spreadDatabase(answer: (text: string, values: unknown[]) => Promise<object[]>, metadata: object[] = []) {
  let looks = 0
  const query = async (sent: string | { text: string; values: unknown[] }, values: unknown[] = []) => {
    const text = typeof sent === 'string' ? sent : sent.text
    if (text.includes('pg_extension')) return { rows: [{ found: true }] }
    if (!text.includes('pg_dist')) return { rows: await answer(text, values) }
    looks++
    await sleep(1)
    return { rows: metadata }
  }
  return { db: { options: { max: 10 }, query } as unknown as Database, looks: () => looks }
}

describe('where a database is spread', () => {
  const ONE = [{ mid: 'M1', node: '1' }]
  const never = () => new Promise<never>(() => undefined)

  it('the node of a merchant is looked up once, however many requests ask for it', async () => {
    const { db, looks } = spreadDatabase(never, ONE)
    const found = await Promise.all(Array.from({ length: 1_000 }, () => nodesOf(db).nodeOf('M1')))
    expect(new Set(found)).toEqual(new Set(['1']))
    expect(looks()).toBe(1)
  })

  it('pages that are asked for without end have no more than their places, and the rest is refused', async () => {
    let underWay = 0
    let most = 0
    const { db } = spreadDatabase(async (text) => {
      most = Math.max(most, ++underWay)
      await sleep(1)
      underWay--
      return text.includes('from merchants') ? [{ mid: 'M1' }] : []
    }, ONE)
    const intents = createIntents(db, () => undefined)
    const asked = await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, i) => intents.findCheckout(String(i).padStart(35, '0'))),
    )
    // Once for the merchants that it can be of, and once at their nodes.
    expect(most).toBeLessThanOrEqual(2 * LIMITS.pages.lookUpsAtOnce)
    const refused = asked.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThanOrEqual(1_000 - 2 * LIMITS.pages.lookUps)
    expect(refused[0]).toMatchObject({ reason: { statusCode: 503 } })
  })

  it('pages of orders from before the spread, which ask all nodes and so the silent one, leave places for others', async () => {
    const { db } = spreadDatabase(async (text, [orderId]) => {
      if (text.includes('from merchants')) return [{ mid: 'M1' }]
      return (orderId as string).length === 32 ? never() : []
    }, ONE)
    const intents = createIntents(db, () => undefined)
    for (let i = 0; i < 20; i++) void intents.findCheckout(String(i).padStart(32, '0')).catch(() => undefined)
    expect(await intents.findCheckout('0'.repeat(35))).toBeUndefined()
  })

  describe('a node that is silent', () => {
    const BOTH = [
      { mid: 'M1', node: '1' },
      { mid: 'M2', node: '2' },
    ]

    /** The work under way at a node, oldest first, each of which ends by a call. */
    function startAsking() {
      const nodes = nodesOf(spreadDatabase(never, BOTH).db)
      const underWay: { answer: () => void; end: (error: Error) => void }[] = []
      const work = () => new Promise<string>((resolve, end) => underWay.push({ answer: () => resolve('rows'), end }))
      const ask = (mid: string) => nodes.ask(mid, work).catch((error: Error) => error)
      const next = async () => {
        await expect.poll(() => underWay.length).toBeGreaterThan(0)
        return underWay.shift() as (typeof underWay)[number]
      }
      return { ask, next, underWay }
    }

    it('is tried every 300 ms, and the rest for it is refused at once as by an outage', async () => {
      const clock = vi.spyOn(performance, 'now')
      let moment = performance.now()
      const at = (ms: number) => clock.mockReturnValue(moment + ms)
      at(0)
      const { ask, next, underWay } = startAsking()
      const first = ask('M1')
      ;(await next()).end(SILENCE)
      expect(await first).toBe(SILENCE)
      for (let tries = 0; tries < 3; tries++) {
        void ask('M1')
        // It hangs on.
        await next()
        const others = await Promise.all([ask('M1'), ask('M1')])
        expect(others.every(isOutage)).toBe(true)
        at(LIMITS.nodes.tryEveryMs - 1)
        expect(isOutage(await ask('M1'))).toBe(true)
        moment += LIMITS.nodes.tryEveryMs
        at(0)
      }
      expect(underWay.length).toBe(0)
      const neighbour = ask('M2')
      ;(await next()).answer()
      expect(await neighbour).toBe('rows')
    })

    it('is asked by all again once anything has answered that was asked before, with a try still under way', async () => {
      const { ask, next, underWay } = startAsking()
      const early = [ask('M1'), ask('M1')]
      ;(await next()).end(SILENCE)
      const slow = await next()
      await early[0]
      void ask('M1')
      await next()
      slow.answer()
      await early[1]
      for (let i = 0; i < 3; i++) void ask('M1')
      await expect.poll(() => underWay.length).toBe(3)
    })

    it('is asked by all again once it has answered', async () => {
      const { ask, next, underWay } = startAsking()
      const first = ask('M1')
      ;(await next()).end(SILENCE)
      await first
      const probe = ask('M1')
      ;(await next()).answer()
      await probe
      for (let i = 0; i < 3; i++) void ask('M1')
      await expect.poll(() => underWay.length).toBe(3)
    })

    it('is not one that has answered something else since the statement began', async () => {
      const { ask, next, underWay } = startAsking()
      const slow = ask('M1')
      const held = await next()
      const other = ask('M1')
      ;(await next()).answer()
      await other
      held.end(SILENCE)
      await slow
      for (let i = 0; i < 3; i++) void ask('M1')
      await expect.poll(() => underWay.length).toBe(3)
    })

    it.each([
      {
        heard: 'a refusal by PostgreSQL',
        error: refusal('23505', 'duplicate key value violates unique constraint'),
        asked: 3,
      },
      { heard: 'a fault of ours after its answer', error: new Error('already paid'), asked: 3 },
      { heard: 'a crowded pool, which did not ask it,', error: new Error(POOL_CROWDED), asked: 0 },
    ])('is asked by $asked of three statements after $heard', async ({ error, asked }) => {
      const { ask, next, underWay } = startAsking()
      const first = ask('M1')
      ;(await next()).end(SILENCE)
      await first
      const probe = ask('M1')
      ;(await next()).end(error)
      await probe
      const refused = [ask('M1'), ask('M1'), ask('M1')]
      await sleep(20)
      expect(underWay.length).toBe(asked)
      for (const { answer } of underWay) answer()
      expect((await Promise.all(refused)).filter(isOutage).length).toBe(3 - asked)
    })
  })

  it('with a node away no more questions are taken than at any time, the longest due first', async () => {
    const due = (mid: string) =>
      [3, 1, 2].map((minute) => ({ mid, orderId: `${mid}-${minute}`, dueAt: new Date(minute * 60_000), paid: false }))
    const { db } = spreadDatabase(
      async (text, values) => {
        if (text.trimStart().startsWith('update')) return [{ orderId: values[1] }]
        if (values.length === 3) throw SILENCE
        return due((values[3] as string[])[0] as string)
      },
      [{ mids: ['M1'] }, { mids: ['M2'] }],
    )
    const taken = await createEnquiries(db).takeDue(['setu'], 3, new Date())
    expect(taken.map(({ orderId }) => orderId)).toEqual(['M1-1', 'M2-1', 'M1-2'])
  })

  it('what is looked for rejects with the fault of the first look where nothing is spread yet', async () => {
    const { db } = spreadDatabase(never)
    await expect(nodesOf(db).askAll(() => Promise.reject(SILENCE), nobodyIsHeard)).rejects.toBe(SILENCE)
    expect(await nodesOf(db).nodeOf('M1')).toBeUndefined()
  })
})

it('a cancellation holds one connection at a time, and as many are under way as there are places', async () => {
  let underWay = 0
  let most = 0
  const query = async (text: string) => {
    if (text.includes('pg_extension')) return { rows: [{ found: false }] }
    most = Math.max(most, ++underWay)
    await sleep(1)
    underWay--
    return { rows: [] }
  }
  const client = { query, release: () => undefined, on: () => undefined, off: () => undefined }
  const db = { query, connect: async () => client } as unknown as Database
  const intents = createIntents(db, () => undefined)
  await Promise.all(Array.from({ length: 50 }, (_, i) => intents.cancel('M1', String(i), new Date())))
  expect(most).toBe(LIMITS.cancellations.atOnce)
})

let service: TestService
const mids: string[] = []

describe.skipIf(!ON_CITUS)('the nodes of a spread database', () => {
  beforeAll(async () => {
    service = await startService()
    for (let i = 0; i < MERCHANTS; i++) mids.push((await newMerchant(service.db)).mid)
  })

  it('are those to which Citus sends the statements of a merchant', async () => {
    for (const mid of mids) {
      const { rows } = await service.db.query<{ node: string }>(
        `select n.groupid::text as node
           from citus_shards s
           join pg_dist_node n on n.nodename = s.nodename and n.nodeport = s.nodeport
          where s.shardid = get_shard_id_for_distribution_column('payment_intents', $1::text)`,
        [mid],
      )
      expect(await nodesOf(service.db).nodeOf(mid)).toBe(rows[0]?.node)
    }
  })

  it('are asked apart when one of them is away: those that answer are heard, for the merchants that lie there', async () => {
    const nodes = nodesOf(service.db)
    const [away] = mids as [string]
    const groups: string[][] = []
    const faults: unknown[] = []
    const look = async (some: string[] | undefined) => {
      if (some) groups.push(some)
      if (some === undefined || some.includes(away)) throw SILENCE
      return some
    }
    const heard = await nodes.askAll(look, (error) => faults.push(error))
    expect(groups.length).toBe(WORKERS)
    expect(groups.flat()).toEqual(expect.arrayContaining(mids))
    expect(new Set(groups.flat()).size).toBe(groups.flat().length)
    expect(faults).toEqual([SILENCE])
    const nodeOfAway = await nodes.nodeOf(away)
    for (const mid of mids) expect(heard.includes(mid)).toBe((await nodes.nodeOf(mid)) !== nodeOfAway)
  })

  it('reject together when none of them answers, and at once for a fault that is no outage', async () => {
    const nodes = nodesOf(service.db)
    await expect(nodes.askAll(() => Promise.reject(SILENCE), nobodyIsHeard)).rejects.toBe(SILENCE)
    const fault = new Error('a fault of ours')
    let looks = 0
    const look = () => {
      looks++
      return Promise.reject(fault)
    }
    await expect(nodes.askAll(look, nobodyIsHeard)).rejects.toBe(fault)
    expect(looks).toBe(1)
  })
})
