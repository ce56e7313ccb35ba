import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AccessKeys } from '../auth/access-keys.ts'
import { oneLongListAtATime, tooManyLists } from '../errors.ts'
import { ok, okText } from '../http/envelope.ts'
import type { ZodTypeProvider } from '../http/input.ts'
import { nextDay } from '../ist.ts'
import { authorizePartner } from '../merchants/authorize.ts'
import type { Partners } from '../merchants/partners.ts'
import type { Settlement, Settlements } from './repository.ts'
import { FetchSettlementList } from './schema.ts'
import { shareReads } from './share-reads.ts'
import { createTurns } from './turns.ts'
import { toWire } from './wire.ts'

export type SettlementRoutes = {
  /** Does `work` with the settlements of a replica or of the primary; if the replica fails, again with the primary's. */
  read: <T>(work: (settlements: Settlements) => Promise<T>) => Promise<T>
  isLinked: Partners['isLinked']
  findKey: AccessKeys['find']
}

const FOUND = 'Settlements found'
const NONE_FOUND = 'No settlements found'

/** How soon most of the lists that a partner asked for at once are read. */
const LISTS_RETRY_SECONDS = 1
/** How long a list of 1,000,000 settlements takes a quick reader, for those who have to wait for its end. */
const RETRY_SECONDS = 5

/**
 * A reader holds one of the few connections that lists have, and a snapshot. It is cut off when it takes less than this in
 * the mean of the window: the slowest mobile links in use carry it. The window is long because TCP tells of taken bytes in
 * portions: a full buffer of 6 MB opens again when a sixteenth of it was read.
 */
const SLOWEST_READER_BYTES_PER_SECOND = 16 * 1024
const READER_WINDOW_SECONDS = 60
/** With the second for which a key and a link are remembered, a reader that may not read any more is cut off within 5 s. */
const READER_CHECK_INTERVAL_MS = 2_500

/** Contract A3. */
export function settlementRoutes(v1: FastifyInstance, { read, isLinked, findKey }: SettlementRoutes) {
  const app = v1.withTypeProvider<ZodTypeProvider>()
  const shareList = shareReads<string | undefined>()
  const turns = createTurns()
  /** The partners that are reading a long list from this instance. */
  const readers = new Set<string>()

  app.post('/partner/fetchSettlementList', { schema: { body: FetchSettlementList } }, async (request, reply) => {
    const { pid, mid, s_date: from, e_date } = request.body
    await authorizePartner(request.caller, pid, mid, isLinked)
    request.mid = mid
    const until = nextDay(e_date)

    reply.type('application/json; charset=utf-8')
    // Of one partner only: another one must not be refused with it.
    const key = `${pid} ${mid} ${from.getTime()} ${until.getTime()}`
    if (!turns.enter(pid, reply.raw)) throw tooManyLists(LISTS_RETRY_SECONDS)
    const short = await shareList(key, async () =>
      shortText(await turns.inTurn(pid, () => read((settlements) => settlements.shortList(mid, from, until)))),
    )
    if (short !== undefined) return reply.send(short)

    // Four slow readers hold every connection for lists: they must not be one and the same partner.
    if (readers.has(pid)) throw oneLongListAtATime(RETRY_SECONDS)
    const gone = whenClientGoes(reply, () => readers.delete(pid))
    if (!gone.aborted) readers.add(pid)
    // The first batch is awaited here, so that a database that is away still gets its proper envelope.
    const { first, batches } = await read(async (settlements) => {
      const batches = settlements.list(mid, from, until, gone)
      return { first: await batches.next(), batches }
    })
    const mayRead = async () => (await findKey(request.publicKey as string)) !== undefined && (await isLinked(pid, mid))
    watchReader(reply, mayRead)
    return reply.send(Readable.from(okText(FOUND, wireBatches(first.value ?? [], batches)), { objectMode: false }))
  })
}

/** The whole answer to a short list; undefined when it was too long to be read in one piece. */
function shortText(rows: Settlement[] | undefined): string | undefined {
  return rows && JSON.stringify(ok(rows.length > 0 ? FOUND : NONE_FOUND, rows.map(toWire)))
}

/** Aborts when the answer is over, or its client has gone away: before this moment too, and then `leave` is not called. */
function whenClientGoes({ raw }: FastifyReply, leave: () => void): AbortSignal {
  if (raw.destroyed) return AbortSignal.abort()
  const gone = new AbortController()
  raw.once('close', () => {
    leave()
    gone.abort()
  })
  return gone.signal
}

/** Cuts an answer off, never as a well-formed half, when its reader is too slow or may not read it any more. */
function watchReader({ raw }: FastifyReply, mayRead: () => Promise<boolean>) {
  // Bytes at the ends of the window's intervals, oldest first.
  const taken: number[] = []
  const timer = setInterval(async () => {
    // What waits in this process was not taken.
    if (raw.socket) taken.push(raw.socket.bytesWritten - raw.socket.writableLength)
    if (taken.length > (READER_WINDOW_SECONDS * 1000) / READER_CHECK_INTERVAL_MS) {
      const inWindow = (taken.at(-1) as number) - (taken.shift() as number)
      if (inWindow < SLOWEST_READER_BYTES_PER_SECOND * READER_WINDOW_SECONDS) raw.destroy()
    }
    // A look-up that fails forbids nothing: the list of a database that is away ends by itself.
    if (!(await mayRead().catch(() => true))) raw.destroy()
  }, READER_CHECK_INTERVAL_MS)
  raw.once('close', () => clearInterval(timer))
}

async function* wireBatches(first: Settlement[], rest: AsyncIterable<Settlement[]>) {
  yield first.map(toWire)
  for await (const batch of rest) yield batch.map(toWire)
}
