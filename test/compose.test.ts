import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readConfig } from '../src/config.ts'
import { LIMITS } from '../src/limits.ts'

const ROOT = join(import.meta.dirname, '..')
const COMPOSE = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')

/** The lines of one service in docker-compose.yml. */
const serviceText = (name: string) =>
  new RegExp(`^ {2}${name}:\n[\\s\\S]*?(?=^ {0,2}[\\w-]+:)`, 'm').exec(COMPOSE)?.[0] ?? ''

it('docker-compose.yml publishes the instance’s ports, or only the balancer’s ports if API_REPLICAS is set', () => {
  const published = COMPOSE.match(/^ {4}ports: .*$/gm)?.map((line) => line.trim())
  expect(published).toEqual([
    expect.stringMatching(/^ports: &ports /),
    'ports: *ports',
    expect.stringMatching(/^ports: \['127\.0\.0\.1:\$\{CONSOLE_PORT:-3002\}:3002'\]$/),
    "ports: ['127.0.0.1:9090:9090']",
  ])
  expect(published?.[0]).toMatch(/\['\$\{PORT:-3000\}:\$\{PORT:-3000\}', '127\.0\.0\.1:\$\{OPS_PORT/)
  expect(serviceText('published')).toContain('ports: &ports')
  expect(serviceText('balancer')).toMatch(/profiles: \[scaled\]\n[\s\S]*ports: \*ports/)
  expect(serviceText('api')).toMatch(/extends: \{ service: 'published\$\{API_REPLICAS:\+-by-balancer\}' \}/)
  expect(serviceText('api')).toMatch(/deploy: \{ replicas: '\$\{API_REPLICAS:-1\}' \}/)
  for (const name of ['published', 'published-by-balancer']) expect(serviceText(name)).toContain('replicas: 0')
})

it('docker-compose.yml passes every setting to the service under the setting’s own name', () => {
  const settings = readFileSync(join(ROOT, '.env.example'), 'utf8').match(/^[A-Z_]+(?==$)/gm) ?? []
  const ofOthers = [
    'DATABASE_MIGRATE_URL',
    'OPS_BY',
    'CONSOLE_DATABASE_URL',
    'CONSOLE_PORT',
    'CONSOLE_HOST',
    'CONSOLE_ALLOWED_HOSTS',
    'API_REPLICAS',
    'POSTGRES_PASSWORD',
    'CONSOLE_DATABASE_PASSWORD',
  ]
  const handed = serviceText('api').matchAll(/^ {6}([A-Z_]+): .*?\$\{(?!API_REPLICAS)([A-Z_]+)/gm)
  const pairs = [...handed].map(([, name, from]) => [name, from])
  expect(pairs.filter(([name, from]) => name !== from)).toEqual([])
  const missing = settings.filter((name) => !ofOthers.includes(name) && !pairs.some(([handed]) => handed === name))
  expect(missing).toEqual([])
})

it('docker-compose.yml passes CONSOLE_DATABASE_PASSWORD to the roles and the console only', () => {
  const uses = /\$\{CONSOLE_DATABASE_PASSWORD\b/
  for (const name of ['roles', 'console']) expect(serviceText(name)).toMatch(uses)
  const others = COMPOSE.replace(serviceText('roles'), '').replace(serviceText('console'), '')
  expect(others).not.toMatch(uses)
})

it('docker-compose.yml publishes the console on loopback only, without a password in the file', () => {
  const text = serviceText('console')
  expect(text).toMatch(/^ {4}profiles: \[console\]$/m)
  expect(text).toMatch(/^ {6}CONSOLE_HOST: 0\.0\.0\.0$/m)
  expect(text).toMatch(/^ {6}CONSOLE_ALLOWED_HOSTS: localhost,127\.0\.0\.1\$\{CONSOLE_ALLOWED_HOSTS:\+,\}/m)
  expect(text).toMatch(
    /^ {6}CONSOLE_DATABASE_URL: .*\$\{CONSOLE_DATABASE_PASSWORD:\+postgres:\/\/upi_console:\$\{CONSOLE_DATABASE_PASSWORD:-\}@db:5432\/upi\}/m,
  )
})

it('docker-compose.yml gives the console access to its own database role and to no other role', () => {
  const text = serviceText('console')
  expect(text.match(/postgres:\/\/\w+/g)).toEqual(['postgres://upi_console'])
  expect(text).toMatch(/^ {6}DATABASE_URL: ''$/m)
  expect(text).not.toMatch(/DATABASE_MIGRATE_URL|network_mode/)
})

it('docker-compose.yml passes the console every setting of ops', () => {
  expect(serviceText('ops')).toMatch(/^ {4}environment: &ops-environment$/m)
  expect(serviceText('console')).toMatch(/^ {6}<<: \*ops-environment$/m)
})

it('docker-compose.yml sets INSTANCES and every variable that haproxy.cfg presets', () => {
  const config = readFileSync(join(ROOT, 'src/operator/deploy/haproxy.cfg'), 'utf8')
  const preset = [...config.matchAll(/^ +presetenv (\w+) /gm)].map(([, name]) => name)
  const set = [...serviceText('balancer').matchAll(/^ {6}([A-Z_]+): /gm)].map(([, name]) => name)
  expect(set.sort()).toEqual(['INSTANCES', ...preset].sort())
})

it('docker-compose.yml configures PostgreSQL connections for 8 instances, the console, and 20 for ops, backups and superusers', () => {
  const { databasePoolSize } = readConfig({ DATABASE_URL: 'postgres://db/upi' })
  const ofInstance = Object.values(LIMITS.pools).reduce((sum, size) => sum + size, databasePoolSize)
  const { ops, reads, longReads, signIn } = { ops: 9, ...LIMITS.console }
  const connections = Number(/-cmax_connections=(\d+)/.exec(serviceText('db'))?.[1])
  expect(connections).toBeGreaterThanOrEqual(8 * ofInstance + ops + reads.size + longReads.size + signIn.size + 20)
})

it('docker-compose.yml mounts the current folder only into ops, as a read-only working directory', () => {
  expect(COMPOSE.match(/\/files.*$/gm)).toEqual(["/files:ro']", '/files'])
  expect(serviceText('ops')).toMatch(/^ {4}volumes: \['\$\{PWD:-\.\}:\/files:ro'\]\n {4}working_dir: \/files$/m)
})

const systemdText = (name: string) => readFileSync(join(ROOT, 'src/operator/deploy', name), 'utf8')

it('docker-compose.override.yml sends the logs of every service except ops to journald', () => {
  const [, services = ''] = COMPOSE.split(/^services:$/m)
  const names = [...(services.split(/^volumes:$/m)[0] ?? '').matchAll(/^ {2}([\w-]+):$/gm)].map(([, name]) => name)
  const logged = names.filter((name) => !['published', 'published-by-balancer', 'ops'].includes(name as string))
  const override = systemdText('docker-compose.override.yml')
  expect(override).toMatch(/^x-journald: &journald\n {2}logging:\n {4}driver: journald$/m)
  expect([...override.matchAll(/^ {2}([\w-]+): \*journald$/gm)].map(([, name]) => name).sort()).toEqual(logged.sort())
})

it('journald.conf retains every log line for 180 days within its limits on files and bytes', () => {
  const lines = systemdText('journald.conf').split('\n')
  const [section, ...settings] = lines.filter((line) => line !== '' && !line.startsWith('#'))
  expect(section).toBe('[Journal]')
  const journal = Object.fromEntries(settings.map((line) => line.split('=')))
  const { MaxRetentionSec, MaxFileSec, SystemMaxUse, SystemMaxFiles, ...others } = journal
  expect(others).toEqual({ Storage: 'persistent', RateLimitIntervalSec: '0' })
  const days = (text: string) => Number(/^(\d+)day$/.exec(text)?.[1])
  expect(days(MaxRetentionSec) - days(MaxFileSec)).toBeGreaterThanOrEqual(180)
  // journald limits a file to 128 MB.
  const filesOfSize = (Number(/^(\d+)G$/.exec(SystemMaxUse)?.[1]) * 1024) / 128
  expect(Number(SystemMaxFiles)).toBeGreaterThan(days(MaxRetentionSec) / days(MaxFileSec) + filesOfSize)
})
