import * as z from 'zod'
import { readUrl } from './fields.ts'

/** Values of environment variables, by name. */
export type Variables = Readonly<Record<string, string | undefined>>

/**
 * Checks variables. Throws an Error for the operator. The message names every invalid or missing variable, but contains
 * no value.
 */
export function readVariables<S extends z.ZodType>(schema: S, values: Variables): z.output<S> {
  const { data, error } = schema.safeParse(values)
  if (error === undefined) return data as z.output<S>
  const errors = error.issues.map(({ path, message }) => {
    const name = String(path[0])
    return `${name} ${values[name] === undefined ? 'is required' : message}`
  })
  throw new Error(errors.join('; '))
}

/** Text that passes `test`. The error text contains the variable's name and `rule`, never the value. */
export const checked = (rule: string, test: (text: string) => boolean) => z.string().refine(test, rule)

export const wholeNumber = (min: number, max: number) =>
  checked(
    `must be a whole number from ${min} to ${max}`,
    (text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max,
  ).transform(Number)

export const listOf = (rule: string, test: (text: string) => boolean) => {
  const split = (list: string) => list.split(',').map((text) => text.trim())
  return checked(`${rule}, separated by commas`, (list) => split(list).every(test)).transform(split)
}

export const withoutTrailingSlash = (text: string) => text.replace(/\/+$/, '')

/** Base URL to which the service sends credentials: https, or http only to this machine. */
export const secureUrl = checked(
  'must be an https URL without query',
  (text) =>
    readUrl(text) !== undefined && /^(https:|http:\/\/(127\.0\.0\.1|localhost)[:/])/.test(text) && !/[?#]/.test(text),
).transform(withoutTrailingSlash)

/**
 * Returns the credentials of an acquirer; undefined if no credential is set. Throws if only some credentials are set,
 * because the service could then not create payments or not verify notifications.
 */
export function allOrNone<T extends Record<string, unknown>>(acquirer: string, credentials: T) {
  const missing = Object.keys(credentials).filter((name) => !credentials[name])
  if (missing.length === 0) return credentials as { [K in keyof T]: NonNullable<T[K]> }
  if (missing.length === Object.keys(credentials).length) return undefined
  throw new Error(`To accept payments through ${acquirer}, also set ${missing.join(' and ')}`)
}
