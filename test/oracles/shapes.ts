import { readdirSync, readFileSync } from 'node:fs'
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

/** Returns a function that reads the fields of a type from the declarations in `folder`. */
export function readTypes(folder: string): (type: string) => Fields {
  const declared = new Map<string, ts.Node>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts') || file.startsWith('esm')) continue
    const source = ts.createSourceFile(file, readFileSync(join(folder, file), 'utf8'), ts.ScriptTarget.Latest, true)
    for (const one of source.statements) {
      // An enum of Cashfree is an object and a type of the same name; the object has the values.
      if (ts.isVariableStatement(one))
        for (const variable of one.declarationList.declarations) declared.set(variable.name.getText(), variable)
      const { name } = one as ts.DeclarationStatement
      if (name && !declared.has(name.text)) declared.set(name.text, one)
    }
  }
  return (type) => {
    const fields = new Map<string, Field>()
    add(declared.get(type), '', true)
    return fields

    function add(node: ts.Node | undefined, at: string, isSure: boolean): void {
      const field = fields.get(at)
      if (node === undefined || at.split('.').length > 6) return
      if (ts.isArrayTypeNode(node)) add(node.elementType, at, isSure)
      else if (ts.isUnionTypeNode(node)) for (const one of node.types) add(one, at, false)
      else if (ts.isTypeAliasDeclaration(node)) add(node.type, at, isSure)
      else if (ts.isTypeReferenceNode(node) && node.typeName.getText() === 'Array')
        add(node.typeArguments?.[0], at, isSure)
      else if (ts.isTypeReferenceNode(node)) add(declared.get(node.typeName.getText()), at, isSure)
      else if (ts.isEnumDeclaration(node) && field) {
        field.values = node.members.map(({ name, initializer }) =>
          initializer && ts.isStringLiteral(initializer) ? initializer.text : name.getText(),
        )
      } else if (ts.isVariableDeclaration(node) && field) {
        field.values = [...node.getText().matchAll(/: "([^"]*)"/g)].map(([, value = '']) => value)
      } else if (ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node)) {
        for (const clause of node.heritageClauses ?? [])
          for (const { expression } of clause.types) add(declared.get(expression.getText()), at, isSure)
        for (const member of node.members) addMember(member, at, isSure)
      } else if (field && /^(any|object)$|^\{/.test(node.getText())) field.isOpen = true
      else if (field) field.type = node.getText()
    }

    function addMember(member: ts.Node, at: string, isSure: boolean): void {
      const isField = ts.isPropertySignature(member) || ts.isPropertyDeclaration(member)
      if (!isField || ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Static | ts.ModifierFlags.Private)) return
      const name = [at, (member.name as ts.Identifier).text].filter((part) => part !== '').join('.')
      fields.set(name, { isRequired: isSure && !member.questionToken })
      add(member.type, name, true)
    }
  }
}

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
