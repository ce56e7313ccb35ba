import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import type { BankRequest } from './fake-bank.ts'

/** Schema of a header that must not be sent. */
export const NEVER = { not: {} }

/** An acquirer's documented headers and body of each request. No body means that none may be sent. */
export type RequestSchemas<Call extends string> = Record<Call, { headers: Record<string, object>; body?: object }>

// Without a precision, 588.82 is not a multiple of 0.01.
const ajv = new Ajv({ allErrors: true, strict: false, multipleOfPrecision: 6 })
addFormats.default(ajv)

/**
 * Returns a function that describes how a request violates `schemas`; it returns undefined if the request is valid.
 */
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
          // Acquirers ignore unknown fields, so an additional field is a misspelt one.
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
