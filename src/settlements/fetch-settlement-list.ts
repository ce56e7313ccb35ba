import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import * as z from 'zod'
import { badRequest, oneLongListAtATime, unavailable } from '../errors.ts'
import { errorText, identifier } from '../fields.ts'
import { okBatches, okRows } from '../http/envelope.ts'
import { jsonAnswer, operation, SUCCEEDED } from '../http/operation.ts'
import { nextDay, startOfIstDay } from '../ist.ts'
import type { Limits } from '../limits.ts'
import type { AccessKeys } from '../tenants/access-keys.ts'
import { authorizePartner } from '../tenants/authorize.ts'
import type { Partners } from '../tenants/partners.ts'
import type { Settlement, Settlements } from './settlements.ts'

const DATE_RULE = 'must be a date that exists, as dd-mm-yyyy'

/** A day of India, `dd-mm-yyyy`, read as the day's first moment. */
const istDay = z
  .string(errorText(DATE_RULE))
  // The pattern is only the form of a date; startOfIstDay checks whether that day exists.
  .meta({ pattern: '^(0[1-9]|[12][0-9]|3[01])-(0[1-9]|1[0-2])-[0-9]{4}$' })
  .transform((text, context) => {
    const day = startOfIstDay(text)
    if (day !== undefined) return day
    context.addIssue(DATE_RULE)
    return z.NEVER
  })

/** Both days are included. */
const WhichSettlements = z
  .object({
    pid: identifier.meta({ description: 'Your partner identifier, as the operator assigned it.' }),
    mid: identifier.meta({ description: 'A merchant that the operator has linked to you.' }),
    s_date: istDay.meta({ description: 'First day of the list: a day of India, `dd-mm-yyyy`.' }),
    e_date: istDay.meta({ description: 'Last day of the list, itself included; not before `s_date`.' }),
  })
  .refine(({ s_date, e_date }) => s_date <= e_date, { path: ['s_date'], error: 'must not be after e_date' })

const isoMoment = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' })

const SettlementRecord = z.strictObject({
  amount: z
    .string()
    .regex(/^-?\d{1,12}\.\d{2}$/)
    .meta({
      description:
        'Rupees with two decimals, as text: never read it as a float. Negative where the bank took money back.',
    }),
  UTR: z.string().meta({ description: 'Unique transaction reference of the payout.' }),
  bankReferenceNumber: z.string(),
  status: z.enum(['SUCCESS', 'PENDING', 'FAILED']),
  merchant_id: z.string(),
  initiationDate: isoMoment.meta({ description: 'When the bank began it, UTC. The range applies to this moment.' }),
  created_at: isoMoment.meta({ description: 'When the record was made, UTC.' }),
})

const SettlementList = z.strictObject({
  status: z.literal(true),
  statusCode: SUCCEEDED,
  msg: z.enum(['Settlements found', 'No settlements found']),
  data: z
    .array(SettlementRecord)
    .meta({ description: 'Oldest first, then by UTR. Empty when there is none in the range.' }),
})

const FOUND = 'Settlements found'
const NONE_FOUND = 'No settlements found'

/**
 * Retry-After in seconds when a partner's long list is still being read. A quick reader takes this long for 1,000,000
 * settlements.
 */
const LONG_LIST_RETRY_SECONDS = 5

