import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../../src/http/metrics.ts'
import { README, ROOT } from './readme.ts'

/** Without what stands in fenced blocks, where a # begins a comment and brackets are code. */
const prose = README.replaceAll(/^```[\s\S]*?^```$/gm, '')
const unique = (found: Iterable<RegExpMatchArray>) => [...new Set([...found].map(([, name = '']) => name))]

describe('what the README names is there', () => {
  it.each(unique(prose.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)))('link %s', (target) => {
    const [path = '', anchor] = target.split('#')
    if (path !== '') expect(existsSync(join(ROOT, path))).toBe(true)
    if (anchor !== undefined)
      expect(anchors(path === '' ? README : readFileSync(join(ROOT, path), 'utf8'))).toContain(anchor)
  })

  // dist is what `npm run build` makes.
  it.each(unique(README.matchAll(/(?<![\w/.-])((?:src|test|migrations|\.ci)\/[\w./-]*\w)/g)))('file %s', (path) => {
    expect(existsSync(join(ROOT, path))).toBe(true)
  })

  it.each(unique(README.matchAll(/`((?:\.env|docker-compose|Dockerfile|\.nvmrc)[\w.-]*)`/g)))('file %s', (path) => {
    // `.env` is the reader's own.
    expect(existsSync(join(ROOT, path === '.env' ? '.env.example' : path))).toBe(true)
  })

  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  it.each(unique(README.matchAll(/\bnpm run (?:-s )?([\w:]+)/g)))('script %s', (name) => {
    expect(Object.keys(scripts)).toContain(name)
  })

  it.each(unique(README.matchAll(/docker compose (?:exec|run|stop|start)(?: -\S+)* (\w+)/g)))(
    'service %s of the compose file',
    (name) => {
      expect(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')).toMatch(new RegExp(`^  ${name}:$`, 'm'))
    },
  )

  it.each(['haproxy.cfg', 'pgbouncer.ini'])('%s as the trial of deployments runs with it', (name) => {
    expect(README).toContain(readFileSync(join(ROOT, 'test/deployment', name), 'utf8'))
  })

  it('every metric', async () => {
    const named = unique(prose.matchAll(METRIC))
    const metrics = await createMetrics({}).registry.metrics()
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !metrics.includes(`# TYPE ${name} `))).toEqual([])
  })
})

const METRIC =
  /`((?:http_request|payment_intents?|payment_notifications|payment_exceptions|payment_acquirers|database|nodejs|process)_[a-z0-9_]+)`/g

/** The anchors of headings, as code hosts make them. */
function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
