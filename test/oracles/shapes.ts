import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import ts from 'typescript'
import { type Json, type Path, pathsIn } from '../support/json-changes.ts'

/**
 * A field of a request or a response. `values` are those of an enum; an open field may have any content. The name of a
 * field in an array has no index.
 */
type Field = { isRequired: boolean; type?: string; values?: string[]; isOpen?: boolean }
export type Fields = ReadonlyMap<string, Field>

export const nameOf = (path: Path) => path.filter((step) => !/^\d+$/.test(String(step))).join('.')
export const parentOf = (name: string) => name.split('.').slice(0, -1).join('.')

/** Fields of text such as `id! status=active/closed reason.code`, with `!` for a required field. */
export const fieldsIn = (text: string): Fields =>
  new Map(
    text.split(' ').map((word) => {
      const [name = '', values] = word.split('=')
      const field = { isRequired: name.endsWith('!'), ...(values && { values: values.split('/') }) }
      return [name.replace('!', ''), field]
    }),
  )

/** Returns a function that reads the fields of a type, such as `Orders.RazorpayOrder`, from the declarations in `folder`. */
export function readTypes(folder: string): (type: string) => Fields {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.d.ts') && !file.startsWith('esm'))
    .map((file) => join(folder, file))
  const program = ts.createProgram(files, { strict: true, lib: ['lib.es2022.d.ts'], types: [] })
  const checker = program.getTypeChecker()
  const declared = new Map<string, ts.Type>()
  for (const file of files) addDeclared(program.getSourceFile(file), '')
  return (name) => {
    const type = declared.get(name)
    if (type === undefined) throw new Error(`${folder} declares no ${name}`)
    const fields = new Map<string, Field>()
    add(type, '', true)
    return fields

    function add(nullable: ts.Type, at: string, isSure: boolean): void {
      const type = checker.getNonNullableType(nullable)
      const field = fields.get(at)
      if (at.split('.').length > 6) return
      const values = (type.isUnion() ? type.types : [type]).map(textOf).filter((one) => one !== undefined)
      if (field && values.length > 0) field.values = values
      else if (field && checker.isTypeAssignableTo(type, checker.getStringType())) field.type = 'string'
      else if (field && checker.isTypeAssignableTo(type, checker.getNumberType())) field.type = 'number'
      else if (field && checker.isTypeAssignableTo(type, checker.getBooleanType())) field.type = 'boolean'
      else if (checker.isArrayType(type))
        add(checker.getTypeArguments(type as ts.TypeReference)[0] as never, at, isSure)
      else if (type.isUnion()) {
        for (const one of type.types) if (one.flags & ts.TypeFlags.Object) add(one, at, false)
      } else if (type.flags & ts.TypeFlags.Object) addFields(type, at, isSure)
      else if (field) field.isOpen = true
    }

    function addFields(type: ts.Type, at: string, isSure: boolean): void {
      const named = checker.getPropertiesOfType(type).filter(isField)
      const field = fields.get(at)
      if (field && named.length === 0) field.isOpen = true
      for (const one of named) {
        const name = [at, one.name].filter((part) => part !== '').join('.')
        fields.set(name, { isRequired: isSure && !(one.flags & ts.SymbolFlags.Optional) })
        add(checker.getTypeOfSymbol(one), name, true)
      }
    }
  }

  function addDeclared(node: ts.SourceFile | ts.ModuleBlock | undefined, within: string): void {
    for (const one of node?.statements ?? []) {
      const { name } = one as ts.DeclarationStatement
      if (ts.isModuleDeclaration(one)) addDeclared(one.body as ts.ModuleBlock, `${one.name.text}.`)
      else if (name && (ts.isInterfaceDeclaration(one) || ts.isClassDeclaration(one) || ts.isTypeAliasDeclaration(one)))
        declared.set(`${within}${name.text}`, checker.getTypeAtLocation(one))
    }
  }
}

/** A numbered member of an enum is sent by its name. */
const textOf = (type: ts.Type) =>
  type.isStringLiteral() ? type.value : type.flags & ts.TypeFlags.EnumLiteral ? type.symbol.name : undefined

const isField = ({ flags, valueDeclaration }: ts.Symbol) =>
  flags & ts.SymbolFlags.Property &&
  !(valueDeclaration && ts.getCombinedModifierFlags(valueDeclaration as ts.Declaration) & ts.ModifierFlags.Private)

/** Names of the fields in which `body` differs from `fields`: unknown ones, missing ones, and those of unknown values. */
export function departures(fields: Fields, body: Json): string[] {
  const paths = pathsIn(body)
  const names = new Set(paths.map(nameOf))
  const isOpen = (name: string): boolean => name !== '' && (fields.get(name)?.isOpen || isOpen(parentOf(name)))
  const added = [...names].filter((name) => !fields.has(name) && !isOpen(parentOf(name)))
  const isThere = (name: string) => name === '' || [...names].some((other) => parentOf(other) === name)
  const missing = [...fields].flatMap(([name, { isRequired }]) =>
    isRequired && !names.has(name) && isThere(parentOf(name)) ? [name] : [],
  )
  const unknown = paths.flatMap((path) => {
    const { type, values } = fields.get(nameOf(path)) ?? {}
    const value = valueAt(body, path)
    const isOther = type !== undefined && value !== null && typeof value !== type
    return isOther || (values && typeof value === 'string' && !values.includes(value)) ? [nameOf(path)] : []
  })
  return [...new Set([...added.filter((name) => !added.includes(parentOf(name))), ...missing, ...unknown])]
}

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

export const valueAt = (body: Json, path: Path): Json | undefined =>
  path.reduce<Json | undefined>((at, step) => (at as { [name: string]: Json } | undefined)?.[step], body)

/** Names of the smallest parts in which two values differ. */
export function differences(one: unknown, other: unknown, at = ''): string[] {
  if (isDeepStrictEqual(one, other)) return []
  if (!isObject(one) || !isObject(other)) return [at]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  const fieldOf = (object: object, name: string) => (object as Record<string, unknown>)[name]
  return [...names].flatMap((name) =>
    differences(fieldOf(one, name), fieldOf(other, name), at === '' ? name : `${at}.${name}`),
  )
}
