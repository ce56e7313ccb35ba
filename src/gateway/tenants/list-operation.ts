import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import * as z from 'zod'
import { badRequest, Failure, forbidden, oneLongListAtATime, unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { prefersCsv } from '../../platform/http/accept.ts'
import { aroundRows } from '../../platform/http/envelope.ts'
import {
  type Described,
  jsonResponse,
  type OperationRequest,
  operation,
  type Response,
  SUCCEEDED,
} from '../../platform/http/operation.ts'
import { csvForm, type Form, jsonForm, type List, type ListValues } from '../../platform/lists/list.ts'
import type { Lists } from '../../platform/lists/lists.ts'
import { nextDay, startOfIstDay } from '../../platform/time.ts'
import type { AccessKey } from './access-keys.ts'
import { authorizeLinked, authorizeMerchant } from './authorize.ts'
import type { Partners } from './partners.ts'

const DATE_RULE = 'must be an existing date in the format dd-mm-yyyy'

/** An IST day as `dd-mm-yyyy`. The result is the first moment of the day. */
const istDay = z
  .string(errorText(DATE_RULE))
  // The pattern describes only the format of a date. startOfIstDay checks whether the date exists.
  .meta({ pattern: '^(0[1-9]|[12][0-9]|3[01])-(0[1-9]|1[0-2])-[0-9]{4}$' })
  .transform((text, context) => {
    const day = startOfIstDay(text)
    if (day !== undefined) return day
    context.addIssue(DATE_RULE)
    return z.NEVER
  })

const mid = identifier.meta({ description: 'Your merchant identifier, assigned by the operator.' })
const s_date = istDay.meta({ description: 'First day of the list, in Indian Standard Time: `dd-mm-yyyy`.' })
const e_date = istDay.meta({ description: 'Last day of the list (inclusive), not before `s_date`.' })
const inOrder = ({ s_date, e_date }: { s_date: Date; e_date: Date }) => s_date <= e_date
const NOT_IN_ORDER = { path: ['s_date'], error: 'must not be after e_date' }

const range = { s_date, e_date }
/** An example range that includes all orders of a sandbox. */
const RANGE_EXAMPLE = { s_date: '01-01-2026', e_date: '31-12-2029' }

export const MerchantRange = z.object({ mid, ...range }).refine(inOrder, NOT_IN_ORDER)
export const pid = identifier.meta({ description: 'Your partner identifier, assigned by the operator.' })
const PartnerRange = z
  .object({ pid, mid: identifier.meta({ description: 'A merchant that the operator has linked to you.' }), ...range })
  .refine(inOrder, NOT_IN_ORDER)
type Range = Omit<z.output<typeof MerchantRange>, 'mid'>

/** A list formats every amount as rupees with two decimals. */
export const rupees = z.string().regex(/^\d{1,8}\.\d{2}$/)

export const isoMoment = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' })

/**
 * Value of Retry-After while another long list is being read: the seconds that a fast reader needs for 1,000,000
 * records.
 */
const LONG_LIST_RETRY_SECONDS = 5

type Description<Record extends z.ZodObject> = {
  /** Name of a record, such as `Settlement`, for messages and schemas. */
  name: string
  /** Name of the record's schema if another operation uses `name`. */
  schemaName?: string
  list: List
  record: Record
  /** The order of the records, which completes the sentence "Sorted by …". */
  sortedBy: string
  example: z.output<Record>
}

export function describeList<Record extends z.ZodObject>(description: Description<Record>) {
  const { name, schemaName = name, list, record, sortedBy, example } = description
  const [found, noneFound] = [`${name}s found`, `No ${name.toLowerCase()}s found`]
  const schema = z.strictObject({
    status: z.literal(true),
    statusCode: SUCCEEDED,
    msg: z.enum([found, noneFound]),
    data: z.array(record).meta({ description: `Sorted by ${sortedBy}. Empty if no record was found.` }),
  })
  const response: Response<never> = jsonResponse({
    description: `The ${name.toLowerCase()}s.`,
    schema,
    named: { [`${name}List`]: schema, [schemaName]: record },
    example: { status: true, statusCode: 200, msg: found, data: [example] } as z.output<typeof schema>,
  })
  const json = jsonForm(list, (isFound) => aroundRows(isFound ? found : noneFound))
  const csv = csvForm(list)
  const csvExample = [Object.keys(example), Object.values(example)].map((values) => `${values}\r\n`).join('')
  return { list, json, csv, response: { ...response, also: { 'text/csv': csvExample } } }
}

type DescribedList = ReturnType<typeof describeList>
/** The texts of a list in the OpenAPI document. `bodyName` is the name of the body's schema. */
type ListTexts = Pick<Described, 'path' | 'summary' | 'description'> & { name?: string; bodyName: string }

const INVALID_DATE = badRequest(`s_date ${DATE_RULE}`)

/** A list of a merchant's records for the merchant. `schema` has the range of days, and filters. */
export const merchantList = (
  described: DescribedList,
  { schema = MerchantRange, bodyName, ...texts }: ListTexts & { schema?: typeof MerchantRange },
) =>
  listOperation(described, {
    ...texts,
    tag: 'Merchant',
    body: { name: bodyName, schema, example: { mid: 'DEMO_MERCHANT', ...RANGE_EXAMPLE } },
    invalid: INVALID_DATE,
    toValues,
    authorize: authorizeMerchant,
  })

/** A list of a merchant's records for the merchant's partners. */
export const partnerList = (described: DescribedList, { bodyName, ...texts }: ListTexts) =>
  listOperation(described, {
    ...texts,
    tag: 'Partner',
    body: {
      name: bodyName,
      schema: PartnerRange,
      example: { pid: 'DEMO_PARTNER', mid: 'DEMO_MERCHANT', ...RANGE_EXAMPLE },
    },
    invalid: INVALID_DATE,
    toValues,
    authorize: (request, { isLinked }) => authorizeLinked(request, isLinked),
  })

const toValues = ({ s_date, e_date, ...fields }: Range): ListValues => ({
  ...fields,
  from: secondsOf(s_date),
  until: secondsOf(nextDay(e_date)),
})

const secondsOf = (moment: Date) => String(moment.getTime() / 1000)

type ListDefinition<Schema extends z.ZodObject> = Omit<ListTexts, 'bodyName'> &
  Pick<Described, 'tag'> & {
    body: { name: string; schema: Schema; example: Record<string, string> }
    /** An example of an invalid field. */
    invalid: Failure
    toValues: (body: OperationRequest<Schema>['body']) => ListValues
    /** Throws 403 if `request.caller` must not read the list. Called again while a long list is sent. */
    authorize: (request: OperationRequest<Schema>, dependencies: Dependencies) => unknown
  }

/** An operation that returns the records of a list, as JSON or CSV. */
export function listOperation<Schema extends z.ZodObject>(
  described: DescribedList,
  { description, invalid, toValues, authorize, ...definition }: ListDefinition<Schema>,
) {
  return operation({
    ...definition,
    access: 'list',
    description:
      `${description} There is no maximum length: a long list is streamed. If it is cut off, the JSON is incomplete: send the ` +
      `request again. A ${definition.tag.toLowerCase()} can read one long list at a time. With \`Accept: text/csv\`, the response ` +
      'is CSV with the field names as header.',
    errors: [invalid, oneLongListAtATime(LONG_LIST_RETRY_SECONDS)],
    response: described.response,
    handle: (dependencies: Dependencies) => (request, reply) => {
      const check = async () => authorize(request, dependencies)
      return sendList(described, dependencies, reply, { requested: toValues(request.body), authorize: check })
    },
  })
}

async function sendList(
  { list, json, csv }: DescribedList,
  { lists, findKey, limits, now }: Dependencies,
  reply: FastifyReply,
  { requested, authorize }: { requested: ListValues; authorize: () => Promise<unknown> },
): Promise<FastifyReply> {
  const { request } = reply
  const values = { ...requested, now: secondsOf(now()) }
  await authorize()
  request.mid ??= requested.mid
  const form = prefersCsv(request.headers.accept) ? csv : json
  const lines = await lists.short(list, values, limits.lists.shortRows)
  if (lines) return reply.type(form.type).send(whole(form, lines))

  const { caller } = request
  const reader = caller.kind === 'merchant' ? `merchant ${caller.merchant.mid}` : `partner ${caller.pid}`
  // Each caller may read one long list at a time, and all callers together a few lists, so that connections remain
  // available to other callers.
  const { longReaders } = lists
  if (longReaders.has(reader)) throw oneLongListAtATime(LONG_LIST_RETRY_SECONDS)
  if (longReaders.size >= limits.lists.concurrentLong) throw unavailable()
  const checkRight = async () => {
    const key = await findKey(request.publicKey as string)
    if (key === undefined) throw forbidden()
    request.caller = key.caller
    await authorize()
  }
  longReaders.add(reader)
  const over = watchReader(reply, checkRight, limits.lists)
  over.addEventListener('abort', () => longReaders.delete(reader))
  const batches = lists.long(list, values, over)
  return reply.type(form.type).send(Readable.from(pieces(form, batches), { objectMode: false }))
}

function whole({ frame, toRecord }: Form, lines: readonly string[]): string {
  const { begin, between, end } = frame(lines.length > 0)
  return begin + lines.map(toRecord).join(between) + end
}

/**
 * Yields a list that is too long to be held in memory. After an error of `batches`, the response is visibly incomplete.
 */
async function* pieces({ frame, toRecord }: Form, batches: AsyncIterable<string[]>): AsyncGenerator<string> {
  const { begin, between, end } = frame(true)
  let before = begin
  for await (const lines of batches) {
    if (lines.length === 0) continue
    yield before + lines.map(toRecord).join(between)
    before = between
  }
  yield before === begin ? begin + end : end
}

type Dependencies = {
  lists: Lists
  isLinked: Partners['isLinked']
  findKey: (publicKey: string) => Promise<AccessKey | undefined>
  limits: Pick<Limits, 'lists'>
  now: () => Date
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
    // Subtracts the bytes that are still buffered in this process, because the reader has not received these bytes.
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
