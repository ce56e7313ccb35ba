import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ok, okText } from '../http/envelope.ts'
import type { ZodTypeProvider } from '../http/input.ts'
import { authorizePartner } from '../merchants/authorize.ts'
import type { Partners } from '../merchants/partners.ts'
import { nextDay } from './dates.ts'
import type { Settlement, Settlements } from './repository.ts'
import { FetchSettlementList } from './schema.ts'
import { shareReads } from './share-reads.ts'
import { toWire } from './wire.ts'

export type SettlementRoutes = {
  /** Does `work` with the settlements of a replica or of the primary; if the replica fails, again with the primary's. */
  read: <T>(work: (settlements: Settlements) => Promise<T>) => Promise<T>
  isLinked: Partners['isLinked']
}

const FOUND = 'Settlements found'
const NONE_FOUND = 'No settlements found'

/**
 * A reader that takes nothing for this long is cut off: it holds one of the few connections that lists have. Node.js lets a
 * first time-out pass after which something was written: measured at 62 s for a reader that stopped in mid-list.
 */
const STALLED_READER_MS = 30_000

/** Contract A3. */
export function settlementRoutes(v1: FastifyInstance, { read, isLinked }: SettlementRoutes) {
  const app = v1.withTypeProvider<ZodTypeProvider>()
  const shareList = shareReads<string | undefined>()

  app.post('/partner/fetchSettlementList', { schema: { body: FetchSettlementList } }, async (request, reply) => {
    const { pid, mid, s_date: from, e_date } = request.body
    await authorizePartner(request.caller, pid, mid, isLinked)
    request.mid = mid
    const until = nextDay(e_date)

    reply.type('application/json; charset=utf-8')
    const key = `${mid} ${from.getTime()} ${until.getTime()}`
    const short = await shareList(key, async () =>
      shortText(await read((settlements) => settlements.shortList(mid, from, until))),
    )
    if (short !== undefined) return reply.send(short)

    const gone = whenClientGoes(reply)
    // The first batch is awaited here, so that a database that is away still gets its proper envelope.
    const { first, batches } = await read(async (settlements) => {
      const batches = settlements.list(mid, from, until, gone)
      return { first: await batches.next(), batches }
    })
    reply.raw.setTimeout(STALLED_READER_MS, () => reply.raw.destroy())
    return reply.send(Readable.from(okText(FOUND, wireBatches(first.value ?? [], batches)), { objectMode: false }))
  })
}

/** The whole answer to a short list; undefined when it was too long to be read in one piece. */
function shortText(rows: Settlement[] | undefined): string | undefined {
  return rows && JSON.stringify(ok(rows.length > 0 ? FOUND : NONE_FOUND, rows.map(toWire)))
}

/** Aborts when the answer is over, or its client has gone away: before this moment too. */
function whenClientGoes({ raw }: FastifyReply): AbortSignal {
  if (raw.destroyed) return AbortSignal.abort()
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  return gone.signal
}

async function* wireBatches(first: Settlement[], rest: AsyncIterable<Settlement[]>) {
  yield first.map(toWire)
  for await (const batch of rest) yield batch.map(toWire)
}
