import type { FastifyInstance } from 'fastify'
import { FORM, form } from './requests.ts'
import { basic, type Key } from './tenants.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test asserts what a body is, it cannot know
type Json = any

export type HttpResponse = { status: number; headers: Record<string, unknown>; body: Json; text: string }

/** POSTs a form, or any other `body`, with the credentials of `key` to a service in this process. */
export async function post(
  app: FastifyInstance,
  url: string,
  body: Record<string, string> | string | Buffer | undefined,
  key?: Key,
  headers: Record<string, string> = {},
): Promise<HttpResponse> {
  const payload = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : form(body)
  const response = await app.inject({
    method: 'POST',
    url,
    headers: {
      ...(payload !== undefined && { 'content-type': FORM }),
      ...(key && { authorization: basic(key) }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  })
  return responseOf(response)
}

export function postJson(app: FastifyInstance, url: string, body: unknown, key: Key): Promise<HttpResponse> {
  return post(app, url, JSON.stringify(body), key, { 'content-type': 'application/json' })
}

export function responseOf(response: {
  statusCode: number
  headers: Record<string, unknown>
  payload: string
}): HttpResponse {
  const text = response.payload
  const isJson = String(response.headers['content-type'] ?? '').startsWith('application/json')
  return { status: response.statusCode, headers: response.headers, body: isJson ? JSON.parse(text) : undefined, text }
}
