import * as z from 'zod'

type JsonSchema = { [keyword: string]: unknown; properties?: Record<string, JsonSchema>; anyOf?: JsonSchema[] }

/**
 * Returns the JSON Schema for a JSON body, with an example for each field. The schema does not mention unknown fields.
 */
export function toJsonBodySchema(schema: z.ZodType, example: Record<string, unknown>): JsonSchema {
  const { properties = {}, ...rest } = withoutDialect(z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }))
  const filledIn = Object.entries(properties).map(([name, property]) => {
    // Sets `example` on each field, because Postman and Insomnia read neither `examples` nor the example of the body.
    return [name, name in example ? { ...property, example: example[name] } : property]
  })
  return { ...rest, properties: Object.fromEntries(filledIn) }
}

/** Returns the JSON Schema for a form body, in which every value is text. */
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
 * Returns the JSON Schemas for responses and for their parts, which refer to each other by name. Code generators use
 * these names.
 */
export function toResponseSchemas(named: Record<string, z.ZodType>): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { uri: address, io: 'output', target: 'draft-2020-12' })
  return Object.fromEntries(Object.entries(schemas).map(([name, { $id, ...schema }]) => [name, withoutDialect(schema)]))
}

/** Removes `$schema`, because an OpenAPI 3.1 document declares one JSON Schema dialect for all its schemas. */
function withoutDialect({ $schema, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
  return schema as JsonSchema
}
