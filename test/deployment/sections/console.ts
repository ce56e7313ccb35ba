import type { ChildProcess } from 'node:child_process'
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
const CONSOLE_DATABASE_PASSWORD = 'ofTheConsoleInThisTrial'
const OWNER_PASSWORD = 'ofTheOwnerInThisTrial'
const INNERMOST_VARIABLE = /\$\{(\w+)(?::([-+])([^${}]*))?\}/
const postgres = findPostgresWith('psql')

export const noPsql = () => (postgres ? undefined : 'psql is missing. Install it with apt-get install postgresql.')

/**
 * Runs the steps of docker-compose.yml's profile `console` with their commands and environments, first without and then
 * with CONSOLE_DATABASE_PASSWORD. Only addresses, ports and paths are those of this machine. Without a network namespace
 * of its own, the owner connects with a password here.
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
    const { CONSOLE_DATABASE_URL, ...environment } = environmentOf('console', settings)
    const env = { PATH: process.env.PATH, ...environment, CONSOLE_PORT: String(port) }
    return { cwd: deployment.programs.root, env: { ...env, CONSOLE_DATABASE_URL: toThisMachine(CONSOLE_DATABASE_URL) } }
  }
  const urlOf = (role: string, password: string) => {
    const { href } = Object.assign(new URL(url), { username: role, password })
    return href
  }
  const consoleUrl = urlOf('upi_console', CONSOLE_DATABASE_PASSWORD)
  const ownerUrl = urlOf('upi_owner', OWNER_PASSWORD)
  const asOwner = { DATABASE_URL: ownerUrl }
  const ops = (...args: string[]) => runBuiltOps(deployment.programs.ops, asOwner, ...args)

  await runRoles({})
  const withoutPassword = await runToEnd('sh', command, inContainer({}))
  const connectsWithout = await connects(consoleUrl)
  await runRoles({ CONSOLE_DATABASE_PASSWORD })
  const ownerConnects = await connects(ownerUrl)
  await db.query(`alter role upi_owner password '${OWNER_PASSWORD}'`)
  await ops('migrate')
  const withoutKey = await runToEnd('sh', command, inContainer({ CONSOLE_DATABASE_PASSWORD }))
  const key = (await ops('keys', 'create', '--operator', 'asha', '--rights', 'read')) as Key

  const running = start('sh', command, {
    ...inContainer({ CONSOLE_DATABASE_PASSWORD }),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const { statuses, exit } = await requestConsole(running, port, key)
  await runRoles({})
  const connectsAfter = [await connects(consoleUrl), await connects(ownerUrl)]
  await db.end()
  const serviceEnvironment = JSON.stringify(environmentOf('api', { CONSOLE_DATABASE_PASSWORD }))
  const consoleEnvironment = JSON.stringify(environmentOf('console', { CONSOLE_DATABASE_PASSWORD }))
  return [
    {
      promise:
        'without CONSOLE_DATABASE_PASSWORD the console exits with 1 and names it, and upi_console cannot connect',
      found: `exit ${withoutPassword.code}: ${withoutPassword.stderr.trim()}; connects: ${connectsWithout}`,
      kept:
        withoutPassword.code === 1 &&
        /^CONSOLE_DATABASE_PASSWORD is not set\./.test(withoutPassword.stderr) &&
        !connectsWithout,
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
      promise: 'removing CONSOLE_DATABASE_PASSWORD from .env removes the password of upi_console',
      found: `connects: ${connectsAfter[0]}`,
      kept: !connectsAfter[0],
    },
    {
      promise: 'the step of the roles leaves upi_owner without a password',
      found: `connects: ${ownerConnects}, ${connectsAfter[1]}`,
      kept: !ownerConnects && !connectsAfter[1],
    },
    {
      promise: "the service's environment contains no CONSOLE_DATABASE_PASSWORD, and the console's no URL of the owner",
      found: `${Object.keys(environmentOf('api', {})).length} other variables`,
      kept: !/CONSOLE_DATABASE|ofTheConsole/.test(serviceEnvironment) && !consoleEnvironment.includes('upi_owner'),
    },
  ]
}

/** Requests the console's first page with and without `key` under several host names, and then stops the console. */
async function requestConsole(child: ChildProcess, port: number, key: Key) {
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
  return { statuses, exit }
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
