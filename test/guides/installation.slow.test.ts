import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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
import { startPostgresServer } from '../support/postgres-server.ts'
import { freePort } from '../support/processes.ts'
import { blockWith, ROOT } from './guides.ts'
import { has, run } from './interpreters.ts'

const UNIT = readFileSync(join(ROOT, 'src/operator/deploy/upi-payments.service'), 'utf8')
/** As the guide's `sed` makes it of the unit. */
const [PRINT_TEMPLATE = ''] = blockWith('operator', 'sh', 'EnvironmentFile=').split(' > ')
const TEMPLATE = execFileSync('sh', ['-c', PRINT_TEMPLATE], { cwd: ROOT, encoding: 'utf8' })
const SETTINGS = blockWith('operator', 'ini', 'NODE_ENV=production')
const CADDYFILE = blockWith('operator', 'caddyfile')
const INSTALL = blockWith('operator', 'sh', 'dist/cli/ops.js migrate')
const SUPERUSER = blockWith('operator', 'sh', "command='\\password upi_owner'")
const DUMP = blockWith('operator', 'sh', 'pg_dump --format=custom upi > upi.dump')
const RESTORE = blockWith('operator', 'sh', 'pg_restore --dbname=upi_restored')
const UPGRADE = blockWith('operator', 'sh', 'dist.new/cli/ops.js migrate')
const TIMEOUT_MS = 120_000
/** With the superuser's tools, which the PostgreSQL that comes with the project has not. */
const postgres = findPostgresWith('pg_dump')
/** Of a caller who is not the proxy. */
const CALLER = '127.0.0.2'

