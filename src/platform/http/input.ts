import formBody from '@fastify/formbody'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type * as z from 'zod'
import { badRequest, bodyEncoded, invalidBody } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { REPEATED } from '../fields.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The raw bytes of the body, on routes that use registerSignedJson. */
    sentBytes: Buffer | undefined
    /** The raw bytes of the body; undefined until their signature has been verified. */
    signedBody: Buffer | undefined
  }
}

/** The fields of a body by name. The key REPEATED is set if a field was sent more than once. */
type BodyFields = Record<string | symbol, unknown>

/**
 * Makes `app` accept forms and JSON. Fastify closes the connection after an error in its body parser, so the parsers
 * here only return the raw body and a hook parses it.
 */
export async function registerInput(app: FastifyInstance, limits: Limits['body']) {
  app.removeAllContentTypeParsers()
  await app.register(formBody, { bodyLimit: limits.bytes, parser: (text) => text as unknown as BodyFields })
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('preValidation', (request, _reply, done) => {
    if (typeof request.body === 'string') request.body = parseForm(request.body, limits.fields)
    else if (Buffer.isBuffer(request.body)) request.body = parseJson(request.body, limits.fields)
    done()
  })
  // Rejects a compressed body, because the body could exceed the size limit when decompressed. preParsing runs after
  // the credentials are checked and before the body is read.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { 'content-encoding': content = 'identity', 'transfer-encoding': transfer = 'chunked' } = request.headers
    const isPlain = content.toLowerCase() === 'identity' && transfer.toLowerCase() === 'chunked'
    done(isPlain ? undefined : bodyEncoded())
  })
}

type SignedJson = {
  fieldLimit: number
  parse: (request: FastifyRequest, json: string) => unknown
  /** Verifies the signature of a body. The promise rejects if the body must not be parsed. */
  accept: (request: FastifyRequest, body: Buffer, reply: FastifyReply) => Promise<void>
}

/**
 * Makes `app` read JSON of any content type, and passes the raw bytes to `accept` before the body is parsed, because a
 * signature covers bytes. A missing body is treated as an empty body.
 */
export function registerSignedJson(app: FastifyInstance, { fieldLimit, parse, accept }: SignedJson) {
  app.removeAllContentTypeParsers()
  app.decorateRequest('sentBytes', undefined)
  app.decorateRequest('signedBody', undefined)
  // Sets sentBytes instead of request.body, because the hook of registerInput would parse request.body before the
  // signature is verified.
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request: FastifyRequest, body: Buffer, done) => {
    request.sentBytes = body
    done(null)
  })
  app.addHook('preValidation', async (request, reply) => {
    const body = request.sentBytes ?? Buffer.alloc(0)
    await accept(request, body, reply)
    request.signedBody = body
    request.body = parseJson(body, fieldLimit, (json) => parse(request, json))
  })
}

/** Parses `application/x-www-form-urlencoded` strictly: rejects invalid UTF-8 and invalid percent-encoding. */
function parseForm(body: string, fieldLimit: number): BodyFields {
  const fields: BodyFields = Object.create(null)
  if (body === '') return fields
  const pairs = body.split('&')
  if (pairs.length > fieldLimit) throw tooManyFields(fieldLimit)
  // U+FFFD means that the body contained invalid UTF-8, which Fastify has replaced.
  if (body.includes('\uFFFD')) throw malformedForm()
  try {
    for (const pair of pairs) {
      if (pair === '') continue
      const equals = pair.indexOf('=')
      const name = decodeFormText(equals < 0 ? pair : pair.slice(0, equals))
      if (name in fields) {
        fields[REPEATED] = true
        fields[name] = REPEATED
      } else {
        fields[name] = equals < 0 ? '' : decodeFormText(pair.slice(equals + 1))
      }
    }
  } catch {
    throw malformedForm()
  }
  return fields
}

function decodeFormText(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decodeURIComponent(spaced) : spaced
}

const tooManyFields = (limit: number) => invalidBody(`The body must have at most ${limit} fields`)

const malformedForm = () =>
  invalidBody('The body must be fields joined by &, each value percent-encoded UTF-8 (a literal % is %25)')

const utf8 = new TextDecoder('utf-8', { fatal: true })

