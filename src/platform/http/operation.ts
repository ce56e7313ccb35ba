import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import * as z from 'zod'
import type { Failure } from '../../errors.ts'
import type { Right } from '../rights.ts'
import { ok } from './envelope.ts'
import { bodyCheck } from './input.ts'

/** The response of a successful operation. `Result` is the type that the operation's handler returns. */
export type Response<Result> = {
  description: string
  type: string
  /** Examples of the response in other content types. */
  also?: Record<string, string>
  /**
   * The schema of a JSON response. The schema is strict: tests fail if a response contains a field that the schema does
   * not contain.
   */
  schema?: z.ZodType
  /** An example of the body. {PUBLIC_URL} stands for the address of the service. */
  example?: unknown
  /**
   * The schema and parts of the schema, by name. Code generated from the OpenAPI document uses these names for its
   * types.
   */
  named?: Record<string, z.ZodType>
  /** Response headers of this operation, in addition to the headers of every response. */
  headers?: readonly string[]
  /** Whether the response has an ETag, so that a caller with a current copy gets 304. */
  isCacheable?: true
  toBody: (result: Result) => unknown
}

/**
 * `name` is the schema's name in the OpenAPI document, `example` a form body; `jsonExample` is set if the example of a
 * JSON body differs.
 */
type Body<Schema extends z.ZodObject> = {
  name: string
  schema: Schema
  /**
   * The schema for one request, if it depends on the caller's settings; the output has the same type as the output of
   * `schema`. The OpenAPI document contains only `schema` and describes the other schemas in words.
   */
  schemaFor?: (request: FastifyRequest) => z.ZodObject
  /** Name of an optional field that must not be empty; all other empty fields are treated as absent. */
  notEmpty?: keyof z.output<Schema> & string
  example: Record<string, string>
  jsonExample?: Record<string, unknown>
}

export type OperationRequest<Schema extends z.ZodObject = z.ZodObject> = FastifyRequest<{
  Body: z.output<Schema>
  Params: Record<string, string>
  Querystring: Record<string, unknown>
}>

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Described['access']
  }
}

export type Described = {
  name: string
  /** POST for an operation with a body, otherwise GET. */
  method: 'GET' | 'POST'
  /** The path under PUBLIC_URL; `:name` is a path parameter. */
  path: string
  tag: 'Merchant' | 'Partner' | 'Acquirer' | 'Customer' | 'Operator'
  summary: string
  description: string
  /** Who may call the operation: the holder of a key with this right, a sender with a signing secret, or everyone. */
  access: Right | 'signature' | 'anyone'
  /** Request headers of this operation, in addition to the headers that every operation reads. */
  headers: readonly { name: string; description: string; pattern: RegExp; example: string }[]
  body: Body<z.ZodObject> | undefined
  response: Omit<Response<never>, 'toBody'>
  /** Errors of this operation, in addition to the errors that its `access` implies. */
  errors: readonly Failure[]
}

/** A webhook that the service sends. */
export type DescribedWebhook = {
  /** The type of the event, such as `payment.succeeded`. */
  type: string
  description: string
  /** The schema of the body. The schema is strict: tests fail if an event contains another field. */
  schema: z.ZodType
  example: object
}

export type Operation<Dependencies> = Described & {
  register: (app: FastifyInstance, dependencies: Dependencies) => void
}

type Definition<Schema extends z.ZodObject, Result, Dependencies> = Pick<
  Described,
  'path' | 'tag' | 'summary' | 'description' | 'access' | 'errors'
> &
  Partial<Pick<Described, 'name' | 'headers'>> & {
    body?: Body<Schema>
    response: Response<Result>
    route?: RouteShorthandOptions
    /**
     * Called once at startup. Returns the request handler. The handler returns the result, or returns the reply if the
     * handler has already sent the response. The handler throws a Failure to reject the request.
     */
    handle: (
      dependencies: Dependencies,
    ) => (request: OperationRequest<Schema>, reply: FastifyReply) => Promise<NoInfer<Result> | FastifyReply>
  }

/**
 * One operation of the service: its route and its part of the OpenAPI document. By default, the operation's name is the
 * last part of its path.
 */
export function operation<Schema extends z.ZodObject, Result, Dependencies>(
  definition: Definition<Schema, Result, Dependencies>,
): Operation<Dependencies> {
  const { path, body, response, route, handle, ...described } = definition
  const method = body ? 'POST' : 'GET'
  return {
    name: path.slice(path.lastIndexOf('/') + 1),
    headers: [],
    ...described,
    method,
    path,
    body,
    response,
    register(app, dependencies) {
      const handleRequest = handle(dependencies)
      app.route<{ Body: z.output<Schema>; Params: Record<string, string> }>({
        ...route,
        config: { ...route?.config, access: described.access },
        method,
        url: path,
        async handler(request, reply) {
          if (body) {
            const check = bodyCheck(body.schemaFor?.(request) ?? body.schema, body.notEmpty)
            request.body = check(request.body as Record<string, unknown>) as z.output<Schema>
          }
          const result = await handleRequest(request as OperationRequest<Schema>, reply)
          return result === reply ? reply : response.toBody(result as Result)
        },
      })
    },
  }
}

export const SUCCEEDED = z.literal(200).meta({ type: 'integer' })

/** A successful response in the JSON envelope, for which the handler returns only `data`. */
export function success<Data extends z.ZodType>(
  msg: string,
  { description, name, dataName, data, example }: SuccessText<Data>,
): Response<z.output<Data>> {
  const schema = z.strictObject({ status: z.literal(true), statusCode: SUCCEEDED, msg: z.literal(msg), data })
  const named = { [name]: schema, ...(dataName && { [dataName]: data }) }
  const toBody = (result: z.output<Data>) => ok(msg, result)
  return { type: 'application/json', description, named, schema, example: ok(msg, example), toBody }
}

type SuccessText<Data extends z.ZodType> = {
  description: string
  /**
   * Names in the OpenAPI document: `name` for the schema of the whole response, `dataName` for the schema of its
   * `data`.
   */
  name: string
  dataName?: string
  data: Data
  example: z.output<Data>
}

/** A JSON response whose whole body the handler returns. */
export function jsonResponse<Schema extends z.ZodType>(
  response: Pick<Response<never>, 'description' | 'named' | 'headers'> & { schema: Schema; example: z.output<Schema> },
): Response<z.output<Schema>> {
  return { ...response, type: 'application/json', toBody: (body) => body }
}
