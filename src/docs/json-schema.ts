import * as z from 'zod'

type JsonSchema = {
  [keyword: string]: unknown
  $ref?: string
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

/**
 * Returns the JSON Schema for a JSON body, with an example for each field. The schema does not mention unknown fields.
 */
export function toJsonBodySchema(schema: z.ZodType, example: Record<string, unknown>): JsonSchema {
  const body = withoutDialect(z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' }))
  addExamples(body, example, {})
  return body
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

/** A JSON message: the schema of its whole body and of its parts by name, and an example of the body. */
type Message = { named?: Record<string, z.ZodType>; schema?: z.ZodType; example?: unknown }

/** Returns the name of the schema of the whole body; undefined for a body that is not JSON. */
export const schemaNameOf = ({ named = {}, schema }: Message): string | undefined =>
  Object.keys(named).find((name) => named[name] === schema)

/**
 * Returns the JSON Schemas for messages and for their parts, which refer to each other by name, with an example for
 * each field. Code generators use these names.
 */
export function toMessageSchemas(messages: readonly Message[]): Record<string, JsonSchema> {
  const registry = z.registry<{ id: string }>()
  const named = Object.assign({}, ...messages.map(({ named }) => named)) as Record<string, z.ZodType>
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  const generated = z.toJSONSchema(registry, { uri: address, io: 'output', target: 'draft-2020-12' }).schemas
  const schemas = Object.fromEntries(
    Object.entries(generated).map(([name, { $id, ...schema }]) => [name, withoutDialect(schema)]),
  )
  for (const message of messages) {
    const name = schemaNameOf(message)
    if (name !== undefined) addExamples(refTo(name), message.example, schemas)
  }
  return schemas
}

/**
 * Sets `example` on each field of `schema`, because Postman and Insomnia read neither `examples` nor the example of the
 * whole body, and show the pattern of a field without an example. A field with a fixed set of values needs none.
 */
function addExamples(schema: JsonSchema, example: unknown, named: Readonly<Record<string, JsonSchema>>): void {
  const name = schema.$ref?.slice(address('').length) ?? ''
  const { anyOf = [], items, properties = {} } = named[name] ?? schema
  for (const alternative of anyOf) addExamples(alternative, example, named)
  if (items !== undefined && Array.isArray(example)) addExamples(items, example[0], named)
  for (const [name, property] of Object.entries(properties)) {
    const value = (example as Record<string, unknown>)[name]
    if (value === undefined) continue
    addExamples(property, value, named)
    if (typeof value !== 'object' && !('const' in property || 'enum' in property)) property.example = value
  }
}

/** Removes `$schema`, because an OpenAPI 3.1 document declares one JSON Schema dialect for all its schemas. */
function withoutDialect({ $schema, ...schema }: z.core.JSONSchema.BaseSchema): JsonSchema {
  return schema as JsonSchema
}
