import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { namingLine, runOps, runProgram } from '../support/ops.ts'
import { ROOT, start } from '../support/processes.ts'
import { newMerchant } from '../support/service.ts'
import { until } from '../support/wait.ts'

let migrated: Awaited<ReturnType<typeof createTestDatabase>>

beforeAll(async () => {
  migrated = await createTestDatabase()
})

it('ops today --watch refreshes the output every few seconds until Ctrl-C', async () => {
  const env = { ...process.env, DATABASE_URL: migrated.url }
  const args = ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'today', '--watch', '--json']
  const child = start(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] })
  let shown = ''
  child.stdout?.on('data', (chunk) => {
    shown += chunk
  })
  await until('it has shown it twice', () => shown.split('\n').length > 2)
  const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve([code, signal])))
  child.kill('SIGINT')
  expect(await ended).toEqual([0, null])
  const [first = '', second = ''] = shown.split('\n')
  expect(JSON.parse(second).at > JSON.parse(first).at).toBe(true)
})

it('ops exits without an error if the reader of the output closes the pipe', async () => {
  const env = { ...process.env, DATABASE_URL: migrated.url }
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'merchants', 'list'], {
    cwd: ROOT,
    env,
  })
  child.stdout.destroy()
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  expect({ code, stderr }).toEqual({ code: 0, stderr: namingLine(migrated.url) })
})

it('settlements import, killed half-way, leaves an audit row without outcome and no settlements', async () => {
  const { url, db } = await createTestDatabase()
  const { mid } = await newMerchant(db)
  const env = { ...process.env, DATABASE_URL: url }
  const child = start(
    process.execPath,
    ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'settlements', 'import', '-'],
    {
      cwd: ROOT,
      env,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  )
  // More than one batch, so that rows are inserted. The input stays open, so that the import cannot finish.
  const line = (i: number) => `${mid},1.00,KILLED${i},BRN1,SUCCESS,2026-01-15T00:00:00Z\n`
  child.stdin?.on('error', () => undefined)
  child.stdin?.write(
    `mid,amount,utr,bank_reference_number,status,initiation_date\n${Array.from({ length: 25_000 }, (_, i) => line(i)).join('')}`,
  )
  const inserting = `select from pg_stat_activity
     where datname = current_database() and query like 'truncate incoming%' and state = 'idle in transaction'`
  await until('the import has inserted rows', async () => (await db.query(inserting)).rowCount === 1)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const { stdout } = await runOps(url, ['audit', '--json'])
  expect(JSON.parse(stdout)).toMatchObject([{ command: 'settlements import', outcome: null, detail: null }])
  expect((await runOps(url, ['audit'])).stdout).toMatch(/unknown: still running, killed or interrupted/)
  await until('PostgreSQL has rolled them back', async () => (await db.query(inserting)).rowCount === 0)
  expect((await db.query('select from settlements where mid = $1', [mid])).rowCount).toBe(0)
})

describe('the database that ops uses', () => {
  const { DATABASE_URL: _, DATABASE_MIGRATE_URL: __, NODE_ENV: ___, ...environment } = process.env
  const PASSWORD = 'never-to-be-read'
  const withPassword = (url: string) => Object.assign(new URL(url), { password: PASSWORD }).href

  it.each([
    ['that succeeds', () => migrated.url, ['merchants', 'list', '--json'], 0],
    ['that fails', () => withPassword('postgres://upi@127.0.0.1:1/away'), ['merchants', 'list', '--json'], 1],
  ])(
    'ops prints its database without the password on stderr before other output, for a command %s',
    async (_name, url, args, expected) => {
      const env = { ...environment, DATABASE_URL: url() }
      const { code, stdout, stderr } = await runProgram('src/operator/terminal/ops.ts', args, { env })
      expect([code, stderr.split('\n')[0]]).toEqual([expected, namingLine(url()).trimEnd()])
      expect(stdout).toBe(expected === 0 ? '[]\n' : '')
      expect(stdout + stderr).not.toContain(PASSWORD)
    },
  )

  it('ops connects to DATABASE_MIGRATE_URL rather than DATABASE_URL', async () => {
    const env = {
      ...environment,
      DATABASE_URL: 'postgres://service@127.0.0.1:1/away',
      DATABASE_MIGRATE_URL: migrated.url,
    }
    const { code, stderr } = await runProgram('src/operator/terminal/ops.ts', ['merchants', 'list'], { env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: namingLine(migrated.url) })
  })

  describe('without DATABASE_URL, on a server', () => {
    let server: string
    beforeAll(() => {
      // A separate checkout, because `dist` must exist in it, and because as root its database is in another place.
      server = mkdtempSync(join(tmpdir(), 'upi-payments-server-'))
      for (const entry of ['node_modules', 'migrations']) symlinkSync(join(ROOT, entry), join(server, entry))
      for (const entry of ['src', 'package.json']) cpSync(join(ROOT, entry), join(server, entry), { recursive: true })
    })
    afterAll(() => rmSync(server, { recursive: true, force: true }))

    it.each([
      ['in production', { NODE_ENV: 'production' }, false, ''],
      ['with a build', {}, true, 'ops: dist/ contains a build. Name its database in DATABASE_URL, or remove dist/.\n'],
    ])(
      'npm run ops without DATABASE_URL %s fails instead of creating a new database',
      async (_name, variables, built, hint) => {
        if (built) mkdirSync(join(server, 'dist'))
        const env = { ...environment, ...variables }
        const rejected = await runProgram('src/dev/ops.ts', ['merchants', 'list'], { env, root: server })
        expect(rejected).toEqual({ code: 1, stdout: '', stderr: `${hint}ops: DATABASE_URL is required\n` })
      },
    )
  })
})
