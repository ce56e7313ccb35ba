import type { Failure } from '../errors.ts'

/** Every answer of the API is one of these two; only a success has `data`. */
export const ok = (msg: string, data: unknown) => ({ status: true, statusCode: 200, msg, data })
export const fail = ({ statusCode, message }: Failure) => ({ status: false, statusCode, msg: message })

/** The JSON text of `ok(msg, [])` before the first row and after the last row. */
export function aroundRows(msg: string): [begin: string, end: string] {
  const whole = JSON.stringify(ok(msg, []))
  const end = whole.lastIndexOf(']')
  return [whole.slice(0, end), whole.slice(end)]
}
