import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The modules that a file of an area may import at run time: paths below src, and libraries with the prefix `npm:`. */
const AREAS: Record<string, RegExp> = {
  platform:
    /^npm:(@fastify\/(formbody|rate-limit)|csv-parse(\/sync)?|fastify|ipaddr\.js|lru-cache|pg|pg-copy-streams|pino|undici|zod)$|^(errors|limits)\.ts$|^platform\//,
  gateway: /^npm:(@fastify\/basic-auth|lru-cache|pg-copy-streams|qr|zod)$|^(errors|limits)\.ts$|^(platform|gateway)\//,
  // Reads the gateway's tables; the gateway reads none of its tables.
  books: /^npm:(pg-copy-streams|zod)$|^(errors|limits)\.ts$|^(platform|gateway|books)\//,
  operator:
    /^npm:(@fastify\/multipart|csv-stringify|fast-xml-builder|lru-cache|pg|prom-client|zod)$|^(build-info|config|errors|limits)\.ts$|^(platform|gateway|books|operator)\//,
  docs: /^npm:(marked|zod)$|^(build-info|errors|limits)\.ts$|^platform\/|^docs\//,
  dev: /./,
}

/**
 * The files at the top of src. Those from which the service is built may import all areas except the commands and dev.
 */
const BUILD = /^(?!operator\/(commands|terminal|console)\/|dev\/)/
const FILES: Record<string, RegExp> = {
  'app.ts': BUILD,
  'server.ts': BUILD,
  'jobs.ts': BUILD,
  'operations.ts': BUILD,
  'services.ts': BUILD,
  'build-info.ts': /^\.\.\/package\.json$/,
  'config.ts': /^npm:(ipaddr\.js|pg|zod)$|^platform\/(fields|variables)\.ts$|^gateway\/acquirers\/accounts\.ts$/,
  'errors.ts': /^(?!.)/,
  'limits.ts': /^(?!.)/,
}

