import { type Data, RecordData, TableData } from '../commands/result.ts'

/** Writes data as a JSON document on one line, row by row, because the document may be too long for memory. */
export async function* writeJson(data: Data): AsyncGenerator<string> {
  yield* write(data)
  yield '\n'
}

async function* write(value: unknown): AsyncGenerator<string> {
  if (typeof value === 'function') yield* write(value())
  else if (value instanceof TableData) yield* writeList(value.rows, (row) => value.json(row as object))
  else if (value instanceof RecordData) {
    let separator = '{'
    for (const [name, field] of Object.entries(value.fields)) {
      if (field === undefined) continue
      yield `${separator}${JSON.stringify(name)}:`
      yield* write(field)
      separator = ','
    }
    yield separator === '{' ? '{}' : '}'
  } else if (value && typeof value === 'object' && Symbol.asyncIterator in value) {
    yield* writeList(value as AsyncIterable<unknown>, (item) => item)
  } else yield JSON.stringify(value)
}

async function* writeList(items: Iterable<unknown> | AsyncIterable<unknown>, toValue: (item: unknown) => unknown) {
  let separator = '['
  for await (const item of items) {
    for await (const chunk of write(toValue(item))) {
      yield separator + chunk
      separator = ''
    }
    separator = ','
  }
  yield separator === '[' ? '[]' : ']'
}
