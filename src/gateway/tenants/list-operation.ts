import * as z from 'zod'
import { badRequest, type Failure, oneLongListAtATime } from '../../errors.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { aroundRows } from '../../platform/http/envelope.ts'
import {
  type Described,
  jsonResponse,
  type OperationRequest,
  operation,
  type Response,
  SUCCEEDED,
} from '../../platform/http/operation.ts'
import { csvForm, jsonForm, type List, type ListValues, secondsOf } from '../../platform/lists/list.ts'
import { nextDay, startOfIstDay } from '../../platform/time.ts'
import { authorizeLinked, authorizeMerchant } from './authorize.ts'
import type { Partners } from './partners.ts'
import { type ListDependencies, LONG_LIST_RETRY_SECONDS, sendList } from './send-list.ts'

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
  {
    schema = MerchantRange,
    bodyName,
    ...texts
  }: ListTexts & { schema?: typeof MerchantRange; listOf?: (values: ListValues) => List },
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

type Dependencies = ListDependencies & { isLinked: Partners['isLinked']; now: () => Date }

type ListDefinition<Schema extends z.ZodObject> = Omit<ListTexts, 'bodyName'> &
  Pick<Described, 'tag'> & {
    body: { name: string; schema: Schema; example: Record<string, string> }
    /** An example of an invalid field. */
    invalid: Failure
    toValues: (body: OperationRequest<Schema>['body']) => ListValues
    /** The list of the records that a request selects; by default, the described list. */
    listOf?: (values: ListValues) => List
    /** Throws 403 if `request.caller` must not read the list. */
    authorize: (request: OperationRequest<Schema>, dependencies: Dependencies) => unknown
  }

/** An operation that returns the records of a list, as JSON or CSV. */
export function listOperation<Schema extends z.ZodObject>(
  described: DescribedList,
  { description, invalid, toValues, listOf, authorize, ...definition }: ListDefinition<Schema>,
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
      const values = { ...toValues(request.body), now: secondsOf(dependencies.now()) }
      const check = async () => authorize(request, dependencies)
      const list = listOf?.(values) ?? described.list
      return sendList({ ...described, list }, dependencies, reply, { values, authorize: check })
    },
  })
}
