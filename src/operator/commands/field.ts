import * as z from 'zod'
import type { Queryable } from '../../platform/db/pool.ts'

/** What an operator has given for a flag or an input: its text, its texts if it is repeatable, or true for a switch. */
type Given = string | readonly string[] | true

/** Given values by flag, such as `{ 'order-id': '019a…' }`. */
export type Values = Readonly<Record<string, Given | undefined>>

/** A flag of the command line and an input of a form. */
export type Field<T = unknown> = {
  schema: z.ZodType<T>
  /** The value in the usage, such as `RUPEES`; undefined for a switch. */
  placeholder?: string
  label: string
  /** Completes the label, such as `in rupees`. */
  hint: string
  example?: string
  isRepeatable?: true
  /** The switch selects an output format, which excludes --json and --csv. */
  isFormat?: true
  /** The field names a record: the column that has its identifiers, and the command that shows one. */
  record?: { column?: string; page?: string } | undefined
  /** Returns the values that a form offers, with a text beside each. */
  choices?: (db: Queryable, now: Date) => Promise<readonly { value: string; text?: string }[]>
  /** Returns the text with which a form begins, from the record that a change is about. */
  prefill?: (record: RecordFields, now: Date) => string | undefined
}

/** The fields of a record, as a table or page shows them. */
export type RecordFields = Readonly<Record<string, unknown>>

/** Groups of fields, of which an operator gives one. `check` returns an error about the values of the given group. */
export type Choice<T = unknown> = { groups: readonly Group[]; check?: ((input: T) => string | undefined) | undefined }

type Group = Readonly<Record<string, Field>>

/** The fields of a command by key. The key `file` is the word after the command's name; `orderId` is `--order-id`. */
// biome-ignore lint/suspicious/noExplicitAny: the type of a check's argument differs by choice.
export type CommandFields = Readonly<Record<string, Field | Choice<any>>>

/** The type of the checked values of fields. A choice has the keys of all its groups. */
export type InputOf<F> = F extends object
  ? { [K in keyof F]: F[K] extends Field<infer T> ? T : F[K] extends Choice<infer T> ? T : never }
  : never
type KeysOf<U> = U extends unknown ? keyof U : never
type Exclusive<U, K extends PropertyKey = KeysOf<U>> = U extends unknown
  ? U & { [P in Exclude<K, keyof U>]?: undefined }
  : never

export function flag<T>(schema: z.ZodType<T>, placeholder: string, label: string, hint = ''): Field<T> {
  return { schema, placeholder, label, hint }
}

/** Adds fixed values that a form offers. */
export const offering = <F extends Field>(field: F, values: readonly string[]): F => ({
  ...field,
  choices: async () => values.map((value) => ({ value })),
})

/** A flag without a value. */
export const toggle = (label: string, hint = ''): Field<true> => ({ schema: z.literal(true), label, hint })

export const optional = <T>(field: Field<T>): Field<T | undefined> => ({ ...field, schema: field.schema.optional() })

/** A flag that may be given several times. */
export const list = <T>(schema: z.ZodType<T>, placeholder: string, label: string, hint = ''): Field<T> => ({
  ...flag(schema, placeholder, label, hint),
  isRepeatable: true,
})

/** Fields of which the operator gives those of exactly one group. A group without required fields may be empty. */
export const oneOf = <const G extends readonly Group[]>(
  groups: G,
  check?: (input: Exclusive<InputOf<G[number]>>) => string | undefined,
): Choice<Exclusive<InputOf<G[number]>>> => ({ groups, check })

export const isChoice = (field: Field | Choice): field is Choice => 'groups' in field

export const isRequired = ({ schema }: Field) => !schema.safeParse(undefined).success

export const flagOf = (key: string) => key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)

/** Returns the fields of a command by key, those of its choices included. */
export const fieldsByKey = (fields: CommandFields): Record<string, Field> =>
  Object.assign({}, ...Object.entries(fields).flatMap(([key, one]) => (isChoice(one) ? one.groups : { [key]: one })))

/** Returns the fields of a command by flag, those of its choices included. */
export const flagsIn = (fields: CommandFields): Record<string, Field> =>
  Object.fromEntries(Object.entries(fieldsByKey(fields)).map(([key, one]) => [flagOf(key), one]))

/** Formats the name of a flag; the file is no flag. */
export const nameOf = (flag: string) => (flag === 'file' ? 'FILE' : `--${flag}`)

