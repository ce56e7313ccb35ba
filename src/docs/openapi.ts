import * as z from 'zod'
import { BUILD } from '../build-info.ts'
import { notFound } from '../errors.ts'
import { fail } from '../platform/http/envelope.ts'
import type { Described, DescribedWebhook } from '../platform/http/operation.ts'
import { commonErrors } from './common-errors.ts'
import { refTo, toFormSchema, toJsonBodySchema, toMessageSchemas } from './json-schema.ts'
import { HEADERS, REQUEST_ID_EXAMPLE, responsesOf } from './responses.ts'

export type DocumentOptions = {
  publicUrl: string
  operations: readonly Described[]
  webhooks: readonly DescribedWebhook[]
}

/**
 * Returns the OpenAPI 3.1 document for `operations` and `webhooks`, generated from the schemas that validate requests
 * and from the errors in errors.ts.
 */
export function openApiDocument({ publicUrl, operations: declared, webhooks }: DocumentOptions) {
  const operations = declared.map((operation) => {
    return { ...operation, response: withPublicUrl(operation.response, publicUrl) }
  })
  const bodySchemas = operations
    .flatMap(({ body }) => body ?? [])
    .map(({ name, schema, example, jsonExample = example }) => [name, toJsonBodySchema(schema, jsonExample)])
  const isSigned = operations.some(({ access }) => access === 'signature')
  return {
    openapi: '3.1.0',
    info: { title: 'UPI payments', version: BUILD.version, description: DESCRIPTION, license: LICENSE },
    servers: [{ url: publicUrl }],
    tags: [...TAGS.filter((tag) => operations.some((operation) => operation.tag === tag.name)), WEBHOOK_TAG],
    paths: Object.fromEntries(operations.map((operation) => [templateOf(operation), pathItem(operation)])),
    webhooks: Object.fromEntries(webhooks.map((webhook) => [webhook.type, webhookItem(webhook)])),
    components: {
      schemas: {
        ...Object.fromEntries(bodySchemas),
        ...toMessageSchemas([ERROR, ...operations.map(({ response }) => response), ...webhooks.map(toMessage)]),
      },
      headers: HEADERS,
      securitySchemes: { basic: BASIC, ...(isSigned && { acquirerSignature: SIGNATURE }) },
    },
  }
}

/** Replaces {PUBLIC_URL} in the example of a response with the address of this service. */
function withPublicUrl(response: Described['response'], publicUrl: string): Described['response'] {
  if (response.example === undefined) return response
  const example = JSON.parse(JSON.stringify(response.example).replaceAll('{PUBLIC_URL}', () => publicUrl))
  return { ...response, example }
}

/** The body of an error response, as `fail` in envelope.ts builds it. */
const ErrorResponse = z.strictObject({
  status: z.literal(false),
  statusCode: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
  msg: z.string().min(1).meta({
    description: 'The error and what to do, for people. The text may change: decide by the header `x-error-code`.',
  }),
})

const ERROR = { named: { ErrorResponse }, schema: ErrorResponse, example: fail(notFound()) }

/** The names in the list of `basic` are roles in OpenAPI 3.1, here the right that the key must have. */
function securityOf(access: Described['access']): object[] {
  if (access === 'anyone') return []
  return access === 'signature' ? [{ acquirerSignature: [] }] : [{ basic: [access] }]
}

/** Converts a route's path to OpenAPI notation: `/pay/:orderId` becomes `/pay/{orderId}`. */
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
  description: 'Your identifier of this request, 1 to 64 of `A-Z a-z 0-9 . _ -`. The service replaces an invalid one.',
  schema: { type: 'string' },
  example: REQUEST_ID_EXAMPLE,
}