function parseJson(body: Buffer, fieldLimit: number, parse: (json: string) => unknown = JSON.parse): BodyFields {
  let text: string
  let value: unknown
  try {
    text = utf8.decode(body)
    value = parse(text)
  } catch {
    throw malformedJson()
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformedJson()
  markInvalidFields(value as BodyFields, text, fieldLimit)
  return value as BodyFields
}

const malformedJson = () => invalidBody('The body must be one JSON object in UTF-8')

/** A string (a name if a colon follows), a number, or a run of brackets that open or close objects and arrays. */
const JSON_TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|(-?\d[\d.eE+-]*)|[[{]+|[\]}]+/g

/**
 * Marks two errors that JSON.parse hides. The first error is a repeated name, for which JSON.parse returns the last
 * value: if a merchant's server builds JSON without escaping, a customer's name could replace the amount. The second
 * error is a number that JSON.parse rounds, such as 199.99999999999999999 to 200. Such a number becomes NaN, a value
 * that every field rejects. Only members of the outermost object are fields. `text` must be valid JSON. Throws a
 * Failure for too many fields.
 */
function markInvalidFields(fields: BodyFields, text: string, fieldLimit: number) {
  const seen = new Set<string>()
  let depth = 0
  let name = ''
  for (const [token, string, colon, number] of text.matchAll(JSON_TOKEN)) {
    if (number !== undefined) {
      if (depth === 1 && fields[name] !== REPEATED && !isExact(number)) fields[name] = Number.NaN
    } else if (string === undefined) {
      depth += token.startsWith('{') || token.startsWith('[') ? token.length : -token.length
    } else if (colon !== undefined && depth === 1) {
      // Calls JSON.parse only for the few names with escapes, because JSON.parse is slow.
      name = string.includes('\\') ? JSON.parse(string) : string.slice(1, -1)
      if (seen.has(name)) {
        fields[REPEATED] = true
        fields[name] = REPEATED
      }
      seen.add(name)
      if (seen.size > fieldLimit) throw tooManyFields(fieldLimit)
    }
  }
}

/**
 * Whether JSON.parse reads `source` without rounding. A double represents any 15 digits exactly, and no field needs
 * more digits.
 */
function isExact(source: string): boolean {
  const digits = source.replace(/e.*$/i, '').replace(/\D/g, '')
  // The lookbehind makes the time linear in the number of digits, whereas /0+$/ takes quadratic time.
  return digits.replace(/^0+|(?<!0)0+$/g, '').length <= 15
}

/**
 * Disables Fastify's JSON Schema compilers, which slow down startup. The compilers are not needed, because zod checks
 * bodies, and responses have no schema. Startup fails if a route has a JSON Schema.
 */
export const NO_JSON_SCHEMA = {
  compilersFactory: { buildValidator: rejectJsonSchema, buildSerializer: () => rejectJsonSchema },
}

function rejectJsonSchema(): never {
  throw new Error('A route has a JSON Schema')
}

/**
 * Returns a function that checks a parsed body. The function returns the output of `schema`, or throws a 400 that names
 * every invalid field. An empty or null field is treated as absent, except the field `notEmpty`.
 */
export function bodyCheck<Schema extends z.ZodObject>(schema: Schema, notEmpty?: string) {
  const names = Object.keys(schema.shape)
  return (body: BodyFields | null | undefined): z.output<Schema> => {
    const fields: BodyFields = {}
    for (const name of names) {
      const sent = body?.[name]
      const value = typeof sent === 'string' ? trimBlanks(sent) : sent
      fields[name] = name === notEmpty ? value : value === '' ? undefined : (value ?? undefined)
    }
    const result = schema.safeParse(fields)
    const isUnknownAndRepeated = ([name, value]: [string, unknown]) => value === REPEATED && !names.includes(name)
    const unknownRepeated = body != null && REPEATED in body && Object.entries(body).some(isUnknownAndRepeated)
    if (result.success && !unknownRepeated) return result.data
    throw badRequest(describeErrors(result.error?.issues ?? [], unknownRepeated))
  }
}

/**
 * Returns the first error in each field as text. The text contains nothing that the caller sent, only the names of the
 * schema's own fields.
 */
function describeErrors(issues: readonly z.core.$ZodIssue[], unknownRepeated: boolean): string {
  const errors = new Map<PropertyKey | undefined, string>()
  for (const { path, message } of issues) {
    if (!errors.has(path[0])) errors.set(path[0], `${String(path[0])} ${message}`)
  }
  return [...errors.values(), ...(unknownRepeated ? ['every field must be sent once'] : [])].join('; ')
}

/** Removes spaces at both ends. String.trim would also remove line breaks and tabs; /\p{Zs}+$/ takes quadratic time. */
const trimBlanks = (text: string) => text.replace(/^\p{Zs}+|(?<!\p{Zs})\p{Zs}+$/gu, '')
