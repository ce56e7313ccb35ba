import { subscribe } from 'node:diagnostics_channel'
import { Readable } from 'node:stream'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { FastifyInstance } from 'fastify'
import { expect } from 'vitest'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { ERROR_CODES, type ErrorCode } from '../../src/errors.ts'
import { WEBHOOKS } from '../../src/gateway/webhooks/events.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { checkAfterEach } from './at-end.ts'

/**
 * Compares every response of a service in this process, and what `fetch` gets from another process, with the OpenAPI
 * document. An undocumented status, type, header or field fails the test that received it.
 */

export const DOCUMENT = openApiDocument({
  publicUrl: 'https://pay.example.in/upi',
  operations: Object.values(OPERATIONS).flat(),
  webhooks: WEBHOOKS,
})

type Media = { schema: object; example: Record<string, string>; examples?: Record<string, { value: object }> }
type Header = { $ref: string } | { required: boolean; schema: { enum: readonly string[] } }
type Response = { headers?: Record<string, Header>; content?: Record<string, Media> }
type Operation = {
  operationId: string
  description: string
  security: object[]
  requestBody: { content: Record<string, Media> }
  responses: Record<string, Response>
}
type Seen = { status: number; header: (name: string) => unknown; text: string }

const paths = Object.entries(DOCUMENT.paths as unknown as Record<string, Record<string, Operation>>)
const templates = paths.map(([path, methods]) => ({
  path,
  methods,
  pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
}))

/** The documented POST operations, by path. */
export const POSTS: Record<string, Operation | undefined> = Object.fromEntries(
  paths.map(([path, methods]) => [path, methods.post]),
)

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)
ajv.addSchema(DOCUMENT, 'openapi')
const validators = new Map<string, ValidateFunction>()

/**
 * Returns how the response to `method` and `address` violates the document; undefined if the document does not have
 * the address.
 */
export function strangeness(method: string, address: string, seen: Seen): string[] | undefined {
  const path = address.split(/[?#]/, 1)[0] ?? ''
  const template = templates.find(({ pattern }) => pattern.test(path))
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase()
  const operation = template?.methods[verb]
  if (template === undefined || operation === undefined) {
    const isOperation = path.startsWith('/v1/') && seen.status !== 404 && seen.status !== 405
    return isOperation ? ['the operation is not documented'] : undefined
  }

  const key = String(seen.status) in operation.responses ? String(seen.status) : `${String(seen.status)[0]}XX`
  const response = operation.responses[key]
  if (response === undefined) return ['the status is not documented']
  const missing = Object.entries(response.headers ?? {}).flatMap(([name, header]) => {
    const value = seen.header(name)
    if (value === undefined) return isRequired(header) ? `the header ${name} is missing` : []
    return isDocumented(header, value) ? [] : `the header ${name} has the undocumented value ${value}`
  })
  if (response.content === undefined) return seen.text === '' ? missing : [...missing, 'no body is documented']
  const type = String(seen.header('content-type') ?? '').split(';', 1)[0] ?? ''
  if (!(type in response.content)) return [...missing, `the content type ${type} is not documented`]
  if (type !== 'application/json' || (method === 'HEAD' && seen.text === '')) return missing
  const validate = validator(['paths', template.path, verb, 'responses', key, 'content', type, 'schema'])
  return validate(JSON.parse(seen.text)) ? missing : [...missing, ajv.errorsText(validate.errors)]
}

/** Returns how an event violates the schema of its type; undefined if it is valid. */
export function departureOfEvent(event: { type: string }): string | undefined {
  const validate = validator(['webhooks', event.type, 'post', 'requestBody', 'content', 'application/json', 'schema'])
  return validate(event) ? undefined : ajv.errorsText(validate.errors)
}

function isRequired(header: Header): boolean {
  if (!('$ref' in header)) return header.required
  return DOCUMENT.components.headers[header.$ref.split('/').at(-1) as keyof typeof DOCUMENT.components.headers].required
}

const isDocumented = (header: Header, value: unknown) => '$ref' in header || header.schema.enum.includes(String(value))

/** Returns the validator of a schema inside the document, by the names on the path to it. */
function validator(names: string[]): ValidateFunction {
  const pointer = names.map((name) => encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
  const created = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#/${pointer}` })
  validators.set(pointer, created)
  return created
}

const faults: string[] = []
/** Number of responses compared with the document. */
export const held = { responses: 0 }

function hold(method: string, address: string, seen: Seen) {
  // At any address, documented or not.
  const isError = seen.status >= 400 && seen.text.startsWith('{"status":false,')
  const code = seen.header('x-error-code') as ErrorCode | undefined
  if (isError && (code === undefined || ERROR_CODES[code] !== seen.status)) {
    faults.push(`${method} ${address} ${seen.status}: no error code of this status, but ${code}`)
  }
  const strange = strangeness(method, address, seen)
  if (strange === undefined) return
  held.responses++
  for (const fault of strange) faults.push(`${method} ${address} ${seen.status}: ${fault}. Response: ${seen.text}`)
}

checkAfterEach(() => expect(faults.splice(0), 'responses that the OpenAPI document does not describe').toEqual([]))

// Fastify reports every new instance on this channel.
subscribe('fastify.initialization', (message) => {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onSend', (request, reply, payload, done) => {
    const status = reply.statusCode
    const holdText = (text: string) =>
      hold(request.method, request.url, { status, header: (name) => reply.getHeader(name), text })
    if (payload instanceof Readable) {
      // Fastify pipes the stream in the same turn of the event loop, so no data is lost. A response that is cut off is
      // not compared.
      if (String(reply.getHeader('content-type')).startsWith('application/json')) {
        const chunks: Buffer[] = []
        payload.on('data', (chunk) => chunks.push(Buffer.from(chunk)))
        payload.once('end', () => holdText(Buffer.concat(chunks).toString()))
      }
    } else holdText(payload === null || payload === undefined ? '' : String(payload))
    done()
  })
})

const { fetch } = globalThis
globalThis.fetch = async (input, init) => {
  const result = await fetch(input, init)
  // Skips responses without a length, which are too long to read twice or never end. Skips Setu's responses, which
  // have the header requestid.
  const isOurs = !result.headers.has('requestid')
  if (isOurs && result.headers.has('content-length') && typeof input === 'string') {
    const { pathname } = new URL(input)
    const header = (name: string) => result.headers.get(name) ?? undefined
    hold(init?.method ?? 'GET', pathname, { status: result.status, header, text: await result.clone().text() })
  }
  return result
}