describe('an installation without Docker, by the guide', () => {
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
    await promisify(execFile)(process.execPath, ['src/dev/build.mjs', join(folder, 'dist')], { cwd: ROOT })
    const { code, stdout, stderr } = await run(['sh', '-ec', toThisDatabase(INSTALL)], folder, {})
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stdout).toMatch(/^applied 0001_/)
  }, TIMEOUT_MS)
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  const toThisDatabase = (text: string) =>
    text.replaceAll(/postgres:\/\/(upi_\w+):PASSWORD@db\.example:5432\/upi/g, (_, role) => asRole(database.url, role))

  /** What systemd would start, on the ports of this test. */
  async function startService(port: number): Promise<{ child: ChildProcess; log: string[] }> {
    const command = /^ExecStart=\/usr\/bin\/node (.+)$/m.exec(UNIT)?.[1]?.split(' ') ?? []
    const settings = toThisDatabase(SETTINGS)
      .replace('=SECRET', '=a-secret-of-a-test')
      .replace('=KEY', `=${randomBytes(32).toString('base64')}`)
    const environment = Object.fromEntries(
      [...settings.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    )
    const child = spawn(process.execPath, command, {
      cwd: folder,
      env: { ...environment, PORT: String(port), OPS_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    running.push(child)
    const log: string[] = []
    const lines = createInterface({ input: child.stdout }).on('line', (line) => log.push(line))
    await once(lines, 'line')
    expect(JSON.parse(log[0] ?? '{}')).toMatchObject({ msg: 'listening', publicUrl: 'https://pay.example' })
    return { child, log }
  }

  it.runIf(has('systemd-analyze', { mustHave: false })).each([
    ['upi-payments.service', UNIT],
    ['upi-payments@.service', TEMPLATE],
  ])('an installation by the guide has a unit %s in which systemd finds no fault', async (name, unit) => {
    const file = join(folder, name)
    writeFileSync(file, unit.replace('/usr/bin/node', process.execPath))
    const { code, stdout, stderr } = await run(['systemd-analyze', 'verify', '--man=no', file], folder, {})
    expect({ code, said: stdout + stderr }).toEqual({ code: 0, said: '' })
  })

  it('the guide’s template unit for several instances differs from the single unit by its ports alone', () => {
    const ports = 'Environment=PORT=%i OPS_PORT=1%i\n'
    expect(TEMPLATE).toContain(ports)
    expect(TEMPLATE.replace(ports, '')).toBe(UNIT)
    // Else the settings, which are read afterwards, would win.
    expect(SETTINGS).not.toMatch(/^(OPS_)?PORT=/m)
  })

  it('an installation by the guide runs as the service’s role, also while upgraded, and ends with 0 when stopped', async () => {
    const port = await freePort()
    const { child } = await startService(port)
    const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
    expect(await status('/readyz')).toBe(200)
    cpSync(join(folder, 'dist'), join(folder, 'dist.new'), { recursive: true })
    const commands = UPGRADE.replace(/^git pull .*\n/, '').replace(/^systemctl .*\n/m, '')
    const environment = { DATABASE_URL: asRole(database.url, 'upi_owner') }
    const upgraded = await run(['sh', '-ec', commands], folder, environment)
    expect(upgraded).toMatchObject({ code: 0, stdout: 'The schema is up to date.\n' })
    for (const path of ['/readyz', '/docs/merchant', '/docs/reference', '/openapi.json'])
      expect(await status(path)).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it.runIf(postgres)(
    'an installation is made, backed up and restored by the guide’s lines, on a PostgreSQL of its own',
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
        const type = async (lines: string) => {
          for (const line of lines.split('\n').filter((line) => line !== '' && !line.startsWith('systemctl'))) {
            // Without a terminal, so that psql reads the password that it asks for, twice.
            const typed = `printf '%s\\n' ${ROLE_PASSWORD} ${ROLE_PASSWORD} | setsid --wait sh -ec "$LINE"`
            const { code, stderr } = await run(['sh', '-c', typed], directory, { ...superuser, LINE: line })
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

        await type(SUPERUSER)
        await ops('migrate')
        await addMerchant('KEPT')
        await type(DUMP)
        await addMerchant('LATER')
        await type(RESTORE)
        expect(await ops('migrate')).toBe('The schema is up to date.\n')

        // As the service would find it.
        const client = new pg.Client({ connectionString: asRole(server.urlOf('upi'), 'upi_service') })
        await client.connect()
        try {
          expect((await client.query('select mid from merchants')).rows).toEqual([{ mid: 'KEPT' }])
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
    'an installation by the guide logs callers’ addresses behind the proxy, and loses no request during a restart',
    { timeout: TIMEOUT_MS },
    async () => {
      const [port, securePort] = [await freePort(), await freePort()]
      const { child, log } = await startService(port)
      const local = CADDYFILE.replace(/^pay\.example \{$/m, `https://localhost:${securePort} {\n    tls internal`)
      // No certificate is asked for, and nothing outside of the folder is changed.
      const options = '{\n    admin off\n    skip_install_trust\n    auto_https disable_redirects\n}\n'
      writeFileSync(join(folder, 'Caddyfile'), options + local.replace('127.0.0.1:3000', `127.0.0.1:${port}`))
      const caddy = spawn('caddy', ['run', '--config', 'Caddyfile'], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
        stdio: 'ignore',
      })
      running.push(caddy)
      const ask = (path: string) => secureStatus(securePort, path)
      await expect.poll(() => ask('/readyz').catch(() => 0), { timeout: 20_000 }).toBe(200)

      expect(await ask('/v1/payments/checkPaymentStatus')).toBe(401)
      await expect.poll(() => log.map((line) => JSON.parse(line).address)).toContain(CALLER)

      const answers: Promise<number>[] = []
      const asking = setInterval(() => answers.push(ask('/v1/payments/checkPaymentStatus')), 20)
      await sleep(500)
      child.kill('SIGTERM')
      await once(child, 'exit')
      await sleep(500)
      await startService(port)
      await sleep(500)
      clearInterval(asking)
      const statuses = await Promise.all(answers)
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
