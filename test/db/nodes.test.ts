import { beforeAll, describe, expect, it } from 'vitest'
import { nodesOf } from '../../src/db/nodes.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'

// Runs where there are nodes: TEST_CITUS=1. `npm run test:deployment -- citus` kills and silences them.

const MERCHANTS = 40
const WORKERS = 2
const SILENCE = new Error('Query read timeout')
const nobodyIsHeard = () => expect.unreachable()

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
