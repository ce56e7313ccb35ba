import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chaptersOf } from '../../src/docs/chapters.ts'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { TONES } from '../../src/gateway/checkout/page-state.ts'
import { FAILURE_REASONS } from '../../src/gateway/payments/failure-reasons.ts'
import type { EventType } from '../../src/gateway/payments/outbox.ts'
import { EXCEPTION_KINDS } from '../../src/gateway/payments/outcome.ts'
import { WEBHOOKS } from '../../src/gateway/webhooks/events.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { LIMITS } from '../../src/limits.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { createMetrics } from '../../src/operator/monitoring/metrics.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { anchorsOf, blocks, blockWith, chapterText, GUIDES, type Guide, guideText, proseOf, ROOT } from './guides.ts'

/** On the port for operators. All other guides are public, below /docs. */
const OPERATOR_GUIDES: readonly Guide[] = ['operator', 'alerts', 'acquirers', 'decisions']
const CHAPTERS = GUIDES.flatMap(chaptersOf)

const EVENTS: Record<EventType, true> = {
  ...{ 'payment.succeeded': true, 'payment.attempt_failed': true, 'payment.cancelled': true, 'payment.expired': true },
  ...{ 'refund.succeeded': true, 'refund.failed': true, 'dispute.opened': true, 'dispute.updated': true },
}

const unique = (found: Iterable<RegExpMatchArray>) => [...new Set([...found].map(([, name = '']) => name))]
const fileText = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const linksOf = (markdown: string) => unique(proseOf(markdown).matchAll(/\]\((?!https?:)([^)\s]+)\)/g))

describe('links between chapters', () => {
  const document = openApiDocument({
    publicUrl: 'https://pay.example',
    operations: Object.values(OPERATIONS).flat(),
    webhooks: WEBHOOKS,
  })
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `?route=${method}-${path}`),
  )
  const isPublic = (chapter: string) => !OPERATOR_GUIDES.some((guide) => chapter.startsWith(`${guide}/`))
  const links = CHAPTERS.flatMap((chapter) => linksOf(chapterText(chapter)).map((target) => [chapter, target] as const))

  it.each(links)('%s links to %s, which exists', (chapter, target) => {
    const [page = '', anchor = ''] = target.split('#')
    if (page === '{PUBLIC_URL}/docs') return
    if (page === '../reference') return expect(['', ...operations]).toContain(anchor)
    const url = page.startsWith('{PUBLIC_URL}/docs/')
    const linked = url
      ? page.replace('{PUBLIC_URL}/docs/', '')
      : page === ''
        ? chapter
        : join(dirname(chapter), page).replace(/\.md$/, '')
    expect(CHAPTERS).toContain(linked)
    // The two ports serve different sites. Only public chapters have an address that works from both.
    expect(isPublic(linked)).toBe(url || isPublic(chapter))
    expect(anchorsOf(chapterText(linked))).toContain(anchor)
  })
})

describe.each(GUIDES)('the guide of the %s', (guide) => {
  const text = guideText(guide)

  it('the guide names no file of the repository, except installation files, and in decisions only existing files', () => {
    const files = unique(
      text
        .replaceAll('/opt/upi-payments/', '')
        .matchAll(/(?<![\w/.-])((?:src|test|migrations|dist|\.ci)\/[\w./-]*\w)/g),
    )
    const installed = [
      'dist/server.js',
      'dist/cli/ops.js',
      'dist/sbom.cdx.json',
      'src/platform/db/grants.sql',
      'src/platform/db/console-grants.sql',
      'src/operator/deploy/roles.sql',
      'src/operator/deploy/citus.sql',
      'src/operator/monitoring/alerts.yml',
      'src/operator/deploy/haproxy.cfg',
      'src/operator/deploy/upi-payments.service',
      'src/operator/deploy/upi-payments-console.service',
      'src/operator/deploy/upi-payments-daily.service',
      'src/operator/deploy/upi-payments-daily.timer',
      'src/operator/deploy/docker-compose.override.yml',
      'src/operator/deploy/journald.conf',
      'src/operator/monitoring/prometheus.yml',
    ]
    const mayName = (file: string) => guide === 'decisions' || (guide === 'operator' && installed.includes(file))
    expect(files.filter((file) => !mayName(file))).toEqual([])
    for (const file of files.filter((file) => !file.startsWith('dist/')))
      expect(existsSync(join(ROOT, file))).toBe(true)
  })
})