/** The concerns of a file, detected by its text and its imports. One file must not mix two that exclude each other. */
const CONCERNS = {
  SQL: /\.query\b\s*[(<]|\bfrom 'pg-copy-streams'/,
  'a request and its response':
    /\bfrom '(?:\.{1,2}\/)+(?:platform\/)?http\/(?:operation|envelope|input|error-handler)\.ts'/,
  'who may act': /\bauthorize(?:Merchant|Partner|Linked)\(/,
  'the terminal': /\bfrom '\.\/command\.ts'/,
} as const

type Concern = keyof typeof CONCERNS

const EXCLUDING: [Concern, Concern][] = [
  ['SQL', 'a request and its response'],
  ['SQL', 'who may act'],
  ['SQL', 'the terminal'],
  ['a request and its response', 'the terminal'],
]

const SRC = join(import.meta.dirname, '../../src')
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
const textOf = (file: string) => readFileSync(join(SRC, file), 'utf8')

type Import = { from: string; target: string; typeOnly: boolean }

function importsOf(file: string, text = textOf(file)): Import[] {
  const statements = [
    ...text.matchAll(/^(?:import|export)\s+(type\s+)?(?:[^'"]*?\sfrom\s+)?'([^']+)'/gm),
    ...text.matchAll(/\b(?:await )?import\((?:(type) )?'([^']+)'\)/g),
  ]
  return statements.map(([, type, specifier = '']) => ({
    from: file,
    target: specifier.startsWith('.')
      ? normalize(join(dirname(file), specifier))
      : specifier.startsWith('node:')
        ? specifier
        : `npm:${specifier}`,
    typeOnly: type !== undefined,
  }))
}

/** The imports of `file` that violate the rules of its area, and the concerns that it mixes. */
function errorsOf(file: string, text = textOf(file)): string[] {
  const [folder = '', below] = file.split('/')
  const rule = below === undefined ? FILES[file] : AREAS[folder]
  if (rule === undefined) return [`${file} is in no area: see AREAS and FILES`]
  const forbidden = importsOf(file, text)
    .filter(({ target, typeOnly }) => !typeOnly && !target.startsWith('node:') && !rule.test(target))
    .map(({ target }) => `imports ${target}`)
  if (folder === 'dev') return forbidden
  const mixed = EXCLUDING.filter((pair) => pair.every((concern) => CONCERNS[concern].test(text)))
  return [...forbidden, ...mixed.map(([one, other]) => `has to do with ${one} and with ${other}`)]
}

describe('imports between areas of src', () => {
  it.each(files)('the imports of %s follow the rules for the file’s area', (file) => {
    expect(errorsOf(file)).toEqual([])
  })

  it('no file imports itself through other files, including type imports', () => {
    const targets = new Map(files.map((file) => [file, importsOf(file).map(({ target }) => target)]))
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      (targets.get(from) ?? []).some((next) => {
        if (next === to) return true
        if (seen.has(next)) return false
        seen.add(next)
        return reaches(next, to, seen)
      })
    expect(files.filter((file) => reaches(file, file))).toEqual([])
  })

  it('no file of an area imports a file of a higher area, including type imports', () => {
    const books = ['settlements', 'ledger', 'reading', 'statements', 'closing', 'reports'].map(
      (name) => `books/${name}`,
    )
    const order = ['platform', 'gateway', ...books, 'operator']
    const rank = (file: string) => order.findIndex((area) => file.startsWith(`${area}/`))
    expect(files.filter((file) => file.startsWith('books/') && rank(file) < 0)).toEqual([])
    const upward = files
      .flatMap((file) => importsOf(file))
      .filter(({ from, target }) => rank(from) >= 0 && rank(target) > rank(from))
    expect(upward).toEqual([])
  })

  it('the operator’s commands import the modules that operations use, but never an operation', () => {
    const operations = files.filter((file) =>
      importsOf(file).some(({ target }) => target === 'platform/http/operation.ts'),
    )
    const used = files
      .filter((file) => /^operator\/(commands|terminal)\//.test(file))
      .flatMap((file) => importsOf(file))
    expect(operations.length).toBeGreaterThan(5)
    expect(used.filter(({ target, typeOnly }) => !typeOnly && operations.includes(target))).toEqual([])
  })

  it('no file uses URL.canParse, because Node.js 20 returns wrong results once URL.canParse is optimised', () => {
    expect(files.filter((file) => textOf(file).includes('URL.canParse'))).toEqual([])
  })

  it('only server.ts and src/dev import app.ts and server.ts, including types', () => {
    const importers = files.flatMap((file) => importsOf(file)).filter(({ target }) => /^(app|server)\.ts$/.test(target))
    expect(importers.filter(({ from }) => !/^(server\.ts|dev\/)/.test(from))).toEqual([])
  })

  it('only config.ts and src/dev read the environment, and only the two servers and src/dev exit the process', () => {
    const filesWith = (pattern: RegExp) => files.filter((file) => pattern.test(textOf(file)))
    const outside = (names: string[]) => names.filter((file) => !file.startsWith('dev/')).sort()
    expect(outside(filesWith(/process\.env\b/))).toEqual(['server.ts'])
    expect(outside(filesWith(/process\.exit\(/))).toEqual(['operator/console/command.ts', 'server.ts'])
  })

  it('the operator’s commands print only through print.ts, which removes terminal control characters', () => {
    const writers = files.filter(
      (file) => /^operator\/(commands|terminal)\//.test(file) && /\.write\(|console\./.test(textOf(file)),
    )
    expect(writers).toEqual(['operator/terminal/print.ts'])
  })

  it('only server.ts, src/dev and the operator’s commands read a clock, and other files receive the time as an argument', () => {
    const readers = files.filter((file) => /new Date\(\)|Date\.now\(\)/.test(textOf(file)))
    expect(readers.filter((file) => !/^(server\.ts|dev\/|operator\/(commands|terminal|console)\/)/.test(file))).toEqual(
      [],
    )
  })
})
