import { type Data, RecordData, TableData } from './data.ts'

/** Writes data as one JSON document in one line, row by row where it is too long for memory. */
export async function* writeJson(data: Data): AsyncGenerator<string> {
  yield* write(data)
  yield '\n'
}

async function* write(value: unknown): AsyncGenerator<string> {
  if (typeof value === 'function') yield* write(value())
  else if (value instanceof TableData) {
    let separator = '['
    for await (const row of value.rows) {
      yield separator + JSON.stringify(value.json(row))
      separator = ','
    }
    yield separator === '[' ? '[]' : ']'
  } else if (value instanceof RecordData) {
    let separator = '{'
    for (const [name, field] of Object.entries(value.fields)) {
      if (field === undefined) continue
      yield `${separator}${JSON.stringify(name)}:`
      yield* write(field)
      separator = ','
    }
    yield separator === '{' ? '{}' : '}'
  } else yield JSON.stringify(value)
}
