import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import type { BankRequest } from './fake-bank.ts'

/** Of a header that must not be sent. */
export const NEVER = { not: {} }

/** What an acquirer documents of each request: its headers and its body. No body means that none may be sent. */
export type RequestSchemas<Call extends string> = Record<Call, { headers: Record<string, object>; body?: object }>

// Without a precision 588.82 is no multiple of 0.01.
const ajv = new Ajv({ allErrors: true, strict: false, multipleOfPrecision: 6 })
addFormats.default(ajv)

/** Returns what tells how a request departs from `schemas`; it returns undefined when the request does not. */
export function departureFrom<Call extends string>(schemas: RequestSchemas<Call>) {
  const checks = new Map(
    Object.entries<RequestSchemas<Call>[Call]>(schemas).map(([call, { headers, body }]) => [
      call,
      ajv.compile({
        type: 'object',
        required: body ? ['body'] : [],
        properties: {
          headers: {
            type: 'object',
            required: Object.keys(headers).filter((name) => headers[name] !== NEVER),
            properties: headers,
          },
          // An acquirer ignores a field that it does not know: one would be a misspelt one of ours.
          body: body ? { type: 'object', additionalProperties: false, ...body } : false,
        },
      }),
    ]),
  )
  return ({ call, headers, body }: BankRequest<Call>): string | undefined => {
    const isRight = checks.get(call)
    if (isRight === undefined || isRight({ headers, ...(body !== undefined && { body }) })) return undefined
    return ajv.errorsText(isRight.errors, { dataVar: 'request' })
  }
}
