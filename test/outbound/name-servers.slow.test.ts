import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { testPool } from '../support/database-url.ts'
import { createHttpClient, type HttpResponse, tally } from '../support/http-client.ts'
import { startNameServer } from '../support/name-server.ts'
import { ROOT, run, TYPESCRIPT } from '../support/processes.ts'
import { createRequest, forEach } from '../support/requests.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { newMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

const NAME_SERVER = '127.9.9.1'
const SILENT_NAME_SERVER = '127.9.9.2'
/** More than the threads on which Node.js calls getaddrinfo. */
const CALLS_TO_SILENT = 8
const CREATES = 200

const folder = mkdtempSync(join(tmpdir(), 'name-servers-'))
const nameServers = (...addresses: string[]) => {
  const file = join(folder, addresses.join())
  writeFileSync(file, addresses.map((address) => `nameserver ${address}\n`).join(''))
  // A separate mount namespace, so that other processes keep their /etc/resolv.conf.
  return ['unshare', '--mount', 'sh', '-c', `mount --bind ${file} /etc/resolv.conf && exec "$0" "$@"`]
}

/** Only root may mount, and in a container only with CAP_SYS_ADMIN. */
function mayMount(): boolean {
  const isAllowed =
    process.getuid?.() === 0 && existsSync('/etc/resolv.conf') && spawnSync('unshare', ['--mount', 'true']).status === 0
  if (!isAllowed) console.warn('No mount namespace: run as root. Skipped: tests with name servers of their own')
  return isAllowed
}

describe.skipIf(!mayMount())('name servers', () => {
  let servers: Awaited<ReturnType<typeof startNameServer>>[] = []
  beforeAll(async () => {
    servers = await Promise.all([
      startNameServer(NAME_SERVER, { 'database.example': 'answered', 'half.example': 'silent for IPv6' }),
      startNameServer(SILENT_NAME_SERVER, {}),
    ])
  })
  afterAll(() => {
    for (const server of servers) server.close()
    rmSync(folder, { recursive: true })
  })

  const addressesOf = async (name: string, limitMs: number, ...servers: string[]) => {
    const script = `
      import { resolve } from './src/platform/outbound/resolve.ts'
      console.log(JSON.stringify(await resolve('${name}', AbortSignal.timeout(${limitMs}))))`
    const [command = '', ...prefix] = nameServers(...servers)
    const node = [process.execPath, ...TYPESCRIPT, '--input-type=module', '--eval', script]
    return JSON.parse(await run(command, [...prefix, ...node], { cwd: ROOT }))
  }

  it('returns the addresses that have arrived if a DNS look-up is aborted', async () => {
    expect(await addressesOf('half.example', 500, NAME_SERVER)).toEqual(['127.0.0.1'])
  })

  it('tries the next name server if a name server does not respond', async () => {
    expect(await addressesOf('database.example', 500, SILENT_NAME_SERVER, NAME_SERVER)).toEqual(['127.0.0.1'])
  })

  describe('unresponsive name server of one acquirer', () => {
    let database: Awaited<ReturnType<typeof createTestDatabase>>
    let db: Database
    let service: ServerProcess
    const client = createHttpClient()
    beforeAll(async () => {
      database = await createTestDatabase()
      db = testPool(database.url, 2)
      const url = new URL(database.url)
      url.hostname = 'database.example'
      const settings = {
        CASHFREE_API_URL: 'https://silent.example/pg',
        CASHFREE_CLIENT_ID: 'client',
        CASHFREE_CLIENT_SECRET: 'secret',
      }
      service = await startServerProcess(url.href, settings, { prefix: nameServers(NAME_SERVER) })
    })
    afterAll(async () => {
      await service?.stop()
      client.close()
      await db?.end()
    })

    it('creates 200 orders through one acquirer while another acquirer’s name server does not respond', async () => {
      const neighbour = createRequest(await newMerchant(db))
      const silent = createRequest(await newMerchant(db, { acquirer: 'cashfree', acquirerMerchantId: 'CF1' }))
      const create = () => client.send(service.url, neighbour)
      expect((await create()).status).toBe(200)

      const failed: HttpResponse[] = []
      let isOver = false
      const harm = forEach(Array.from({ length: CALLS_TO_SILENT }), CALLS_TO_SILENT, async () => {
        while (!isOver) failed.push(await client.send(service.url, silent))
      })
      await until('look-ups are in progress', () => failed.length > 0)
      // Makes the service resolve the name of the database again, as after a restart of PostgreSQL.
      await db.query(`
        select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
      await expect.poll(async () => (await create()).status, { timeout: 5_000 }).toBe(200)
      const responses = await forEach(Array.from({ length: CREATES }), 4, create)
      const ready = await client.send(service.url, { method: 'GET', path: '/readyz' })
      isOver = true
      await harm
      expect([tally(responses), ready.status]).toEqual([`200 × ${CREATES}`, 200])
      expect(tally(failed)).toBe(`503 × ${failed.length}`)
      expect(service.log.join('\n')).toContain('The DNS returned no address for silent.example in time;')
    })
  })
})
