import type { Failure } from '../errors.ts'

/** Every answer of the API is one of these two; only a success has `data`. */
export type Success<T> = { status: true; statusCode: 200; msg: string; data: T }
export type Refusal = { status: false; statusCode: number; msg: string }

export function ok<T>(msg: string, data: T): Success<T> {
  return { status: true, statusCode: 200, msg, data }
}

export function fail({ statusCode, message }: Failure): Refusal {
  return { status: false, statusCode, msg: message }
}

/** The JSON text of `ok(msg, rows)`, of rows that are JSON already. */
export function okRows(msg: string, rows: readonly string[]): string {
  const [begin, end] = aroundRows(msg)
  return begin + rows.join(',') + end
}

/**
 * Yields the text of `okRows` in pieces, for a list that is too long for the memory. An error of `batches` leaves the
 * text unfinished, so that nobody takes part of a list for all of it.
 */
export async function* okBatches(msg: string, batches: AsyncIterable<string[]>): AsyncGenerator<string> {
  const [begin, end] = aroundRows(msg)
  let separator = begin
  for await (const batch of batches) {
    if (batch.length === 0) continue
    yield separator + batch.join(',')
    separator = ','
  }
  yield separator === begin ? begin + end : end
}

function aroundRows(msg: string): [begin: string, end: string] {
  const whole = JSON.stringify(ok(msg, []))
  const end = whole.lastIndexOf(']')
  return [whole.slice(0, end), whole.slice(end)]
}
