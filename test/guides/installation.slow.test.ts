import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { asRole, ROLE_PASSWORD } from '../support/database-url.ts'
import { findPostgresWith } from '../support/installed-postgres.ts'
import { openPool, startPostgresServer } from '../support/postgres-server.ts'
import { end, freePort, startReading } from '../support/processes.ts'
import { basic } from '../support/tenants.ts'
import { blocksOf, blockWith, ROOT } from './guides.ts'
import { has, run } from './interpreters.ts'

const deployText = (name: string) => readFileSync(join(ROOT, 'src/operator/deploy', name), 'utf8')
const UNIT = deployText('upi-payments.service')
/** The output of the guide's `sed` for that unit. */
const [PRINT_TEMPLATE = ''] = blockWith('operator', 'sh', 'EnvironmentFile=').split(' > ')
const TEMPLATE = execFileSync('sh', ['-c', PRINT_TEMPLATE], { cwd: ROOT, encoding: 'utf8' })
const SETTINGS = blockWith('operator', 'ini', 'NODE_ENV=production')
const CADDYFILE = blockWith('operator', 'caddyfile', '127.0.0.1:3000')
const OPS = blockWith('operator', 'sh', 'dist/cli/ops.js "$@"')
const URLS = Object.fromEntries(
  blocksOf('operator', '').flatMap((text) => {
    const [, role, parameters = ''] =
      /^postgres:\/\/(upi_\w+):PASSWORD@db\.example:5432\/upi(\?.*)?\n$/.exec(text) ?? []
    return role ? [[parameters === '' ? role : 'encrypted', text]] : []
  }),
)
const START = blockWith('operator', 'sh', 'dist/server.js')
const SUPERUSER = blockWith('operator', 'sh', "command='\\password upi_owner'")
const DUMP = blockWith('operator', 'sh', 'pg_dump --format=custom upi > upi.dump')
const RESTORE = blockWith('operator', 'sh', 'pg_restore --dbname=upi_restored')
const UPGRADE = blockWith('operator', 'sh', 'dist.new/cli/ops.js migrate')
const TIMEOUT_MS = 120_000
/** An installed PostgreSQL with createdb, psql and pg_dump, which the embedded one lacks. */
const postgres = findPostgresWith('pg_dump')
/** Address of a client that is not the proxy. */
const CALLER = '127.0.0.2'

