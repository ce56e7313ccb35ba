import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

/** What a file of a folder may import at run time: paths below src, `node:` for the platform, `npm:` for libraries. */
const FOLDERS: Record<string, RegExp> = {
  acquirer:
    /^npm:zod$|^(errors|fields|ist|money|sealing|variables)\.ts$|^http\/(operation|input)\.ts$|^db\/cached\.ts$|^tenants\/acquirer-accounts\.ts$|^(payments|refunds|acquirer)\//,
  ledger: /^npm:zod$|^(fields|ist|money)\.ts$|^(db|payments|refunds|ledger)\//,
  reconciliation:
    /^npm:zod$|^(fields|ist|limits|money|repeat)\.ts$|^(db|ledger|payments|reconciliation|refunds|settlements|statements)\//,
  checkout:
    /^npm:(lru-cache|zod|qr)$|^(colours|errors|html|ist|money|repeat)\.ts$|^http\/(accept-language|input|operation|etag)\.ts$|^(payments|refunds|checkout)\//,
  cli: /^npm:(csv-stringify|zod|pg)$|^\.\.\/package\.json$|^(config|csv|errors|fields|ist|limits|money|sealing)\.ts$|^(acquirer|cli|db|ledger|outbound|payments|reconciliation|refunds|settlements|statements|tenants|webhooks)\//,
  db: /^npm:|^(limits)\.ts$|^db\//,
  dev: /./,
  scheduler: /^repeat\.ts$/,
  docs: /^npm:(zod|marked)$|^(colours|errors|html|limits)\.ts$|^http\/(envelope|etag)\.ts$|^docs\//,
  // Knows no feature.
  http: /^npm:|^(errors|fields)\.ts$|^http\//,
  tenants: /^npm:(zod|@fastify\/basic-auth)$|^(errors|fields|ist|money)\.ts$|^(db|tenants)\//,
  operator: /^npm:lru-cache$|^(html|ist|money)\.ts$|^tenants\/credentials\.ts$|^(db|ledger|operator|reconciliation)\//,
  payments:
    /^npm:(zod|pg-copy-streams)$|^(csv|errors|fields|ist|limits|money)\.ts$|^http\/operation\.ts$|^tenants\/authorize\.ts$|^lists\/list(-operation)?\.ts$|^settlements\/(file-amounts|layouts)\.ts$|^(db|payments)\//,
  refunds:
    /^npm:zod$|^(errors|fields|ist|limits|money|printable)\.ts$|^http\/operation\.ts$|^tenants\/authorize\.ts$|^(db|payments|refunds)\//,
  settlements:
    /^npm:(zod|pg-copy-streams)$|^(csv|errors|fields|ist|limits|money)\.ts$|^lists\/list(-operation)?\.ts$|^(db|settlements)\//,
  statements:
    /^npm:pg-copy-streams$|^(csv|ist|money)\.ts$|^ledger\/(bank-days|match-deductions)\.ts$|^settlements\/(file-amounts|imports|layouts)\.ts$|^(db|statements)\//,
  lists:
    /^npm:(zod|pg|pg-copy-streams)$|^(errors|fields|ist)\.ts$|^http\/(accept|operation|envelope)\.ts$|^tenants\/authorize\.ts$|^(db|lists)\//,
  outbound: /^npm:(ipaddr\.js|undici)$|^(fields|printable)\.ts$|^outbound\//,
  webhooks: /^npm:lru-cache$|^(limits|money|sealing)\.ts$|^payments\/(answered|outbox|outcome)\.ts$|^(db|webhooks)\//,
}

/** The files that stand in no folder. The roots, and what app.ts is made of, may import all but cli and dev. */
const FILES: Record<string, RegExp> = {
  'app.ts': /^(?!cli\/|dev\/)/,
  'server.ts': /^(?!cli\/|dev\/)/,
  'jobs.ts': /^(?!cli\/|dev\/)/,
  'operations.ts': /^(?!cli\/|dev\/)/,
  'readiness.ts': /^(?!cli\/|dev\/)/,
  'config.ts': /^npm:(zod|ipaddr\.js)$|^(fields|variables)\.ts$|^acquirer\/accounts\.ts$/,
  'colours.ts': /^(?!.)/,
  'csv.ts': /^npm:csv-parse$|^csv-(header|open)\.ts$|^money\.ts$/,
  'csv-header.ts': /^money\.ts$/,
  'csv-open.ts': /^npm:csv-parse\/sync$|^csv-header\.ts$/,
  'errors.ts': /^(?!.)/,
  'fields.ts': /^npm:zod$/,
  'html.ts': /^(?!.)/,
  'ist.ts': /^npm:zod$|^fields\.ts$/,
  'limits.ts': /^(?!.)/,
  'log.ts': /^npm:pino$/,
  'metrics.ts': /^npm:prom-client$|^acquirer\/(accounts|acquirers)\.ts$|^payments\/(failure-reasons|outcome)\.ts$/,
  'money.ts': /^npm:zod$|^fields\.ts$/,
  'printable.ts': /^(?!.)/,
  'repeat.ts': /^(?!.)/,
  'sealing.ts': /^(?!.)/,
  'shutdown.ts': /^(?!.)/,
  'variables.ts': /^npm:zod$|^fields\.ts$/,
}

