import * as z from 'zod'
import type { Described } from '../platform/http/operation.ts'
import { COMMON_ERRORS } from './common-errors.ts'
import { refTo, toAnswerSchemas, toFormSchema, toJsonBodySchema } from './json-schema.ts'
import { HEADERS, responsesOf } from './responses.ts'

export type DocumentOptions = { publicUrl: string; operations: readonly Described[] }

/** OpenAPI 3.1 document of `operations`, made from the schemas that check requests and the refusals in errors.ts. */
export function openApiDocument({ publicUrl, operations }: DocumentOptions) {
  const bodySchemas = operations
    .flatMap(({ body }) => body ?? [])
    .map(({ name, schema, example, jsonExample = example }) => [name, toJsonBodySchema(schema, jsonExample)])
  const isSigned = operations.some(({ access }) => access === 'signature')
  return {
    openapi: '3.1.0',
    info: { title: 'UPI payments', version: '1.0.0', description: DESCRIPTION, license: LICENSE },
    servers: [{ url: publicUrl }],
    security: [{ basic: [] }],
    tags: TAGS.filter((tag) => operations.some((operation) => operation.tag === tag.name)),
    paths: Object.fromEntries(operations.map((operation) => [templateOf(operation), pathItem(operation)])),
    components: {
      schemas: {
        ...Object.fromEntries(bodySchemas),
        ...toAnswerSchemas(Object.assign({ Refusal }, ...operations.map(({ answer }) => answer.named))),
      },
      headers: HEADERS,
      securitySchemes: { basic: BASIC, ...(isSigned && { acquirerSignature: SIGNATURE }) },
    },
  }
}

/** The body of a refusal: type `Refusal` of envelope.ts. */
const Refusal = z.strictObject({
  status: z.literal(false),
  statusCode: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
  msg: z.string().min(1).meta({ description: 'What to do, for people. It may change; decide by `statusCode`.' }),
})

const SECURITY: Record<Described['access'], object> = {
  key: {},
  signature: { security: [{ acquirerSignature: [] }] },
  anyone: { security: [] },
}

/** A route's path in OpenAPI's notation: `/pay/:orderId` becomes `/pay/{orderId}`. */
const templateOf = ({ path }: Described) => path.replace(/:(\w+)/g, '{$1}')

const PATH_PARAMETERS: Record<string, object> = {
  orderId: {
    name: 'orderId',
    in: 'path',
    required: true,
    description: 'The `orderId` that was answered.',
    schema: { type: 'string' },
    example: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  },
}

const REQUEST_ID_HEADER = {
  name: 'x-request-id',
  in: 'header',
  description: 'Your own name for this request, 1 to 64 of `A-Z a-z 0-9 . _ -`; any other is replaced by ours.',
  schema: { type: 'string' },
}

function pathItem(operation: Described) {
  const { name, method, path, tag, summary, description, access, headers, body, answer, refusals } = operation
  const parameters = [...path.matchAll(/:(\w+)/g)].flatMap(([, name = '']) => PATH_PARAMETERS[name] ?? [])
  const headerParameters = headers.map(({ name, description, pattern }) => {
    return { name, in: 'header', description, schema: { type: 'string', pattern: pattern.source } }
  })
  const described = {
    operationId: name,
    tags: [tag],
    summary,
    description,
    ...SECURITY[access],
    ...(access !== 'anyone' && { parameters: [...headerParameters, REQUEST_ID_HEADER] }),
    ...(body && { requestBody: { required: true, content: bodyContent(body, access) } }),
    responses: responsesOf(answer, [...refusals, ...COMMON_ERRORS[access]], { challenges: access === 'key' }),
  }
  return { ...(parameters.length > 0 && { parameters }), [method.toLowerCase()]: described }
}

function bodyContent(body: NonNullable<Described['body']>, access: Described['access']) {
  const { name, schema, example, jsonExample = example } = body
  const json = { 'application/json': { schema: refTo(name), example: jsonExample } }
  // A signed body is always JSON: signatures are not defined for forms.
  if (access === 'signature') return json
  return { 'application/x-www-form-urlencoded': { schema: toFormSchema(schema, example), example }, ...json }
}

const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' }

const DESCRIPTION = `Takes UPI payments in India.

Every answer is an envelope: \`status\`, \`statusCode\` (the HTTP status), \`msg\`, and \`data\` of a success. A body may be a form
or JSON. Blanks around a value are trimmed, an empty optional field is an absent one, unknown fields are ignored, and a field that
is sent twice is refused.

A first payment: **createPaymentIntent**, show \`dynamicQR\` on a desktop and the wallet links on a phone (or call
**createOrderRequest** and send the customer to \`payment_url\`), then ask **checkPaymentStatus** before you ship: a redirect
proves nothing.`

const TAGS = [
  { name: 'Merchant', description: 'Take payments, with a merchant’s key.' },
  { name: 'Partner', description: 'Read what was paid and settled, with a partner’s key.' },
  { name: 'Acquirer', description: 'How the bank tells of payments.' },
  { name: 'Customer', description: 'What the addresses show that a merchant gets for its customer.' },
  { name: 'Operator', description: 'Whether the service is well.' },
]

const BASIC = {
  type: 'http',
  scheme: 'basic',
  description: 'The public key as user name, the secret key as password.',
}

const SIGNATURE = {
  type: 'apiKey',
  in: 'header',
  name: 'X-Signature',
  description:
    '`t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`: the key is a secret shared with the operator, `t.body` is the time, ' +
    'a dot and the bytes of the body. Good for 5 minutes either way. Several `v1=` may be sent while secrets change.',
}
