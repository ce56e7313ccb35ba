import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createSettlements } from '../../src/settlements/settlements.ts'
import { createTurns } from '../../src/settlements/turns.ts'
import { CREATE, intentFields, LIST, newMerchant, newPartner, post, startService } from '../support/service.ts'

const LISTS = LIMITS.lists.ofPartner

describe('the reads of one partner', () => {
  it('run two at a time in their order, apart from those of others, and go on after one that failed', async () => {
    const turns = createTurns(LIMITS.lists)
    const begun: string[] = []
    const ends: (() => void)[] = []
    const inTurn = (pid: string, read: () => Promise<string>) => {
      expect(turns.enter(pid, new AbortController().signal)).toBe(true)
      return turns.inTurn(pid, read)
    }
    const read = (name: string) => () => {
      begun.push(name)
      return new Promise<string>((resolve) => ends.push(() => resolve(name)))
    }
    const failing = inTurn('P1', () => Promise.reject(new Error('away')))
    const results = ['a', 'b', 'c', 'd'].map((name) => inTurn('P1', read(name)))
    const other = inTurn('P2', read('other'))
    await expect(failing).rejects.toThrow('away')
    await turnOfTheLoop()
    expect(begun).toEqual(['a', 'other', 'b'])
    while (ends.length > 0) {
      ends.shift()?.()
      await turnOfTheLoop()
    }
    expect(await Promise.all([...results, other])).toEqual(['a', 'b', 'c', 'd', 'other'])
    expect(begun).toEqual(['a', 'other', 'b', 'c', 'd'])
  })

  it(`are ${LISTS} at most until their answers are taken, so that answers that nobody takes do not fill the memory`, () => {
    const turns = createTurns(LIMITS.lists)
    const answers = Array.from({ length: LISTS }, () => new AbortController())
    expect(answers.filter((each) => turns.enter('P1', each.signal)).length).toBe(LISTS)
    expect(turns.enter('P1', new AbortController().signal)).toBe(false)
    expect(turns.enter('P2', new AbortController().signal)).toBe(true)
    answers[0]?.abort()
    expect(turns.enter('P1', new AbortController().signal)).toBe(true)
    expect(turns.enter('P1', new AbortController().signal)).toBe(false)
  })

  it('go on when their clients have left, so that leaving makes no room for more of them', async () => {
    const turns = createTurns(LIMITS.lists)
    const clients = Array.from({ length: LISTS }, () => new AbortController())
    let running = 0
    const ends: (() => void)[] = []
    const reads = clients.map(({ signal }) => {
      expect(turns.enter('P1', signal)).toBe(true)
      return turns.inTurn('P1', () => {
        running++
        return new Promise<void>((resolve) => ends.push(resolve)).then(() => void running--)
      })
    })
    for (const client of clients) client.abort()
    expect(turns.enter('P1', new AbortController().signal)).toBe(false)
    while (ends.length > 0) {
      expect(running).toBeLessThanOrEqual(LIMITS.lists.readsOfPartner)
      ends.shift()?.()
      await turnOfTheLoop()
    }
    await Promise.all(reads)
    expect(turns.enter('P1', new AbortController().signal)).toBe(true)
  })

  it('take none of the connections of long lists when their client has left before', async () => {
    const service = await startService()
    const list = createSettlements(service.listDb).list('M1', new Date(0), new Date(1), AbortSignal.abort())
    await expect(list.next()).rejects.toThrow('aborted')
    const { totalCount, idleCount } = service.listDb
    expect({ totalCount, idleCount }).toEqual({ totalCount: 1, idleCount: 1 })
  })

  it(`are refused with 429 when ${LISTS} are under way already; other partners and payments are served`, async () => {
    const service = await startService()
    const { mid, key } = await newMerchant(service.db)
    const [busy, other] = [await newPartner(service.db, mid), await newPartner(service.db, mid)]
    const list = (partner: typeof busy, year: number) =>
      post(service.app, LIST, { pid: partner.pid, mid, s_date: '02-01-2026', e_date: `02-01-${year}` }, partner.key)
    const asked = Array.from({ length: LISTS + 50 }, (_, i) => list(busy, 2026 + i))
    const beside = Promise.all([list(other, 2026), post(service.app, CREATE, intentFields(mid), key)])
    const refused = (await Promise.all(asked)).filter(({ status }) => status !== 200)
    expect(refused.length).toBe(50)
    expect(refused[0]).toMatchObject({
      status: 429,
      body: {
        status: false,
        statusCode: 429,
        msg: 'This partner asks for too many lists at once; ask for at most 100 at once, or try again after Retry-After seconds',
      },
    })
    expect((await beside).map(({ status }) => status)).toEqual([200, 200])
  })
})