/** The concerns of a file, recognised by its text and its imports. One file must not mix two that exclude each other. */
const CONCERNS = {
  SQL: /\.query\b\s*[(<]|\bfrom 'pg-copy-streams'/,
  'a request and its answer': /\bfrom '(?:\.\.\/)+http\/(?:operation|envelope|input|error-handler)\.ts'/,
  'who may act': /\b(?:authorizeMerchant|authorizePartner)\(/,
  'the terminal': /\bfrom '\.(?:\.\/cli)?\/(?:command|output)\.ts'/,
} as const

type Concern = keyof typeof CONCERNS

const EXCLUDING: [Concern, Concern][] = [
  ['SQL', 'a request and its answer'],
  ['SQL', 'who may act'],
  ['SQL', 'the terminal'],
  ['a request and its answer', 'the terminal'],
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

/** What `file` imports against the rule of its folder, and which concerns it mixes. */
function faultsOf(file: string, text = textOf(file)): string[] {
  const [folder = '', below] = file.split('/')
  const rule = below === undefined ? FILES[file] : FOLDERS[folder]
  if (rule === undefined) return [`${file} has no room: add its folder to FOLDERS, or the file to FILES`]
  const forbidden = importsOf(file, text)
    .filter(({ target, typeOnly }) => !typeOnly && !target.startsWith('node:') && !rule.test(target))
    .map(({ target }) => `imports ${target}`)
  if (folder === 'dev') return forbidden
  const mixed = EXCLUDING.filter((pair) => pair.every((concern) => CONCERNS[concern].test(text)))
  return [...forbidden, ...mixed.map(([one, other]) => `has to do with ${one} and with ${other}`)]
}

describe('who may import whom', () => {
  it.each(files)('the imports of %s keep the rules of its folder', (file) => {
    expect(faultsOf(file)).toEqual([])
  })

  it('no file imports itself through others, types included', () => {
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

  it('src/http imports no feature, types included', () => {
    const imports = files.filter((file) => file.startsWith('http/')).flatMap((file) => importsOf(file))
    expect(imports.length).toBeGreaterThan(20)
    const known = /^(node:|npm:|http\/|(errors|fields|limits)\.ts$)/
    expect(imports.filter(({ target }) => !known.test(target))).toEqual([])
  })

  it('the operator’s commands use what operations use, never an operation', () => {
    const operations = files.filter((file) => importsOf(file).some(({ target }) => target === 'http/operation.ts'))
    const used = files.filter((file) => file.startsWith('cli/')).flatMap((file) => importsOf(file))
    expect(operations.length).toBeGreaterThan(5)
    expect(used.filter(({ target, typeOnly }) => !typeOnly && operations.includes(target))).toEqual([])
  })

  it('no file uses URL.canParse, which Node.js 20 gets wrong once it is optimised', () => {
    expect(files.filter((file) => textOf(file).includes('URL.canParse'))).toEqual([])
  })

  it('only server.ts and src/dev import app.ts and server.ts, types included', () => {
    const importers = files.flatMap((file) => importsOf(file)).filter(({ target }) => /^(app|server)\.ts$/.test(target))
    expect(importers.filter(({ from }) => !/^(server\.ts|dev\/)/.test(from))).toEqual([])
  })

  it('only config.ts and src/dev read the environment, only server.ts and src/dev end the process', () => {
    const filesWith = (pattern: RegExp) => files.filter((file) => pattern.test(textOf(file)))
    const outside = (names: string[]) => names.filter((file) => !file.startsWith('dev/')).sort()
    expect(outside(filesWith(/process\.env\b/))).toEqual(['server.ts'])
    expect(outside(filesWith(/process\.exit\(/))).toEqual(['server.ts'])
  })

  it('the operator’s commands print only through output.ts, which lets no terminal control through', () => {
    const writers = files.filter((file) => file.startsWith('cli/') && /\.write\(|console\./.test(textOf(file)))
    expect(writers).toEqual(['cli/output.ts'])
  })

  it('only server.ts, src/dev and src/cli read a clock: elsewhere time is an argument', () => {
    const readers = files.filter((file) => /new Date\(\)|Date\.now\(\)/.test(textOf(file)))
    expect(readers.filter((file) => !/^(server\.ts|dev\/|cli\/)/.test(file))).toEqual([])
  })
})
