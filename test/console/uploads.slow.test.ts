import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { newUtr } from '../support/acquirer.ts'
import { newOperatorKey } from '../support/console.ts'
import { asRole } from '../support/database-url.ts'
import { opsOn } from '../support/ops.ts'
import { end, ROOT, startReading } from '../support/processes.ts'
import { basic, type Key, newMerchant, startService, type TestService } from '../support/service.ts'
import { storedUploads } from '../support/stored-uploads.ts'
import { until } from '../support/wait.ts'

const MIB = 1024 * 1024

let service: TestService
let running: ReturnType<typeof startReading>
let address: string
let key: Key
const folder = mkdtempSync(join(tmpdir(), 'uploads-test-'))
const { json } = opsOn(() => service.databaseUrl)

beforeAll(async () => {
  service = await startService()
  key = await newOperatorKey(service.db)
  const env = {
    ...process.env,
    CONSOLE_DATABASE_URL: asRole(service.databaseUrl, 'upi_console'),
    CONSOLE_PORT: '0',
    TMPDIR: folder,
  }
  running = startReading(process.execPath, ['--import', 'tsx', 'src/operator/terminal/ops.ts', 'console'], {
    cwd: ROOT,
    env,
  })
  await until('the console listens', () => /address +http/.test(running.said()))
  address = /address +(\S+)/.exec(running.said())?.[1] as string
})

const storedFiles = () => storedUploads(folder, running.child.pid)

async function send(body: FormData | URLSearchParams) {
  const headers = { authorization: basic(key), origin: new URL(address).origin }
  const path = new URL('/settlements-import', address)
  const response = await fetch(path, { method: 'POST', headers, body, redirect: 'manual' })
  const work = response.headers.get('location') ?? ''
  if (!work.startsWith('work?')) return { status: response.status, text: await response.text() }
  // The page of the work shows its progress, and then its result.
  for (;;) {
    const page = await fetch(new URL(work, address), { headers, redirect: 'manual' })
    if (!page.headers.has('refresh')) return { status: page.status, text: await page.text() }
    await page.text()
  }
}

function upload(fields: Record<string, string>, ...content: (string | Buffer)[]) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new File(content as string[], 'day.csv'))
  return send(form)
}

/** The largest resident memory that the console ever had, in bytes. */
const peakBytes = () =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${running.child.pid}/status`, 'utf8'))?.[1]) * 1024

it('a file of 60 MB is checked and imported without being read into memory', async () => {
  const { mid } = await newMerchant(service.db)
  const columns = ['amount', 'utr', 'bank_reference_number', 'status', 'initiation_date'].map(
    (name) => `--column=${name}=${name}`,
  )
  const layout = ['settlements', 'layout', 'add', '--name', mid, '--mid', mid, '--date', 'yyyy-mm-dd', ...columns]
  await json(...layout, '--status', 'SUCCESS=paid')
  const header = 'amount,utr,bank_reference_number,status,initiation_date,remark\n'
  const rows = (count: number) =>
    Array.from({ length: count }, () => `10,${newUtr()},B1,paid,2026-10-05,${'x'.repeat(30_000)}\n`)
  // The console loads its code with the first upload.
  expect((await upload({ layout: mid }, header, ...rows(600))).status).toBe(200)
  const before = peakBytes()
  const { status, text } = await upload({ layout: mid }, header, ...rows(2_090))
  expect([status, text]).toEqual([200, expect.stringMatching(/<dt>inserted<\/dt><dd>2090<\/dd>/)])
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] as string
  const change = field('change').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
  expect((await send(new URLSearchParams({ change, mac: field('mac') }))).status).toBe(303)
  expect((await json('settlements', 'imports')).at(-1)).toMatchObject({ file: 'day.csv', inserted: 2090 })
  expect(peakBytes() - before).toBeLessThan(50 * MIB)
})

it('a file of 64 MB and one byte is rejected and leaves nothing on disk', async () => {
  const before = storedFiles().length
  const { status, text } = await upload({}, Buffer.alloc(64 * MIB + 1, 'x'))
  expect([status, text]).toEqual([400, expect.stringContaining('Choose one file of at most 64 MB')])
  expect(storedFiles()).toHaveLength(before)
})

it('a console that is killed leaves no uploaded file on disk', async () => {
  await upload({}, 'mid,amount\n')
  expect(storedFiles().map(String)).toEqual(['mid,amount\n'])
  await end(running.child, 'SIGKILL')
  expect(readdirSync(folder).filter((name) => name.startsWith('upi-console-'))).toEqual([])
})
