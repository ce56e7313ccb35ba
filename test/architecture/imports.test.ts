import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'

/**
 * Who may import whom, one way. A rule's `files` say for whom it speaks, `may` what they may import at run time:
 * paths below src, `node:` for the platform, `npm:` for libraries. Types may be imported from anywhere but the two roots.
 */
// The first rule that speaks for a file holds.
const RULES: { room: string; files: RegExp; may: RegExp }[] = [
  {
    room: 'cli',
    files: /^cli\//,
    may: /^node:|^npm:|^(config|errors|fields|ist|money)\.ts$|^(cli|db)\/|\/(repository|access-keys|credentials|merchants|partners|import|csv|schema|report-repository|record-report|forget-customers)\.ts$/,
  },
  { room: 'dev', files: /^dev\//, may: /./ },
  {
    room: 'pure files',
    files:
      /^(errors|fields|html|ist|money)\.ts$|\/(credentials|schema|csv|intent|idempotency|outcome|signature|upi-links|wire|qr-image|envelope|request-id)\.ts$/,
    may: /^node:|^npm:(zod|qr)$|^(errors|fields|ist|money)\.ts$|^payments\/upi-links\.ts$/,
  },
  {
    room: 'repositories',
    files:
      /\/(repository|insert-batches|report-repository|record-report|forget-customers|access-keys|merchants|partners|import|read-batches)\.ts$/,
    may: /^node:|^npm:(pg|pg-copy-streams|csv-parse)$|^errors\.ts$|^db\/(pool|sqlstates)\.ts$|^(payments|settlements)\//,
  },
  {
    room: 'routes',
    files: /^(payments|settlements|checkout|acquirer)\//,
    may: /^node:|^npm:zod$|^(errors|html|ist|money)\.ts$|^http\/(envelope|input|etag)\.ts$|^merchants\/authorize\.ts$|^(checkout|acquirer)\/|^(payments|settlements)\/(?!routes)/,
  },
  {
    room: 'docs',
    files: /^docs\//,
    may: /^node:|^npm:(zod|marked)$|^(errors|html)\.ts$|^http\/(envelope|input|etag)\.ts$|^(payments|settlements|acquirer)\/(schema|idempotency)\.ts$|^docs\//,
  },
  { room: 'merchants', files: /^merchants\//, may: /^node:|^npm:zod$|^(errors|fields)\.ts$|^merchants\// },
  { room: 'auth', files: /^auth\//, may: /^node:|^npm:(@fastify\/basic-auth|fastify)$|^errors\.ts$|^auth\// },
  { room: 'http', files: /^http\//, may: /^node:|^npm:|^(errors|fields)\.ts$|^http\// },
  { room: 'db', files: /^db\//, may: /^node:|^npm:|^errors\.ts$|^db\// },
  { room: 'config', files: /^config\.ts$/, may: /^node:|^npm:zod$/ },
  { room: 'log', files: /^log\.ts$/, may: /^npm:pino$/ },
  { room: 'roots', files: /^(app|server)\.ts$/, may: /^(?!cli\/|dev\/)/ },
]

const SRC = join(import.meta.dirname, '../../src')
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))

type Import = { from: string; target: string; typeOnly: boolean }

function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), 'utf8')
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

describe('who may import whom', () => {
  it.each(files)('%s keeps to its room', (file) => {
    const rule = RULES.find(({ files }) => files.test(file))
    expect(rule, 'every file belongs to a room').toBeDefined()
    const strangers = importsOf(file).filter(({ target, typeOnly }) => !typeOnly && !rule?.may.test(target))
    const house = `${file} is of the room "${rule?.room}", which may import ${rule?.may}`
    expect(
      strangers.map(({ target }) => target),
      house,
    ).toEqual([])
  })

  it('nothing but the roots and dev imports app.ts and server.ts, types included', () => {
    const importers = files.flatMap(importsOf).filter(({ target }) => /^(app|server)\.ts$/.test(target))
    expect(importers.filter(({ from }) => !/^(server\.ts|dev\/)/.test(from))).toEqual([])
  })

  it('only config.ts and dev read the environment, only server.ts and dev end the process', () => {
    const holds = (pattern: RegExp) => files.filter((file) => pattern.test(readFileSync(join(SRC, file), 'utf8')))
    const outside = (names: string[]) => names.filter((file) => !file.startsWith('dev/')).sort()
    expect(outside(holds(/process\.env\b/))).toEqual(['cli/ops.ts', 'server.ts'])
    expect(outside(holds(/process\.exit\(/))).toEqual(['server.ts'])
  })

  it('time is an argument: no clock is read outside the roots', () => {
    const readers = files.filter((file) => /new Date\(\)|Date\.now\(\)/.test(readFileSync(join(SRC, file), 'utf8')))
    expect(readers.filter((file) => !/^(server\.ts|dev\/|cli\/)/.test(file))).toEqual([])
  })
})
