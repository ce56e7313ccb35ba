import { describe, expect, it } from 'vitest'
import { createSharedBatches } from '../../src/platform/db/shared-batches.ts'

type Item = { key: string; name: string }

const stay = () => undefined

/** Batches of at most 4 items, the first of which waits for `release`. PostgreSQL rejects the item `bad`. */
function newBatches(fail: (items: Item[]) => unknown = () => undefined) {
  const batches: string[][] = []
  let release: () => void = stay
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const run = async (items: Item[]) => {
    batches.push(items.map(({ name }) => name))
    if (batches.length === 1) await released
    const error = fail(items)
    if (error) throw error
    return items.map(({ name }) => `result of ${name}`)
  }
  const share = createSharedBatches(run, ({ key }) => key, 4)
  const call = (key: string, name: string, check = stay) => share({ key, name }, check)
  /** Occupies the first batch. */
  const first = call('other', 'first')
  return { batches, call, first, release: () => release() }
}

const begun = () => new Promise((resolve) => setImmediate(resolve))

describe('calls during a running batch', () => {
  it('calls during a running batch share the next batch, and each call gets the result of its own item', async () => {
    const { batches, call, first, release } = newBatches()
    await begun()
    const calls = ['a', 'b', 'c'].map((name) => call('key', name))
    release()
    expect(await Promise.all([first, ...calls])).toEqual(['first', 'a', 'b', 'c'].map((name) => `result of ${name}`))
    expect(batches).toEqual([['first'], ['a', 'b', 'c']])
  })

  it('calls of one key leave room in the next batch for calls of another key, and stay in order', async () => {
    const { batches, call, release } = newBatches()
    await begun()
    const flood = Array.from({ length: 7 }, (_, i) => call('flood', `f${i}`))
    const others = [call('b', 'b0'), call('c', 'c0'), call('b', 'b1')]
    release()
    await Promise.all([...flood, ...others])
    expect(batches.slice(1)).toEqual([
      ['f0', 'b0', 'c0', 'f1'],
      ['b1', 'f2', 'f3', 'f4'],
      ['f5', 'f6'],
    ])
  })

  it('a call leaves the batch if the caller no longer waits', async () => {
    const { batches, call, release } = newBatches()
    await begun()
    const left = new Error('the caller has left')
    let hasLeft = false
    const leaving = call('key', 'leaving', () => {
      if (hasLeft) throw left
    })
    const staying = call('key', 'staying')
    hasLeft = true
    release()
    await expect(leaving).rejects.toBe(left)
    expect(await staying).toBe('result of staying')
    expect(batches).toEqual([['first'], ['staying']])
  })
})

describe('failed batches', () => {
  it('a failed batch fails each of its own calls but no later call', async () => {
    const lost = new Error('Connection terminated unexpectedly')
    const { call, first, release } = newBatches((items) => items.some(({ name }) => name === 'lost') && lost)
    await begun()
    const together = [call('a', 'lost'), call('b', 'b')]
    release()
    await first
    const [a, b] = await Promise.allSettled(together)
    expect([a, b]).toEqual([
      { status: 'rejected', reason: lost },
      { status: 'rejected', reason: lost },
    ])
    expect(await call('b', 'again')).toBe('result of again')
  })

  it('a batch with an item that PostgreSQL rejects fails only the call of that item', async () => {
    const rejected = Object.assign(new Error('invalid byte sequence'), { code: '22021' })
    const { call, first, release } = newBatches((items) => items.some(({ name }) => name === 'bad') && rejected)
    await begun()
    const together = [call('a', 'good'), call('b', 'bad'), call('c', 'fine')]
    release()
    await first
    const results = await Promise.allSettled(together)
    expect(results).toEqual([
      { status: 'fulfilled', value: 'result of good' },
      { status: 'rejected', reason: rejected },
      { status: 'fulfilled', value: 'result of fine' },
    ])
  })
})
