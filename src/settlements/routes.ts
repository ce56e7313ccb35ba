import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ok, okText } from '../http/envelope.ts'
import type { ZodTypeProvider } from '../http/input.ts'
import { authorizePartner } from '../merchants/authorize.ts'
import type { Partners } from '../merchants/partners.ts'
import { nextDay } from './dates.ts'
import type { Settlement, Settlements } from './repository.ts'
import { FetchSettlementList } from './schema.ts'
import { toWire } from './wire.ts'

export type SettlementRoutes = {
  /** Where lists are read now: a replica, or the primary. */
  readFrom: () => Promise<Settlements>
  partners: Pick<Partners, 'isLinked'>
}

/** A reader that takes nothing for this long is cut off: it holds one of the few connections that lists have. */
const STALLED_READER_MS = 30_000

/** Contract A3. */
export function settlementRoutes(v1: FastifyInstance, { readFrom, partners }: SettlementRoutes) {
  const app = v1.withTypeProvider<ZodTypeProvider>()

  app.post('/partner/fetchSettlementList', { schema: { body: FetchSettlementList } }, async (request, reply) => {
    const { body, caller } = request
    await authorizePartner(caller, body.pid, body.mid, partners)
    request.mid = body.mid
    const settlements = await readFrom()
    const batches = settlements.list(body.mid, body.s_date, nextDay(body.e_date), whenClientGoes(reply))
    // The first batch is awaited here, so that a database that is away still gets its proper envelope.
    const first = await batches.next()
    if (first.done) return ok('No settlements found', [])
    reply.raw.setTimeout(STALLED_READER_MS, () => reply.raw.destroy())
    const text = okText('Settlements found', wireBatches(first.value, batches))
    return reply.type('application/json; charset=utf-8').send(Readable.from(text, { objectMode: false }))
  })
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
