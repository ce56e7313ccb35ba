import * as z from 'zod'

type JsonSchema = { [keyword: string]: unknown; properties?: Record<string, JsonSchema>; anyOf?: JsonSchema[] }

/** JSON Schema of a JSON body, with an example for each field. The schema does not mention unknown fields. */
export function toJsonBodySchema(schema: z.ZodType, example: Record<string, unknown>): JsonSchema {
  const { properties = {}, ...rest } = withoutDialect(z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }))
  const filledIn = Object.entries(properties).map(([name, property]) => {
    // Postman and Insomnia read only the `example` of a field, neither `examples` nor the example of the body.
    return [name, name in example ? { ...property, example: example[name] } : property]
  })
  return { ...rest, properties: Object.fromEntries(filledIn) }
}

/** JSON Schema of a form body, in which every value is text. */
export function toFormSchema(schema: z.ZodType, example: Record<string, string>): JsonSchema {
  const { properties = {}, ...rest } = toJsonBodySchema(schema, example)
  const texts = Object.entries(properties).map(([name, { anyOf, ...property }]) => {
    return [name, { ...anyOf?.find(({ type }) => type === 'string'), ...property }]
  })
  return { ...rest, properties: Object.fromEntries(texts) }
}

const address = (name: string) => `#/components/schemas/${name}`

export const refTo = (name: string) => ({ $ref: address(name) })

/**
 * JSON Schemas of responses and of their parts, which refer to each other by name. Code generators use these names.
 */
export function toResponseSchemas(named: Record<string, z.ZodType>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { uri: address, io: 'output', target: 'draft-2020-12' })
  return Object.fromEntries(Object.entries(schemas).map(([name, { $id, ...schema }]) => [name, withoutDialect(schema)]))
}

/** Removes `$schema`: an OpenAPI 3.1 document has one dialect of JSON Schema for all its schemas. */
function withoutDialect({ $schema, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
  return schema as JsonSchema
}
