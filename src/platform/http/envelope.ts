import type { Failure } from '../../errors.ts'

/** The envelope of every JSON response: `ok` for a success, `fail` for an error. Only a success has `data`. */
export const ok = (msg: string, data: unknown) => ({ status: true, statusCode: 200, msg, data })
export const fail = ({ statusCode, message }: Pick<Failure, 'statusCode' | 'message'>) => ({
  status: false,
  statusCode,
  msg: message,
})

/** The envelope's JSON text before the first row and after the last row of a list, for lists that are streamed. */
export function aroundRows(msg: string): [begin: string, end: string] {
  const whole = JSON.stringify(ok(msg, []))
  const end = whole.lastIndexOf(']')
  return [whole.slice(0, end), whole.slice(end)]
}
