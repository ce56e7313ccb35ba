import type { Failure } from '../errors.ts'

/** What every answer of the API is wrapped in: contract A1. */
export type Success<T> = { status: true; statusCode: 200; msg: string; data: T }
export type Refusal = { status: false; statusCode: number; msg: string }

export function ok<T>(msg: string, data: T): Success<T> {
  return { status: true, statusCode: 200, msg, data }
}

/**
 * The answer of checkPaymentStatus, contract C2: its `status` says whether `txnStatus` is final, which is what public
 * clients of the interface read it for.
 */
export function txn<T>(txnStatus: string, msg: string, final?: { data: T }) {
  return final
    ? { status: true, statusCode: 200, txnStatus, msg, data: final.data }
    : { status: false, statusCode: 200, txnStatus, msg }
}

export function fail({ statusCode, message }: Failure): Refusal {
  return { status: false, statusCode, msg: message }
}

/**
 * The text of `ok(msg, [...])` in pieces, for a list that is too long to hold: the very envelope, opened inside its
 * empty array. An error of `batches` ends the text unfinished, so that no half list can be mistaken for a whole one.
 */
export async function* okText<T>(msg: string, batches: AsyncIterable<T[]>): AsyncGenerator<string> {
  const whole = JSON.stringify(ok(msg, []))
  const end = whole.lastIndexOf(']')
  yield whole.slice(0, end)
  let separator = ''
  for await (const batch of batches) {
    if (batch.length === 0) continue
    yield separator + JSON.stringify(batch).slice(1, -1)
    separator = ','
  }
  yield whole.slice(end)
}
