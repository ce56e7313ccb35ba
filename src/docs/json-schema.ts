import * as z from 'zod'

export type JsonSchema = { [keyword: string]: unknown; properties?: Record<string, JsonSchema>; anyOf?: JsonSchema[] }

/** What `schema` takes, of JSON: the unknown fields that it ignores are not spoken of. */
export function toJsonBodySchema(schema: z.ZodType): JsonSchema {
  return withoutDialect(z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }))
}

/** What `schema` takes, of a form, in which every value is text. */
export function toFormSchema(schema: z.ZodType): JsonSchema {
  const { properties = {}, ...rest } = toJsonBodySchema(schema)
  return { ...rest, properties: Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, asText(of)])) }
}

/** What an answer that `schema` describes looks like. */
export function toAnswerSchema(schema: z.ZodType): JsonSchema {
  return withoutDialect(z.toJSONSchema(schema, { io: 'output', target: 'draft-2020-12' }))
}

function asText(property: JsonSchema): JsonSchema {
  const { anyOf, ...rest } = property
  return { ...anyOf?.find(({ type }) => type === 'string'), ...rest }
}

/** OpenAPI 3.1 has a dialect of its own, of which a schema inside a document says nothing. */
function withoutDialect({ $schema, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
  return schema as JsonSchema
}
