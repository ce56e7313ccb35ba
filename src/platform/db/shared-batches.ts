import { isRejectedRow } from './outage.ts'

type Call<Item, Result> = {
  item: Item
  check: () => void
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Returns a function that combines the calls of concurrent callers into shared statements: calls that arrive while a
 * batch is running share the next batch, which has at most `size` items. `run` returns one result per item, in the same
 * order. A batch takes one call per key of `keyOf` in rotation, so that many calls with one key leave room for other
 * keys. A call whose `check` throws when its batch starts is removed from the batch. An item that PostgreSQL rejects
 * fails only its own call; any other error fails the batch.
 */
export function createSharedBatches<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  keyOf: (item: Item) => string,
  size: number,
): (item: Item, check: () => void) => Promise<Result> {
  const waiting = new Map<string, Call<Item, Result>[]>()
  let busy = false

  async function runNext(): Promise<void> {
    const batch = nextBatch()
    if (batch.length > 0) await runBatch(batch)
    busy = waiting.size > 0
    // setImmediate starts the next batch as soon as the event loop has read all requests that have arrived.
    if (busy) setImmediate(runNext)
  }

  function nextBatch(): Call<Item, Result>[] {
    const batch: Call<Item, Result>[] = []
    // A key that is deleted and set again moves to the end of the map, so the loop reaches the key again.
    for (const [key, calls] of waiting) {
      if (batch.length === size) break
      const call = calls.shift() as Call<Item, Result>
      waiting.delete(key)
      if (calls.length > 0) waiting.set(key, calls)
      try {
        call.check()
        batch.push(call)
      } catch (error) {
        call.reject(error)
      }
    }
    return batch
  }

  async function runBatch(batch: Call<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item))
      for (const [place, { resolve }] of batch.entries()) resolve(results[place] as Result)
    } catch (error) {
      if (batch.length > 1 && isRejectedRow(error)) {
        // Runs each item separately, because PostgreSQL does not report which item it rejects.
        for (const call of batch) await runBatch([call])
      } else {
        for (const { reject } of batch) reject(error)
      }
    }
  }

  return (item, check) =>
    new Promise((resolve, reject) => {
      const key = keyOf(item)
      const call = { item, check, resolve, reject }
      const calls = waiting.get(key)
      if (calls) calls.push(call)
      else waiting.set(key, [call])
      if (!busy) setImmediate(runNext)
      busy = true
    })
}

/** An array of values for each field of the items, as `unnest` reads them. */
export type Columns<Item> = { [Name in keyof Item]: Item[Name][] }

/** Returns the columns of items with the same fields, of which there is at least one. */
export function toColumns<Item extends object>(items: readonly Item[]): Columns<Item> {
  const names = Object.keys(items[0] as Item) as (keyof Item)[]
  return Object.fromEntries(names.map((name) => [name, items.map((item) => item[name])])) as Columns<Item>
}

/** Compares keys of rows, to sort the items of a batch so that no two batches lock each other. */
export const compareKeys = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