function pathItem(operation: Described) {
  const { name, method, path, tag, summary, description, access, headers, body, response, errors } = operation
  const parameters = [...path.matchAll(/:(\w+)/g)].flatMap(([, name = '']) => PATH_PARAMETERS[name] ?? [])
  const headerParameters = headers.map(({ name, description, pattern, example }) => {
    return { name, in: 'header', description, schema: { type: 'string', pattern: pattern.source }, example }
  })
  const needsKey = access !== 'anyone' && access !== 'signature'
  const described = {
    operationId: name,
    tags: [tag],
    summary,
    description: needsKey ? `${description} Requires a key with the right \`${access}\`.` : description,
    security: securityOf(access),
    ...(access !== 'anyone' && { parameters: [...headerParameters, REQUEST_ID_HEADER] }),
    ...(body && { requestBody: { required: true, content: bodyContent(body, access) } }),
    responses: responsesOf(response, [...errors, ...commonErrors(access)], { challenges: needsKey }),
  }
  return { ...(parameters.length > 0 && { parameters }), [method.toLowerCase()]: described }
}

function bodyContent(body: NonNullable<Described['body']>, access: Described['access']) {
  const { name, schema, example, jsonExample = example } = body
  const json = { 'application/json': { schema: refTo(name), example: jsonExample } }
  // A signed body is always JSON, because signatures are not defined for forms.
  if (access === 'signature') return json
  return { 'application/x-www-form-urlencoded': { schema: toFormSchema(schema, example), example }, ...json }
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns the name of a webhook's schema: `payment.attempt_failed` becomes `PaymentAttemptFailed`. */
const eventName = ({ type }: DescribedWebhook) => type.split(/[._]/).map(capitalized).join('')

const toMessage = (webhook: DescribedWebhook) => ({ ...webhook, named: { [eventName(webhook)]: webhook.schema } })

function webhookItem(webhook: DescribedWebhook) {
  const { type, description, example } = webhook
  const name = eventName(webhook)
  const content = { 'application/json': { schema: refTo(name), example } }
  const described = {
    operationId: `on${name}`,
    tags: [WEBHOOK_TAG.name],
    summary: capitalized(type.replace(/[._]/g, ' ')),
    description,
    security: [],
    parameters: WEBHOOK_HEADERS,
    requestBody: { required: true, content },
    responses: WEBHOOK_RESPONSES,
  }
  return { post: described }
}

const WEBHOOK_HEADERS = [
  {
    name: 'webhook-id',
    description: 'Identifier of the event, the same in every delivery of the event.',
    example: 'msg_019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3_1',
  },
  { name: 'webhook-timestamp', description: 'Time of this delivery, in seconds since 1970.', example: '1795255812' },
  {
    name: 'webhook-signature',
    description:
      'Signatures, separated by spaces: `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64, as in Standard Webhooks 1.0.0.',
    example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  },
].map((header) => ({ ...header, in: 'header', required: true, schema: { type: 'string' } }))

const WEBHOOK_RESPONSES = {
  '2XX': { description: 'You have stored the event.' },
  '410': { description: 'The service disables the endpoint.' },
  '4XX': { description: 'The service retries the delivery, after 429 not before `Retry-After`.' },
  '5XX': { description: 'The service retries the delivery, after 503 not before `Retry-After`.' },
}

const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' }

const DESCRIPTION = `Accept UPI payments in India.

Every response is an envelope: \`status\`, \`statusCode\` (the HTTP status), \`msg\` and, for a success, \`data\`. An error
response has the code of the error in the header \`x-error-code\`. Send a request body as a form or as JSON. The service trims
spaces around a value, treats an empty optional field as absent, ignores unknown fields, and rejects a field that is sent twice.

To accept a payment, call **createOrderRequest** and redirect the customer to \`payment_url\`. For your own page, call
**createPaymentIntent**: show \`dynamicQR\` on a desktop and the wallet links on a phone. Call **checkPaymentStatus** before you fulfil
the order, because a redirect proves nothing.`

const TAGS = [
  { name: 'Merchant', description: 'Accept, check, list and refund payments, with the key of a merchant.' },
  { name: 'Partner', description: 'List merchants, transactions and settlements, with the key of a partner.' },
  { name: 'Acquirer', description: 'Payment notifications of the bank.' },
  { name: 'Customer', description: 'The pages, QR codes and logos for the customer.' },
  { name: 'Operator', description: 'Health checks.' },
]

const WEBHOOK_TAG = {
  name: 'Webhook',
  description:
    'Events that the service sends to your endpoint. Verify the signature of each, and return 2xx for an unknown `type` too.',
}

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
    'a dot and the bytes of the body. A signature is valid for 5 minutes before and after. Send several `v1=` while a secret is rotated.',
}