export const fetchSettlementList = operation({
  path: '/v1/partner/fetchSettlementList',
  tag: 'Partner',
  summary: 'List what was settled to a merchant',
  description:
    'Both days are days of India, included, and apply to `initiationDate`. There is no maximum range: a long list is streamed, ' +
    'and one that breaks off is no valid JSON; ask again. A partner reads one long list at a time.',
  body: {
    name: 'WhichSettlements',
    schema: WhichSettlements,
    // Wide enough for every settlement of a sandbox.
    example: { pid: 'DEMO_PARTNER', mid: 'DEMO_MERCHANT', s_date: '01-01-2026', e_date: '31-12-2029' },
  },
  refusals: [
    badRequest('s_date must be a date that exists, as dd-mm-yyyy'),
    oneLongListAtATime(LONG_LIST_RETRY_SECONDS),
  ],
  answer: jsonAnswer({
    description: 'The settlements.',
    schema: SettlementList,
    named: { SettlementList, Settlement: SettlementRecord },
    example: {
      status: true,
      statusCode: 200,
      msg: FOUND,
      data: [
        {
          amount: '1999.00',
          UTR: 'DEMON26278000001',
          bankReferenceNumber: 'DEMOBANK-0001',
          status: 'SUCCESS',
          merchant_id: 'DEMO_MERCHANT',
          initiationDate: '2026-10-05T04:30:00.000Z',
          created_at: '2026-10-06T04:30:00.000Z',
        },
      ],
    },
  }),
  handle: ({ settlements, isLinked, findKey, listLimits }: Dependencies) => {
    /** The partners that are reading a long list from this instance. */
    const readers = new Set<string>()

    return async (request, reply) => {
      const { pid, mid, s_date: from, e_date } = request.body
      const until = nextDay(e_date)
      await authorizePartner(request.caller, pid, mid, isLinked)
      request.mid = mid
      reply.type('application/json; charset=utf-8')
      const short = await settlements.short(mid, from, until, listLimits.shortRows)
      if (short) return reply.send(okRows(short.length > 0 ? FOUND : NONE_FOUND, short.map(toRecordText)))

      // A partner gets one long list at a time, and all partners a few, so that slow readers leave connections for
      // short lists.
      if (readers.has(pid)) throw oneLongListAtATime(LONG_LIST_RETRY_SECONDS)
      if (readers.size >= listLimits.longAtOnce) throw unavailable()
      const mayRead = async () =>
        (await findKey(request.publicKey as string)) !== undefined && (await isLinked(pid, mid))
      readers.add(pid)
      const over = watchReader(reply, mayRead, listLimits)
      over.addEventListener('abort', () => readers.delete(pid))
      const batches = toRecordTexts(settlements.list(mid, from, until, over))
      return reply.send(Readable.from(okBatches(FOUND, batches), { objectMode: false }))
    }
  },
})

type Dependencies = {
  settlements: Settlements
  isLinked: Partners['isLinked']
  findKey: AccessKeys['find']
  listLimits: Limits['lists']
}

async function* toRecordTexts(batches: AsyncIterable<Settlement[]>): AsyncGenerator<string[]> {
  for await (const batch of batches) yield batch.map(toRecordText)
}

/**
 * Returns one settlement as JSON for partners. JSON.stringify made a list of 1,000,000 take a fifth longer. Nothing
 * needs escaping, because the table's checks allow no character that JSON escapes.
 */
function toRecordText({ amount, utr, bankReferenceNumber, status, mid, initiatedAt, createdAt }: Settlement): string {
  return `{"amount":"${amount}","UTR":"${utr}","bankReferenceNumber":"${bankReferenceNumber}","status":"${status}","merchant_id":"${mid}","initiationDate":"${initiatedAt}","created_at":"${createdAt}"}`
}

/**
 * Breaks an answer off, which leaves invalid JSON, when its reader is too slow, may no longer read it, or reads for too long. The
 * signal aborts when the answer has been taken or broken off, or its client has left.
 */
function watchReader(
  { raw }: FastifyReply,
  mayRead: () => Promise<boolean>,
  { slowestReaderBytesPerSecond, readerWindowMs, readerCheckIntervalMs, longestMs }: Limits['lists'],
): AbortSignal {
  const over = new AbortController()
  // Bytes at the ends of the window's intervals, oldest first.
  const taken: number[] = []
  const timer = setInterval(async () => {
    // Bytes that still wait in this process were not taken.
    if (raw.socket) taken.push(raw.socket.bytesWritten - raw.socket.writableLength)
    if (taken.length > readerWindowMs / readerCheckIntervalMs) {
      const inWindow = (taken.at(-1) as number) - (taken.shift() as number)
      if (inWindow < (slowestReaderBytesPerSecond * readerWindowMs) / 1000) raw.destroy()
    }
    // A failed look-up ends no list: if the database is away, the list breaks off by itself.
    if (!(await mayRead().catch(() => true))) raw.destroy()
  }, readerCheckIntervalMs)
  const end = setTimeout(() => raw.destroy(), longestMs)
  const stop = () => {
    clearInterval(timer)
    clearTimeout(end)
    over.abort()
  }
  // The client may have left already.
  if (raw.destroyed) setImmediate(stop)
  else raw.once('close', stop)
  return over.signal
}