/** Returns the checked values, and the errors in the given ones. */
export function parse(fields: CommandFields, values: Values): { input: Record<string, unknown>; errors: string[] } {
  const input: Record<string, unknown> = {}
  const errors: string[] = []
  for (const [key, field] of Object.entries(fields)) {
    if (isChoice(field)) {
      const group = groupOf(field, values)
      const chosen = group && parse(group, values)
      input[key] = chosen?.input
      if (chosen === undefined) errors.push(choiceError(field, values))
      else if (chosen.errors.length > 0) errors.push(...chosen.errors)
      else errors.push(...[field.check?.(chosen.input) ?? []].flat())
    } else {
      const parsed = field.schema.safeParse(values[flagOf(key)])
      input[key] = parsed.data
      errors.push(...(parsed.error?.issues ?? []).map(({ message }) => `${nameOf(flagOf(key))} ${message}`))
    }
  }
  return { input, errors }
}

const isGivenIn = (values: Values) => (key: string) => values[flagOf(key)] !== undefined

/** Returns the group to which all given values belong and that lacks none; undefined if there is none. */
function groupOf({ groups }: Choice, values: Values): Group | undefined {
  const isGiven = isGivenIn(values)
  const given = groups.flatMap(Object.keys).filter(isGiven)
  return groups.find((group) => given.every((key) => key in group) && requiredOf(group).every(isGiven))
}

/** Returns the groups of a choice that contain `flag`, or all of them if none does. */
export const groupsWith = ({ groups }: Choice, flag: string | undefined): readonly Group[] => {
  const found = groups.filter((group) => Object.keys(group).some((key) => flagOf(key) === flag))
  return found.length > 0 ? found : groups
}

const requiredOf = (group: Group) => Object.keys(group).filter((key) => isRequired(group[key] as Field))
/** Returns the names of the flags of fields. */
export const namesOf = (keys: readonly string[]) => keys.map((key) => nameOf(flagOf(key)))
const listOf = (keys: readonly string[]) => namesOf(keys).join(' and ')

/** Returns the error of a choice, such as `give either --delivery, or --mid and --since`. */
function choiceError({ groups }: Choice, values: Values): string {
  const isGiven = isGivenIn(values)
  const complete = groups.find((group) => requiredOf(group).length > 0 && requiredOf(group).every(isGiven))
  const others = [...new Set(groups.flatMap(Object.keys))].filter((key) => isGiven(key) && !(key in (complete ?? {})))
  if (complete && !groups.flatMap(requiredOf).some((key) => others.includes(key)))
    return `${listOf(others)} cannot be combined with ${listOf(requiredOf(complete))}`
  const texts = groups
    .map((group) => listOf(requiredOf(group).length > 0 ? requiredOf(group) : Object.keys(group)))
    .filter((text) => text !== '')
  const isLong = texts.some((text) => text.includes(' and '))
  const [before, last] = [texts.slice(0, -1).join(', '), texts.at(-1)]
  if (texts.length < 3) return `give either ${before}${isLong ? ',' : ''} or ${last}`
  return `give one of ${before}${isLong ? ', or' : ' and'} ${last}`
}

/** Returns the usage of fields in parts that stay in one line, such as `(--delivery ID`, `|` and `--mid MID`. */
export function usageOf(fields: CommandFields): string[] {
  return Object.entries(fields).flatMap(([key, field]) => {
    if (!isChoice(field)) return [fieldUsage(key, field)]
    const groups = field.groups.filter((group) => Object.keys(group).length > 0)
    const isOptional = groupOf(field, {}) !== undefined
    const parts = groups.flatMap((group, index) => [...(index > 0 ? ['|'] : []), ...usageOf(group)])
    const [open, close] = isOptional ? ['[', ']'] : ['(', ')']
    return parts.map((part, index) => `${index === 0 ? open : ''}${part}${index === parts.length - 1 ? close : ''}`)
  })
}

function fieldUsage(key: string, field: Field): string {
  const { placeholder, isRepeatable } = field
  const name = nameOf(flagOf(key))
  const text = key === 'file' ? (placeholder ?? name) : [name, placeholder].filter(Boolean).join(' ')
  const more = isRepeatable ? ' …' : ''
  return isRequired(field) ? `${text}${more}` : `[${text}${more}]`
}

/** Formats what a form shows beside a label, such as `IST, such as 2026-11-01`. */
export const hintOf = ({ hint, example }: Field) =>
  [hint, example && `such as ${example}`].filter((part) => part).join(', ')
