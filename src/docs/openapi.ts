import * as z from 'zod'
import type { Described } from '../platform/http/operation.ts'
import { COMMON_ERRORS } from './common-errors.ts'
import { refTo, toAnswerSchemas, toFormSchema, toJsonBodySchema } from './json-schema.ts'
import { HEADERS, responsesOf } from './responses.ts'

export type DocumentOptions = { publicUrl: string; operations: readonly Described[] }

/**
 * OpenAPI 3.1 document of `operations`, generated from the schemas that check requests and the failures in errors.ts.
 */
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

/** The body of an error response, which `fail` of envelope.ts builds. */
const Refusal = z.strictObject({
  status: z.literal(false),
  statusCode: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
  msg: z.string().min(1).meta({
    description: 'What is wrong and what to do, for people. The text may change: let your code decide by `statusCode`.',
  }),
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
    description: 'The `orderId` of the create response.',
    schema: { type: 'string' },
    example: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  },
}

const REQUEST_ID_HEADER = {
  name: 'x-request-id',
  in: 'header',
  description:
    'Your own identifier of this request: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. The service replaces any other value.',
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

const DESCRIPTION = `Accept UPI payments in India.

Every response is an envelope: \`status\`, \`statusCode\` (the HTTP status), \`msg\`, and \`data\` on success. Send the body as a form
or as JSON. Spaces around a value are trimmed, an empty optional field is treated as absent, unknown fields are ignored, and a
field that is sent twice is rejected.

To accept a payment, call **createPaymentIntent** and show \`dynamicQR\` on a desktop and the wallet links on a phone, or call
**createOrderRequest** and send the customer to \`payment_url\`. Then call **checkPaymentStatus** before you fulfil the order: a
redirect proves nothing.`

const TAGS = [
  { name: 'Merchant', description: 'Create, check, cancel and refund payments with a merchant’s key.' },
  { name: 'Partner', description: 'List payments and settlements with a partner’s key.' },
  { name: 'Acquirer', description: 'Receive payment notifications from the bank.' },
  { name: 'Customer', description: 'Pages and QR codes for the customer.' },
  { name: 'Operator', description: 'Check the health of the service.' },
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
    '`t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`: the key is a secret shared with the operator; `t.body` is the time, ' +
    'a dot and the bytes of the body. The time may differ by 5 minutes. Send several `v1=` during a rotation of secrets.',
}
