import * as z from 'zod'

export type JsonSchema = { [keyword: string]: unknown; properties?: Record<string, JsonSchema>; anyOf?: JsonSchema[] }

/**
 * What `schema` takes, of JSON: the unknown fields that it ignores are not spoken of. `example` is what a reader finds
 * filled in.
 */
export function toJsonBodySchema(schema: z.ZodType, example: Record<string, unknown>): JsonSchema {
  const { properties = {}, ...rest } = withoutDialect(z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }))
  const filledIn = Object.entries(properties).map(([name, property]) => {
    // Not `examples`, nor one for the whole body alone: Postman and Insomnia look for this word, field by field.
    return [name, name in example ? { ...property, example: example[name] } : property]
  })
  return { ...rest, properties: Object.fromEntries(filledIn) }
}

/** What `schema` takes, of a form, in which every value is text. */
export function toFormSchema(schema: z.ZodType, example: Record<string, string>): JsonSchema {
  const { properties = {}, ...rest } = toJsonBodySchema(schema, example)
  const texts = Object.entries(properties).map(([name, { anyOf, ...property }]) => {
    return [name, { ...anyOf?.find(({ type }) => type === 'string'), ...property }]
  })
  return { ...rest, properties: Object.fromEntries(texts) }
}

const address = (name: string) => `#/components/schemas/${name}`

export const refTo = (name: string) => ({ $ref: address(name) })

/** What answers look like, by the names that code generated from the document gives their types; they refer to one another. */
export function toAnswerSchemas(named: Record<string, z.ZodType>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { uri: address, io: 'output', target: 'draft-2020-12' })
  return Object.fromEntries(Object.entries(schemas).map(([name, { $id, ...schema }]) => [name, withoutDialect(schema)]))
}

/** OpenAPI 3.1 has a dialect of its own, of which a schema inside a document says nothing. */
function withoutDialect({ $schema, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
  return schema as JsonSchema
}
