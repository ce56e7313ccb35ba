import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { parseYaml } from '@redocly/openapi-core'
import { createHttpClient } from '../../support/http-client.ts'
import { findPostgresWith } from '../../support/installed-postgres.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { connects } from '../../support/postgres-server.ts'
import { end, freePort, hasEnded, ROOT, run, runToEnd, start } from '../../support/processes.ts'
import { basic, type Key } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import type { Check, Deployment } from '../deployment.ts'

/** Settings as in `.env`. */
type Settings = Record<string, string>

const { services } = parseYaml(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')) as {
  services: Record<'api' | 'console' | 'roles', { command?: string[]; environment: Settings }>
}
const OWNER_PASSWORD = 'ofTheOwnerInThisTrial'
const INNERMOST_VARIABLE = /\$\{(\w+)(?::([-+])([^${}]*))?\}/
const postgres = findPostgresWith('psql')

export const noPsql = () => (postgres ? undefined : 'psql is missing. Install it with apt-get install postgresql.')

/**
 * Runs the steps of docker-compose.yml's profile `console` with their commands and environments, first without and then
 * with OWNER_PASSWORD. Only addresses, ports and paths are those of this machine.
 */
export async function operatorConsole(deployment: Deployment): Promise<Check[]> {
  const { url, superuserUrl, db } = await deployment.createDatabase('console')
  const { host, hostname, port: PGPORT, pathname, username: PGUSER, password: PGPASSWORD } = new URL(superuserUrl)
  // The superuser of compose, whose password the roles' step removes.
  await db.query("create role upi superuser login password 'until-the-roles-step'")
  const toThisMachine = (text = '') =>
    text
      .replace('/roles.sql', join(ROOT, 'src/operator/deploy/roles.sql'))
      .replace('@db:5432/upi', `@${host}${pathname}`)
  const runRoles = (settings: Settings) => {
    const connection = { PGHOST: hostname, PGPORT, PGUSER, PGPASSWORD, PGDATABASE: pathname.slice(1) }
    const env = { PATH: `${postgres}/bin:${process.env.PATH}`, ...environmentOf('roles', settings), ...connection }
    return run('sh', ['-ec', toThisMachine(commandOf('roles'))], { env })
  }
  const port = await freePort()
  const command = ['-c', commandOf('console')]
  const inContainer = (settings: Settings) => {
    const { DATABASE_URL, ...environment } = environmentOf('console', settings)
    const env = { PATH: process.env.PATH, ...environment, CONSOLE_PORT: String(port) }
    return { cwd: deployment.programs.root, env: { ...env, DATABASE_URL: toThisMachine(DATABASE_URL) } }
  }
  const ownerUrl = new URL(url)
  ownerUrl.username = 'upi_owner'
  ownerUrl.password = OWNER_PASSWORD
  const asOwner = { DATABASE_URL: ownerUrl.href }
  const ops = (...args: string[]) => runBuiltOps(deployment.programs.ops, asOwner, ...args)

  await runRoles({})
  const withoutPassword = await runToEnd('sh', command, inContainer({}))
  const connectsWithout = await connects(ownerUrl.href)
  await runRoles({ OWNER_PASSWORD })
  await ops('migrate')
  const withoutKey = await runToEnd('sh', command, inContainer({ OWNER_PASSWORD }))
  const key = (await ops('keys', 'create', '--operator', 'asha', '--rights', 'read')) as Key

  const child = start('sh', command, { ...inContainer({ OWNER_PASSWORD }), stdio: ['ignore', 'ignore', 'inherit'] })
  const client = createHttpClient()
  const statusOf = async (name: string, credentials?: Key) => {
    const headers = { host: `${name}:${port}`, ...(credentials && { authorization: basic(credentials) }) }
    return (await client.send(`http://${outsideLoopback()}:${port}`, { method: 'GET', path: '/', headers })).status
  }
  await until('the console responds', async () => hasEnded(child) || (await statusOf('localhost')) !== undefined)
  const statuses = [
    await statusOf('localhost'),
    await statusOf('localhost', key),
    await statusOf('127.0.0.1', key),
    await statusOf('evil.example', key),
  ]
  client.close()
  const exit = await end(child)
  await runRoles({})
  const connectsAfter = await connects(ownerUrl.href)
  await db.end()
  const serviceEnvironment = JSON.stringify(environmentOf('api', { OWNER_PASSWORD }))
  return [
    {
      promise: 'without OWNER_PASSWORD the console exits with 1 and names it, and upi_owner cannot connect',
      found: `exit ${withoutPassword.code}: ${withoutPassword.stderr.trim()}; connects: ${connectsWithout}`,
      kept:
        withoutPassword.code === 1 && /^OWNER_PASSWORD is not set\./.test(withoutPassword.stderr) && !connectsWithout,
    },
    {
      promise: "without an operator's key the console exits with 1 and names the command that creates one",
      found: `exit ${withoutKey.code}: ${withoutKey.stderr.trim().split('\n').at(-1)}`,
      kept: withoutKey.code === 1 && withoutKey.stderr.includes('ops keys create --operator'),
    },
    {
      promise: 'outside loopback the console returns 401 without a key, 200 with one, and 403 under another host name',
      found: `${statuses.join(', ')}; exit ${exit} on SIGTERM`,
      kept: statuses.join() === '401,200,200,403' && exit === 0,
    },
    {
      promise: 'removing OWNER_PASSWORD from .env removes the password of upi_owner',
      found: `connects: ${connectsAfter}`,
      kept: !connectsAfter,
    },
    {
      promise: "the service's environment contains no OWNER_PASSWORD",
      found: `${Object.keys(environmentOf('api', {})).length} other variables`,
      kept: !serviceEnvironment.includes('OWNER_PASSWORD') && !serviceEnvironment.includes(OWNER_PASSWORD),
    },
  ]
}

/** The shell command of a service. Compose reads `$$` as `$`. */
const commandOf = (name: 'console' | 'roles') => services[name].command?.at(-1)?.replaceAll('$$', '$') ?? ''

/** The environment that compose gives to a service. */
function environmentOf(name: keyof typeof services, settings: Settings): Settings {
  const entries = Object.entries(services[name].environment)
  return Object.fromEntries(entries.map(([variable, text]) => [variable, interpolate(String(text), settings)]))
}

/** Replaces `${NAME}`, `${NAME:-default}` and `${NAME:+replacement}`, which may contain each other, as compose does. */
function interpolate(text: string, settings: Settings): string {
  const replaced = text.replace(INNERMOST_VARIABLE, (_, name: string, operator?: string, word = '') => {
    const value = settings[name] ?? ''
    return operator === '+' ? value && word : value || word
  })
  return replaced === text ? text : interpolate(replaced, settings)
}

/** An address of this machine from which requests arrive like those that Docker forwards: not from loopback. */
function outsideLoopback(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses)
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)
  if (found === undefined) throw new Error('This machine has no address besides loopback')
  return found.address
}
