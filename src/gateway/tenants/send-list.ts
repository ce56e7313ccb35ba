import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { Failure, forbidden, oneLongListAtATime, unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { prefersCsv } from '../../platform/http/request-headers.ts'
import type { Form, List, ListValues } from '../../platform/lists/list.ts'
import type { Lists } from '../../platform/lists/lists.ts'
import type { AccessKey } from './access-keys.ts'

/**
 * Value of Retry-After while another long list is being read: the seconds that a fast reader needs for 1,000,000
 * records.
 */
export const LONG_LIST_RETRY_SECONDS = 5

export type ListDependencies = {
  lists: Lists
  findKey: (publicKey: string) => Promise<AccessKey | undefined>
  limits: Pick<Limits, 'lists'>
}

/**
 * Sends a short list in one piece, and a long list as a stream. `authorize` throws 403 if `request.caller` must not
 * read the list, and is called again while a long list is sent.
 */
export async function sendList(
  { list, json, csv }: { list: List; json: Form; csv: Form },
  { lists, findKey, limits }: ListDependencies,
  reply: FastifyReply,
  { values, authorize }: { values: ListValues; authorize: () => Promise<unknown> },
): Promise<FastifyReply> {
  const { request } = reply
  await authorize()
  request.mid ??= values.mid
  const form = prefersCsv(request.headers.accept) ? csv : json
  const begins = list.beginsEmpty ? sleep(limits.lists.firstRecordMs, true as const, { ref: false }) : undefined
  const lines = await lists.short(list, values, limits.lists)
  if (lines) return reply.type(form.type).send(whole(form, lines))

  const { caller } = request
  const reader = caller.kind === 'merchant' ? `merchant ${caller.merchant.mid}` : `partner ${caller.pid}`
  // Each caller may read one long list at a time, and all callers together a few lists, so that connections remain
  // available to other callers.
  const { longReaders } = lists
  if (longReaders.has(reader)) throw oneLongListAtATime(LONG_LIST_RETRY_SECONDS)
  if (longReaders.size >= limits.lists.concurrentLong) throw unavailable()
  const filtered = [...longReaders.values()].filter(({ isFiltered }) => isFiltered)
  if (list.isFiltered && filtered.length >= limits.lists.concurrentFiltered) throw unavailable()
  const checkRight = async () => {
    const key = await findKey(request.publicKey as string)
    if (key === undefined) throw forbidden()
    request.caller = key.caller
    await authorize()
  }
  longReaders.set(reader, list)
  const over = watchReader(reply, checkRight, limits.lists)
  over.addEventListener('abort', () => longReaders.delete(reader))
  const batches = lists.long(list, values, over)
  const body = Readable.from(pieces(form, batches, begins), { objectMode: false })
  // Without a listener, an error after the abort would terminate the process.
  body.on('error', () => undefined)
  // An error before the first bytes gets an error response, which has another type.
  await once(body, 'readable', { signal: over }).catch((error) => {
    if (!over.aborted) throw error
  })
  return over.aborted ? reply : reply.type(form.type).send(body)
}

function whole({ frame, toRecord }: Form, lines: readonly string[]): string {
  const { begin, between, end } = frame(lines.length > 0)
  return begin + lines.map(toRecord).join(between) + end
}

/**
 * Yields a list that is too long to be held in memory. If no record is found until `begins` is fulfilled, the list begins
 * as if a record had been found. After an error of `batches`, the response is visibly incomplete.
 */
async function* pieces(
  { frame, toRecord }: Form,
  batches: AsyncGenerator<string[]>,
  begins?: Promise<true>,
): AsyncGenerator<string> {
  const first = batches.next()
  const isFound = first.then(({ done }) => !done)
  const { begin, between, end } = frame(await (begins === undefined ? isFound : Promise.race([isFound, begins])))
  yield begin
  let before = ''
  for (let next = await first; !next.done; next = await batches.next()) {
    yield before + next.value.map(toRecord).join(between)
    before = between
  }
  yield end
}

/**
 * Cuts a response off, which leaves invalid JSON, if its reader is too slow, loses the permission, or takes too long.
 * The returned signal aborts when the response was sent or cut off, or the client has disconnected.
 */
function watchReader(
  { raw }: FastifyReply,
  checkRight: () => Promise<void>,
  { slowestReaderBytesPerSecond, readerWindowMs, readerCheckIntervalMs, longestMs }: Limits['lists'],
): AbortSignal {
  const over = new AbortController()
  // Total number of bytes that the reader had received at the end of each interval in the window, oldest first.
  const taken: number[] = []
  const timer = setInterval(async () => {
    // Subtracts the bytes that are still buffered in this process, because the reader has not received them.
    if (raw.socket) taken.push(raw.socket.bytesWritten - raw.socket.writableLength)
    if (taken.length > readerWindowMs / readerCheckIntervalMs) {
      const inWindow = (taken.at(-1) as number) - (taken.shift() as number)
      if (inWindow < (slowestReaderBytesPerSecond * readerWindowMs) / 1000) raw.destroy()
    }
    // Only a rejection cuts the list off. Any other error in the look-up is ignored, because the database that serves
    // the list may still work.
    await checkRight().catch((error) => error instanceof Failure && raw.destroy())
  }, readerCheckIntervalMs)
  const end = setTimeout(() => raw.destroy(), longestMs)
  const stop = () => {
    clearInterval(timer)
    clearTimeout(end)
    over.abort()
  }
  // The event 'close' is not emitted again if the client has already disconnected.
  if (raw.destroyed) setImmediate(stop)
  else raw.once('close', stop)
  return over.signal
}
