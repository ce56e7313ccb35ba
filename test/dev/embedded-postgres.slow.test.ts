import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { type PostgresOwner, startPostgresOwner } from '../support/postgres-owner.ts'
import { until } from '../support/wait.ts'

const directory = mkdtempSync(join(inject('runDirectory'), 'launcher-'))
const owners: PostgresOwner[] = []

async function startOwner(): Promise<PostgresOwner> {
  const owner = await startPostgresOwner(directory)
  owners.push(owner)
  return owner
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const pidFile = (of = directory) => join(of, readdirSync(of).find((name) => /^\d+$/.test(name)) ?? '', 'postmaster.pid')
const postmasterPid = (of = directory) => Number(readFileSync(pidFile(of), 'utf8').split('\n')[0])
const parentOf = (pid: number) => Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }))
const isUp = (url: string) =>
  query(url, 'select 1').then(
    () => true,
    () => false,
  )

describe('the embedded PostgreSQL', () => {
  beforeAll(async () => {
    const first = await startOwner()
    await query(first.url, 'create table kept (word text)')
    await query(first.url, "insert into kept values ('chai')")
    await first.leave()
    expect(await isUp(first.url)).toBe(false)
  })

  // After a failed test its server may still run until its owner leaves.
  afterEach(() => Promise.all(owners.splice(0).map((owner) => owner.leave())))

  test('the embedded PostgreSQL listens only on 127.0.0.1, in UTC, with byte order collation and a password file that only its owner can read', async () => {
    const owner = await startOwner()
    const settings = await query(
      owner.url,
      `select current_setting('listen_addresses') as listen, current_setting('unix_socket_directories') as sockets,
              current_setting('timezone') as timezone, datcollate, pg_encoding_to_char(encoding) as encoding
       from pg_database where datname = 'postgres'`,
    )
    expect(settings).toEqual([{ listen: '127.0.0.1', sockets: '', timezone: 'UTC', datcollate: 'C', encoding: 'UTF8' }])
    expect(statSync(join(directory, 'password')).mode & 0o777).toBe(0o600)
    const withoutPassword = new URL(owner.url)
    withoutPassword.password = 'wrong'
    await expect(query(withoutPassword.href, 'select 1')).rejects.toThrow('password authentication failed')
    await owner.leave()
  })

  test('the embedded PostgreSQL stops soon after its parent process is killed, and starts again with its data', async () => {
    const first = await startOwner()
    await first.killHard()
    await until('the server has stopped', async () => !(await isUp(first.url)))
    const second = await startOwner()
    expect(await query(second.url, 'select word from kept')).toEqual([{ word: 'chai' }])
    await second.leave()
  })

  test('the embedded PostgreSQL serves processes that start concurrently, until the process that started PostgreSQL exits', async () => {
    const fresh = mkdtempSync(join(inject('runDirectory'), 'fresh-'))
    const started = await Promise.all([1, 2, 3].map(() => startPostgresOwner(fresh)))
    expect(new Set(started.map(({ url }) => url)).size).toBe(1)
    const [{ url = '' } = {}] = started
    const starter = parentOf(postmasterPid(fresh))
    const [owner, others] = [started.filter(({ pid }) => pid === starter), started.filter(({ pid }) => pid !== starter)]
    expect(owner).toHaveLength(1)
    for (const one of others) await one.leave()
    expect(await isUp(url)).toBe(true)
    for (const one of owner) await one.leave()
    expect(await isUp(url)).toBe(false)
  })

  test('the embedded PostgreSQL starts again with its data after PostgreSQL and its parent process were killed', async () => {
    const first = await startOwner()
    const pid = postmasterPid()
    await first.killHard()
    process.kill(pid, 'SIGKILL')
    const second = await startOwner()
    expect(await query(second.url, 'select word from kept')).toEqual([{ word: 'chai' }])
    await second.leave()
  })

  test('the embedded PostgreSQL starts despite a postmaster.pid whose process id now belongs to an unrelated process', async () => {
    const first = await startOwner()
    const pid = postmasterPid()
    const content = readFileSync(pidFile(), 'utf8')
    await first.killHard()
    process.kill(pid, 'SIGKILL')
    const unrelated = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    writeFileSync(pidFile(), content.replace(/^\d+/, String(unrelated.pid)))
    const second = await startOwner()
    expect(await query(second.url, 'select word from kept')).toEqual([{ word: 'chai' }])
    await second.leave()
    expect(unrelated.exitCode).toBe(null)
    expect(unrelated.signalCode).toBe(null)
    unrelated.kill('SIGKILL')
  })
})