describe('the tables of fields in the guides', () => {
  const { schemas } = openApiDocument({
    publicUrl: 'https://pay.example',
    operations: Object.values(OPERATIONS).flat(),
    webhooks: WEBHOOKS,
  }).components

  it.each([
    ['merchant/request-fields', '## Fields of a new payment', 'NewPayment'],
    ['merchant/refunds', '## Request fields', 'NewRefund'],
    ['merchant/refunds', '## List refunds', 'ListedRefund'],
    ['merchant/refunds', '### List disputes', 'Dispute'],
    ['merchant/orders', '## Request fields', 'WhichOrders'],
    ['merchant/orders', '## Response fields', 'Order'],
    ['merchant/lists', '## Response fields', 'Transaction'],
    ['partner/transactions', '## Response fields', 'Transaction'],
    ['partner/quickstart', '## Request fields', 'WhichSettlements'],
    ['merchant/settlements', '## Response fields', 'Settlement'],
  ] as const)('the table of fields of %s, under "%s", has exactly the fields of %s', (chapter, heading, name) => {
    const [, section = ''] = chapterText(chapter).split(`\n${heading}\n`)
    const rows = [...(section.split(/^#/m)[0] ?? '').matchAll(/^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|/gm)]
    const fields = rows.flatMap(([, names = '', next]) =>
      [...names.matchAll(/\w+/g)].map(([field]) => ({ field, isRequired: next === 'yes' })),
    )
    const { properties, required } = schemas[name] as { properties: object; required: string[] }
    expect(fields.map(({ field }) => field).sort()).toEqual(Object.keys(properties).sort())
    if (name.startsWith('New') || name.startsWith('Which'))
      expect(fields.flatMap(({ field, isRequired }) => (isRequired ? [field] : [])).sort()).toEqual(
        [...required].sort(),
      )
  })
})

const LONGEST_CODE_LINE = 84

it.each(['merchant', 'partner', 'plugins', 'acquirer'] as const)(
  'the code samples in the %s guide fit their column',
  (guide) => {
    const lines = blocks.filter((block) => block.guide === guide).flatMap(({ text }) => text.split('\n'))
    expect(lines.filter((line) => line.length > LONGEST_CODE_LINE)).toEqual([])
  },
)

it('the merchant guide advises customers not to pay again after the reasons after which the pay page offers no payment yet', () => {
  const rows = chapterText('merchant/failure-reasons').matchAll(/^\| `(\w+)` \|[^|]+\| Do not pay again yet\./gm)
  const waiting = FAILURE_REASONS.filter((reason) => TONES[reason] === 'wait')
  expect(unique(rows).sort()).toEqual([...waiting].sort())
})

it('the OpenAPI document describes every webhook event', () => {
  expect(WEBHOOKS.map(({ type }) => type)).toEqual(Object.keys(EVENTS))
})

it.each(Object.keys(EVENTS))('the merchant guide documents the webhook event %s', (type) => {
  expect(guideText('merchant')).toMatch(new RegExp(`^\\| \`${type}\` \\|`, 'm'))
})

it('the merchant guide shows a refund webhook with the fields of a real refund webhook', () => {
  const inGuide = JSON.parse(blockWith('merchant', 'json', '"refund.succeeded"'))
  const { timestamp, data } = inGuide
  const { body } = toMessage({
    ...{ mid: data.mid, orderId: data.orderId, merchantOrderId: data.order_id, sequence: data.sequence },
    ...{ type: inGuide.type, txnStatus: data.txnStatus, amount: Number(data.amount) * 100, utr: data.reference },
    ...{ ourRefundId: data.refundId, refundId: data.refund_id, reason: null, disputeData: null },
    occurredAt: new Date(timestamp),
  })
  expect(body).toBe(JSON.stringify(inGuide))
})

describe('the guides state legal requirements', () => {
  it.each(['install', 'install-without-docker', 'backup'])(
    'the chapter %s states before its first section that data stays in India',
    (name) => {
      const [beginning] = chapterText(`operator/${name}`).split(/^## /m)
      expect(beginning).toMatch(/^\*\*\w+ (data )?stays? in India/m)
    },
  )

  it('the guides state that logs are retained for 180 days, and what Docker Compose retains by default', () => {
    const [, text = ''] = chapterText('operator/logs').split('\n## Retain the log for 180 days\n')
    const section = text.replaceAll(/\s+/g, ' ')
    const [, size, files] = /max-size: (\d+)m, max-file: '(\d+)'/.exec(fileText('docker-compose.yml')) ?? []
    expect(section).toContain(`${Number(size) * Number(files)} MB of each container (${files} files of ${size} MB)`)
    for (const part of ['180 days', 'journald', 'NTP', 'NIC', 'NPL', 'CERT-In']) expect(section).toContain(part)
    expect(chapterText('operator/security-incident')).toMatch(/CERT-In within 6 hours/)
  })

  it.each(['operator', 'merchant'] as const)('the %s guide states how long to retain proof of delivery', (guide) => {
    expect(guideText(guide)).toMatch(/proof of delivery[^.]*\b190 days, (better a|preferably one) year/)
  })

  it('the guides describe the day on which the DPDP Rules come into force as the latest possible day', () => {
    const text = `${guideText('operator')}${fileText('src/operator/commands/payments.ts')}`.replaceAll(/\s+/g, ' ')
    const days = [...text.matchAll(/.{0,23}13 May 2027.{0,14}/g)].map(([day]) => day)
    expect(days.length).toBeGreaterThan(3)
    for (const day of days) expect(day).toMatch(/at the latest (from |on )?13|2027 at the latest/i)
  })

  it('ops accepts the fees by instrument from the operator manual', () => {
    const add = COMMANDS.find(({ name }) => name === 'fees add')
    const samples = [...chapterText('operator/fees').matchAll(/`(--instrument [^`]*--percent [^`]*)`/g)]
    expect(samples.length).toBeGreaterThan(3)
    for (const [, flags = ''] of samples) {
      const given = [...flags.matchAll(/--(\S+) (\S+)/g)].map(([, flag, value]) => [flag, value])
      const named = { mid: 'M1', acquirer: 'setu', from: '2026-04-01' }
      expect(() => add?.prepare({ ...named, ...Object.fromEntries(given) }), flags).not.toThrow()
    }
  })

  it('the store plugin guide states where collect requests still exist', () => {
    expect(guideText('plugins')).toMatch(/collect request.*28 February 2026, except on\s+iOS/s)
  })

  it('the operator manual refers the operator to the primary documents', () => {
    const [, section] = chapterText('operator/personal-data').split('\n## Legal requirements\n')
    expect(section).toMatch(/November 2026.*\*\*Read the primary\s+document/s)
  })
})

describe('the operator manual', () => {
  const text = guideText('operator')

  it('the operator manual sets only those limits of a role that .env.example contains', () => {
    for (const line of text.match(/^alter role \w+ set .*$/gm) ?? []) expect(fileText('.env.example')).toContain(line)
  })

  it('the operator manual names only services of the compose file', () => {
    const services = unique(text.matchAll(/docker compose (?:exec|run|stop|start)(?: -e \S+="[^"]*"| -\S+)* (\w+)/g))
    expect(services.length).toBeGreaterThan(2)
    for (const name of services) expect(fileText('docker-compose.yml')).toMatch(new RegExp(`^  ${name}:$`, 'm'))
  })

  it('the operator manual names only commands that exist', () => {
    const named = unique(text.matchAll(/(?<=[`$ (]|^)ops ((?:[a-z]+(?:-[a-z]+)*\b ?){1,2})/gm)).map((name) =>
      name.trim(),
    )
    expect(named.length).toBeGreaterThan(20)
    const isCommand = (name: string) =>
      COMMANDS.some((one) => `${one.name} `.startsWith(`${name} `) || one.name === name.split(' ')[0])
    expect(named.filter((name) => !isCommand(name))).toEqual([])
  })

  it('the operator manual quotes results of ops payments find as the command prints the results', () => {
    const [, section = ''] = chapterText('operator/payments').split('\n## Resolve a customer complaint\n')
    const quoted = unique(
      [...section.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([cell]) => [...cell.matchAll(/`([^`]+)`/g)]),
    )
    expect(quoted.length).toBeGreaterThan(4)
    const printed = ['src/operator/support/payment-steps.ts', 'src/operator/commands/find-payments.ts'].map(fileText)
    const values = ['paid', ...EXCEPTION_KINDS.map((kind) => `: ${kind}`)]
    const parts = quoted.flatMap((text) => text.split('…')).filter((part) => !values.includes(part))
    expect(parts.filter((part) => !printed.join().includes(part))).toEqual([])
  })

  it('the operator manual names only metrics that exist', async () => {
    const named = unique(proseOf(text).matchAll(METRIC))
    const metrics = await createMetrics({}, async () => ({
      exceptions: {},
      refunds: {},
      disputes: {},
    })).registry.metrics()
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !metrics.includes(`# TYPE ${name} `))).toEqual([])
  })
})

/** Excludes the table `webhook_deliveries`. */
const METRIC =
  /`((?:http_request|payments|payment_intents?|payment_last_notification|payment_notifications|payment_exceptions|payment_refunds|payment_disputes|payment_acquirers|acquirer_calls|upi_payments|webhook(?!_deliveries`)|database|nodejs|process)_[a-z0-9_]+)`/g

const GUIDE_OF = { Merchant: 'merchant', Partner: 'partner', Acquirer: 'acquirer' } as const
const CALLED = Object.values(OPERATIONS)
  .flat()
  .flatMap(({ path, tag }) => (tag in GUIDE_OF ? [[path, GUIDE_OF[tag as keyof typeof GUIDE_OF]] as const] : []))
it.each(CALLED)('the operation %s has a paragraph in the guide for the %s', (path, guide) => {
  expect(proseOf(guideText(guide))).toMatch(new RegExp(`${path}\\b`))
})

const READMES = [
  'README.md',
  'src/README.md',
  'src/gateway/acquirers/README.md',
  ...['attacks', 'bench', 'deployment', 'faults'].map((name) => `test/${name}/README.md`),
]

describe.each(READMES)('%s names only paths, files, links and scripts that exist', (file) => {
  const readme = fileText(file)

  it.each(linksOf(readme))('the README’s link %s leads to an existing file and heading', (target) => {
    const [path = '', anchor] = target.split('#')
    const linkedFile = path === '' ? file : join(dirname(file), path)
    expect(existsSync(join(ROOT, linkedFile))).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(fileText(linkedFile))).toContain(anchor)
  })

  // dist is what `npm run build` makes.
  it.each(unique(readme.matchAll(/(?<![\w/.-])((?:src|test|migrations|\.ci)\/[\w./-]*\w)/g)))(
    'the path %s in the README exists',
    (path) => {
      expect(existsSync(join(ROOT, path))).toBe(true)
    },
  )

  it.each(unique(readme.matchAll(/`((?:\.env|docker-compose|Dockerfile|\.nvmrc)[\w.-]*)`/g)))(
    'the deployment file %s in the README exists',
    (path) => {
      // `.env` is the reader's own.
      expect(existsSync(join(ROOT, path === '.env' ? '.env.example' : path))).toBe(true)
    },
  )

  const measured = [...readme.matchAll(/^\|.*\]\((test\/\w+\/README\.md)\) \| (.+) \|$/gm)]
  it.each(measured.map(([, path = '', said = '']) => [said, path]))(
    'the README figures %s appear in %s',
    (said, path) => {
      const figures = said.match(/\d[\d,.]*(?: [×%])?/g) ?? []
      expect(figures).not.toEqual([])
      for (const figure of figures) expect(fileText(path)).toContain(figure)
    },
  )

  const { scripts } = JSON.parse(fileText('package.json'))
  it.each(unique(readme.matchAll(/\bnpm run (?:-s )?([\w:]+)/g)))('the README’s npm script %s exists', (name) => {
    expect(Object.keys(scripts)).toContain(name)
  })
})

it('src/README.md names every limit exactly as src/limits.ts does', () => {
  const names = unique(fileText('src/README.md').matchAll(/`([a-z]\w+\.(?!ts\b|json\b)\w+)`/g))
  expect(names.length).toBeGreaterThan(20)
  const areas: Record<string, object> = LIMITS
  expect(
    names.filter((name) => !Object.hasOwn(areas[name.split('.')[0] ?? ''] ?? {}, name.split('.')[1] ?? '')),
  ).toEqual([])
})