describe('an installation without Docker according to the operator manual', () => {
  let folder: string
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  const running: ChildProcess[] = []

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'upi-payments-installation-'))
    database = await createTestDatabase({ empty: true })
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(readFileSync(join(ROOT, 'src/operator/deploy/roles.sql'), 'utf8'))
    await client.end()
    symlinkSync(join(ROOT, 'migrations'), join(folder, 'migrations'))
    await promisify(execFile)(process.execPath, ['src/dev/build.mjs', join(folder, 'dist')], {
      cwd: ROOT,
      env: { ...process.env, COMMIT: '0a1b2c3' },
    })
    mkdirSync(join(folder, 'settings'))
    const settings = SETTINGS.replace('=SECRET', '=a-secret-of-a-test').replace(
      '=KEY',
      `=${randomBytes(32).toString('base64')}`,
    )
    writeFileSync(join(folder, 'settings/settings.env'), settings)
    writeFileSync(join(folder, 'settings/database-url'), toThisDatabase(URLS.upi_service))
    writeFileSync(join(folder, 'settings/owner-database-url'), toThisDatabase(URLS.upi_owner))
    writeFileSync(join(folder, 'settings/console-database-url'), toThisDatabase(URLS.upi_console))
    const { code, stdout, stderr } = await run(['sh', '-ec', inFolder(`${OPS}\nops migrate`)], folder, {})
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stdout).toMatch(/^Applied 0001_/)
  }, TIMEOUT_MS)
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  const toThisDatabase = (text = '') =>
    text.replaceAll(/postgres:\/\/(upi_\w+):PASSWORD@db\.example:5432\/upi/g, (_, role) => asRole(database.url, role))
  const inFolder = (text: string) =>
    text.replaceAll('/etc/upi-payments', join(folder, 'settings')).replaceAll('/opt/upi-payments', folder)

  it('ops --version, the metric, the OpenAPI document and the SBOM of an installation have the version and commit of its build', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'dist/cli/ops.js'), '--version'])
    expect(stdout).toBe(`ops ${version} (commit 0a1b2c3)\n`)
    const { child, log } = await startService(await freePort())
    const { address, ops } = JSON.parse(log[0] ?? '{}')
    const metrics = await (await fetch(`${ops}/metrics`)).text()
    expect(metrics).toContain(`\nupi_payments_build_info{version="${version}",commit="0a1b2c3"} 1\n`)
    expect(await (await fetch(`${address}/openapi.json`)).json()).toMatchObject({ info: { version } })
    expect(await end(child)).toBe(0)
    const sbom = JSON.parse(readFileSync(join(folder, 'dist/sbom.cdx.json'), 'utf8'))
    expect(sbom.metadata.component.version).toBe(version)
  })

  /** Starts the service as the unit does, on the ports of this test. */
  function startService(port: number): Promise<{ child: ChildProcess; log: string[] }> {
    const { command, environment } = asUnit(UNIT)
    return start(command, port, environment)
  }

  /** The command of a unit, and the path of the file that systemd passes to it. */
  function asUnit(unit: string) {
    const [, id, path = ''] = /^LoadCredential=(\S+?):(\S+)$/m.exec(unit) ?? []
    const [, variable = ''] = /^Environment=(\w+_FILE)=\/run\/credentials\/%n\/(\S+)$/m.exec(unit) ?? []
    expect(unit).toContain(`Environment=${variable}=/run/credentials/%n/${id}\n`)
    const [, args = ''] = /^ExecStart=\/usr\/bin\/node (.+)$/m.exec(unit) ?? []
    const [, file = ''] = /^EnvironmentFile=(.+)$/m.exec(unit) ?? []
    const command = `cd ${folder}; exec ${process.execPath} --env-file=${inFolder(file)} ${args}`
    return { command, environment: { [variable]: inFolder(path) } }
  }

  async function start(command: string, port: number, environment: Record<string, string> = {}) {
    const child = spawn('sh', ['-c', command], {
      env: { ...withoutDatabase(), ...environment, PORT: String(port), OPS_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    running.push(child)
    const log: string[] = []
    const lines = createInterface({ input: child.stdout }).on('line', (line) => log.push(line))
    await once(lines, 'line')
    expect(JSON.parse(log[0] ?? '{}')).toMatchObject({ msg: 'Listening', publicUrl: 'https://pay.example' })
    return { child, log }
  }

  function withoutDatabase() {
    const { DATABASE_URL: _, ...inherited } = process.env
    return inherited
  }

  it.runIf(has('systemd-analyze', { mustHave: false })).each([
    ['upi-payments.service', UNIT],
    ['upi-payments@.service', TEMPLATE],
    ['upi-payments-console.service', deployText('upi-payments-console.service')],
    ['upi-payments-daily.service', deployText('upi-payments-daily.service')],
    ['upi-payments-daily.timer', deployText('upi-payments-daily.timer')],
  ])('the unit %s in the operator manual has no errors according to systemd', async (name, unit) => {
    const file = join(folder, name)
    writeFileSync(file, unit.replace('/usr/bin/node', process.execPath))
    const { code, stdout, stderr } = await run(['systemd-analyze', 'verify', '--man=no', file], folder, {})
    expect({ code, output: stdout + stderr }).toEqual({ code: 0, output: '' })
  })

  it('an installation without Docker runs several instances from a template unit that differs from the single unit only in its ports', () => {
    const ports = 'Environment=PORT=%i OPS_PORT=1%i\n'
    expect(TEMPLATE).toContain(ports)
    expect(TEMPLATE.replace(ports, '')).toBe(UNIT)
    // systemd applies the settings file last, so a port in it would override the instance's port.
    expect(SETTINGS).not.toMatch(/^(OPS_)?PORT=/m)
  })

  it('an installation without Docker serves as the role upi_service, even during an upgrade, and exits with 0 when stopped', async () => {
    const port = await freePort()
    const { child } = await startService(port)
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
    expect(await status('/readyz')).toBe(200)
    cpSync(join(folder, 'dist'), join(folder, 'dist.new'), { recursive: true })
    // The test has no git repository, no systemd and no /opt/upi-payments.
    const commands = UPGRADE.replaceAll(/^(cd|git|systemctl) .*\n/gm, '').replace(/^DATABASE_URL_FILE=\S+ \\\n */m, '')
    const environment = { DATABASE_URL: asRole(database.url, 'upi_owner') }
    const upgraded = await run(['sh', '-ec', commands], folder, environment)
    expect(upgraded).toMatchObject({ code: 0, stdout: 'The schema is up to date.\n' })
    for (const path of ['/readyz', '/docs/merchant', '/docs/reference', '/openapi.json'])
      expect(await status(path)).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('an installation without Docker starts without systemd and stops on SIGTERM', async () => {
    const port = await freePort()
    const { child } = await start(inFolder(START), port)
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('an installation without Docker serves the console as its unit starts it, once an operator has a key', async () => {
    const port = await freePort()
    const { command, environment } = asUnit(deployText('upi-payments-console.service'))
    const settings = { ...environment, CONSOLE_PORT: String(port) }
    const withoutKey = await run(['sh', '-c', command], folder, settings)
    expect(withoutKey).toMatchObject({ code: 1, stderr: expect.stringContaining('ops keys create --operator') })

    const create = inFolder(`${OPS}\nops keys create --operator asha --rights read --json`)
    const { stdout } = await run(['sh', '-ec', create], folder, {})
    const child = startReading('sh', ['-c', command], { env: { ...withoutDatabase(), ...settings } }).child
    running.push(child)
    const status = (headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${port}/`, { headers }).then((response) => response.status)
    await expect.poll(() => status().catch(() => undefined), { timeout: 30_000 }).toBe(401)
    expect(await status({ authorization: basic(JSON.parse(stdout)) })).toBe(200)
    expect(await end(child)).toBe(0)
  })

  it('an installation without Docker runs every command of the daily unit', { timeout: TIMEOUT_MS }, async () => {
    const unit = deployText('upi-payments-daily.service')
    const [, id, path = ''] = /^LoadCredential=(\S+?):(\S+)$/m.exec(unit) ?? []
    expect(unit).toContain(`Environment=DATABASE_URL_FILE=/run/credentials/%n/${id}\n`)
    const commands = [...unit.matchAll(/^ExecStart=\/usr\/bin\/node (.+)$/gm)]
    expect(commands.length).toBeGreaterThan(1)
    for (const [, args = ''] of commands) {
      const command = [process.execPath, `--env-file=${join(folder, 'settings/settings.env')}`, ...args.split(' ')]
      const environment = { DATABASE_URL_FILE: inFolder(path) }
      const { code, stderr } = await run(command as [string, ...string[]], folder, environment)
      expect(code, `${args}\n${stderr}`).toBe(0)
    }
  })

  it.runIf(postgres && has('openssl', { mustHave: true }))(
    'the service connects to PostgreSQL over TLS with the guide’s parameters only if the certificate authority and the host match',
    { timeout: TIMEOUT_MS },
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'upi-payments-tls-'))
      chmodSync(directory, 0o755)
      const file = (name: string) => join(directory, name)
      const certificate = (name: string, host: string) => {
        const subject = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`]
        const key = [
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-keyout',
          file(`${name}.key`),
        ]
        const args = ['req', '-x509', ...key, '-out', file(`${name}.pem`), '-days', '2', ...subject]
        execFileSync('openssl', args, { stdio: 'ignore' })
      }
      certificate('localhost', 'localhost')
      certificate('other', 'db.example')
      const tls = (name: string) => [
        'ssl=on',
        `ssl_cert_file=${file(`${name}.pem`)}`,
        `ssl_key_file=${file(`${name}.key`)}`,
      ]
      const server = await startPostgresServer(join(directory, 'server'), tls('localhost'), postgres)
      try {
        const { uid, gid } = statSync(server.cluster.dataDirectory)
        for (const name of ['localhost', 'other']) chownSync(file(`${name}.key`), uid, gid)
        await server.shutDown()
        await server.restart()
        const { password, port, username } = new URL(server.urlOf('postgres'))
        const urlWith = (host: string, authority: string) =>
          (URLS.encrypted ?? '')
            .trim()
            .replace('upi_service:PASSWORD@db.example:5432/upi', `${username}:${password}@${host}:${port}/postgres`)
            .replace('/etc/ssl/upi-db-ca.pem', file(`${authority}.pem`))
        const isEncrypted = async (url: string) => {
          const db = openPool(url)
          try {
            const { rows } = await db.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
            return rows[0].ssl
          } finally {
            await db.end()
          }
        }
        expect(await isEncrypted(urlWith('localhost', 'localhost'))).toBe(true)
        await expect(isEncrypted(urlWith('localhost', 'other'))).rejects.toThrow(/certificate/)
        await expect(isEncrypted(urlWith('127.0.0.1', 'localhost'))).rejects.toThrow(/IP/)
      } finally {
        server.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )

  it.runIf(postgres)(
    'the guide’s commands create, back up and restore an installation with its own PostgreSQL',
    { timeout: TIMEOUT_MS },
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'upi-payments-installation-'))
      chmodSync(directory, 0o755)
      const server = await startPostgresServer(join(directory, 'server'), [], postgres)
      try {
        symlinkSync(join(ROOT, 'src'), join(directory, 'src'))
        const { username, password, port } = new URL(server.urlOf('upi'))
        const superuser = {
          ...{ PGHOST: '127.0.0.1', PGPORT: port, PGUSER: username, PGPASSWORD: password },
          PATH: `${postgres}/bin:${process.env.PATH}`,
        }
        const runLines = async (lines: string) => {
          for (const line of lines.split('\n').filter((line) => line !== '' && !line.startsWith('systemctl'))) {
            // Without a terminal, psql reads the password and its repetition from stdin.
            const command = `printf '%s\\n' ${ROLE_PASSWORD} ${ROLE_PASSWORD} | setsid --wait sh -ec "$LINE"`
            const { code, stderr } = await run(['sh', '-c', command], directory, { ...superuser, LINE: line })
            expect(code, `${line}\n${stderr}`).toBe(0)
          }
        }
        const ops = async (...args: string[]) => {
          const environment = { DATABASE_URL: asRole(server.urlOf('upi'), 'upi_owner') }
          const outcome = await run([process.execPath, join(folder, 'dist/cli/ops.js'), ...args], folder, environment)
          expect(outcome).toMatchObject({ code: 0 })
          return outcome.stdout
        }
        const addMerchant = (mid: string) =>
          ops('merchants', 'add', '--mid', mid, '--name', 'Chai', '--vpa', 'chai@examplebank', '--mcc', '5814')

        await runLines(SUPERUSER)
        await ops('migrate')
        await addMerchant('BEFORE')
        await runLines(DUMP)
        await addMerchant('AFTER')
        await runLines(RESTORE)
        expect(await ops('migrate')).toBe('The schema is up to date.\n')

        const client = new pg.Client({ connectionString: asRole(server.urlOf('upi'), 'upi_service') })
        await client.connect()
        try {
          expect((await client.query('select mid from merchants')).rows).toEqual([{ mid: 'BEFORE' }])
          await expect(client.query('create temporary table filled (id int)')).rejects.toThrow('permission denied')
          await expect(client.query('drop table merchants')).rejects.toThrow('must be owner')
          const { rows } = await client.query(
            `select datname, datcollate, pg_get_userbyid(datdba) as owner from pg_database where datname like 'upi%' order by 1`,
          )
          expect(rows).toEqual([
            { datname: 'upi', datcollate: 'C', owner: 'upi_owner' },
            { datname: 'upi_before', datcollate: 'C', owner: 'upi_owner' },
          ])
        } finally {
          await client.end()
        }
      } finally {
        server.stop()
        rmSync(directory, { recursive: true, force: true })
      }
    },
  )

  it.runIf(has('caddy', { mustHave: false }))(
    'an installation behind Caddy logs the clients’ addresses, and loses no request during a restart',
    { timeout: TIMEOUT_MS },
    async () => {
      const [port, securePort] = [await freePort(), await freePort()]
      const { child, log } = await startService(port)
      const local = CADDYFILE.replace(/^pay\.example \{$/m, `https://localhost:${securePort} {\n    tls internal`)
      // Caddy uses its own authority and writes only below the folder.
      const options = '{\n    admin off\n    skip_install_trust\n    auto_https disable_redirects\n}\n'
      writeFileSync(join(folder, 'Caddyfile'), options + local.replace('127.0.0.1:3000', `127.0.0.1:${port}`))
      const caddy = spawn('caddy', ['run', '--config', 'Caddyfile'], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
        stdio: 'ignore',
      })
      running.push(caddy)
      const statusOf = (path: string) => secureStatus(securePort, path)
      await expect.poll(() => statusOf('/readyz').catch(() => 0), { timeout: 20_000 }).toBe(200)

      expect(await statusOf('/v1/payments/checkPaymentStatus')).toBe(401)
      await expect.poll(() => log.map((line) => JSON.parse(line).address)).toContain(CALLER)

      const responses: Promise<number>[] = []
      const requests = setInterval(() => responses.push(statusOf('/v1/payments/checkPaymentStatus')), 20)
      await sleep(500)
      child.kill('SIGTERM')
      await once(child, 'exit')
      await sleep(500)
      await startService(port)
      await sleep(500)
      clearInterval(requests)
      const statuses = await Promise.all(responses)
      expect(statuses.length).toBeGreaterThan(20)
      expect(new Set(statuses)).toEqual(new Set([401]))
    },
  )
})

/** The status of a POST without credentials, or of a GET where that is all there is, by TLS. */
function secureStatus(port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const method = path.startsWith('/v1') ? 'POST' : 'GET'
    const options = {
      port,
      path,
      method,
      host: 'localhost',
      family: 4,
      localAddress: CALLER,
      rejectUnauthorized: false,
    }
    const call = request({ ...options, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
    call.on('error', reject).end()
  })
}
