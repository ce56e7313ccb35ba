import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { LIMITS, type Limits } from '../../src/limits.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestConsole, newOperatorKey, SAME_ORIGIN, type TestConsole } from '../support/console.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { basic, type Key, newMerchant, startService, type TestService, unique } from '../support/service.ts'
import { storedUploads } from '../support/stored-uploads.ts'
import { until } from '../support/wait.ts'

const IMPORT = '/settlements-import'
const BACK = 'settlements-imports'

const limits = (changed: Partial<Limits['console']>) => ({ ...LIMITS, console: { ...LIMITS.console, ...changed } })

let service: TestService
let site: TestConsole
let key: Key
let operator: string
let mid: string
/** The folder of one test, in which the console stores uploaded files without a name. */
let folder: string
const { json } = opsOn(() => service.databaseUrl)

beforeAll(async () => {
  service = await startService()
  site = await createTestConsole(service)
})
beforeEach(async () => {
  vi.stubEnv('TMPDIR', mkdtempSync(join(tmpdir(), 'uploads-test-')))
  folder = tmpdir()
  operator = unique('asha')
  key = await newOperatorKey(service.db, undefined, { operator })
  ;({ mid } = await newMerchant(service.db))
})

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date'
const row = (utr: string, amount = '10') => `${mid},${amount},${utr},B1,SUCCESS,2026-10-05 10:00:00`
const fileOf = (lines: readonly string[], name = 'day.csv') => new File([[HEADER, ...lines, ''].join('\n')], name)
const sha256Of = async (file: File) =>
  createHash('sha256')
    .update(await file.text())
    .digest('hex')

/** The files of all operators. */
const storedFiles = () => storedUploads(folder).map(String)

const textOf = (body: string) =>
  body
    .replace(/<[^>]+>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')

/** Returns the path of the first link on a page whose address begins with `start`. */
const linkTo = (start: string, body: string) =>
  `/${new RegExp(`href="(${start}[^"]*)"`).exec(body)?.[1]?.replaceAll('&#38;', '&')}`

describe('an import in the console', () => {
  it('an operator uploads a settlement file, checks its figures, imports and undoes it', async () => {
    const utr = newUtr()
    await storePaidOrder(service.db, { mid, utr, paidAt: new Date() })
    const file = fileOf([row(utr), row(newUtr(), '20.50')])
    const sha256 = await sha256Of(file)
    const list = await site.get(`/${BACK}`, key)
    const form = await site.get(linkTo('settlements-import\\?', list.body), key)
    expect(form.body).toMatch(
      /<form [^>]*enctype="multipart\/form-data"[\s\S]*<input type="file" name="file" required>/,
    )

    const before = [await json('settlements', 'imports'), await json('audit')]
    const checked = await site.post(IMPORT, { ...form.fields, rows: '2', file }, key)
    expect(textOf(checked.body)).toMatch(
      /Expected number of rows 2 inserted 2 unchanged 0 updated 0 matched 0 inserted amount ₹30\.50 unknown 1 .* Import settlements ₹30\.50 /,
    )
    expect(textOf(checked.body)).toMatch(
      new RegExp(`file day.csv size ${file.size} bytes SHA-256 ${sha256} Expected number of rows 2 `),
    )
    expect(textOf(checked.body)).toContain('ops settlements import ./day.csv --rows=2')
    expect([await json('settlements', 'imports'), await json('audit')]).toEqual(before)
    expect([storedFiles(), readdirSync(folder)]).toEqual([[await file.text()], []])

    const done = await site.post(IMPORT, checked.fields, key)
    expect([done.status, done.headers.location]).toEqual([303, BACK])
    const imported = (await json('settlements', 'imports')).at(-1)
    expect(imported).toMatchObject({ file: 'day.csv', person: operator, sha256, inserted: 2, amount: '30.50' })
    expect((await json('audit')).at(-1)).toMatchObject({
      person: operator,
      command: 'settlements import',
      arguments: { file: 'day.csv', rows: '2' },
      outcome: 'done',
      detail: { import: imported.import, inserted: 2 },
    })

    const after = await site.get(`/${BACK}`, key)
    const undo = await site.get(linkTo(`settlements-undo\\?import=${imported.import}&`, after.body), key)
    const confirmation = await site.post('/settlements-undo', undo.fields, key)
    expect((await site.post('/settlements-undo', confirmation.fields, key)).status).toBe(303)
    expect((await json('settlements', 'imports')).at(-1)).toMatchObject({ undoneBy: operator })
  })

  it('an operator uploads a bank statement of two merchants, checks its figures, imports and undoes it', async () => {
    const other = (await newMerchant(service.db)).mid
    const columns = ['day=Date', 'reference=Narration', 'debit=Debit', 'credit=Credit', 'balance=Balance']
    const flags = columns.map((column) => `--column=${column}`)
    await runOps(service.databaseUrl, ['statements', 'layout', 'add', '--name', mid, '--date', 'dd/mm/yyyy', ...flags])
    const csv = 'Date,Narration,Debit,Credit,Balance\n05/10/2026,NEFT-YESIG63220270133,,10.00,20.00\n'
    const fields = {
      layout: mid,
      mid: `${mid} ${other}`,
      from: '2026-10-01',
      to: '2026-10-31',
      back: 'statements-list',
    }
    const checked = await site.post('/statements-import', { ...fields, file: new File([csv], 'bank.csv') }, key)
    expect(textOf(checked.body)).toMatch(
      /may begin too late.* covers from 2026-10-06 lines 1 credits 1 credited ₹10\.00 /,
    )
    expect(textOf(checked.body)).toContain(`Merchant with payouts to the bank account ${mid} ${other} `)
    expect((await site.post('/statements-import', checked.fields, key)).headers.location).toBe('statements-list')
    const { statement, mids, file } = (await json('statements', 'list')).at(-1)
    expect([mids, file]).toEqual([[mid, other].sort(), 'bank.csv'])
    const list = await site.get('/statements-list', key)
    const undo = await site.get(linkTo(`statements-undo\\?statement=${statement}&`, list.body), key)
    const confirmation = await site.post('/statements-undo', undo.fields, key)
    expect((await site.post('/statements-undo', confirmation.fields, key)).status).toBe(303)
    expect((await json('statements', 'list')).at(-1)).toMatchObject({ undoneBy: operator })
  })

  it('shows the invalid lines of a file as the command does, and no confirmation', async () => {
    const file = fileOf([row(newUtr()), row('U-1'), row(newUtr(), 'ten')])
    const { stderr } = await runOps(service.databaseUrl, ['settlements', 'import', '-'], await file.text())
    const { status, body, fields } = await site.post(IMPORT, { file }, key)
    expect([status, fields.mac]).toEqual([400, undefined])
    expect(textOf(body)).toMatch(/line 3: .* line 4: /)
    for (const part of stderr.replace('ops: ', '').trim().split('; ')) expect(textOf(body)).toContain(part)
  })

  it('a command without a file accepts no upload', async () => {
    const sent = await site.post('/settlements-undo', { import: '1', file: fileOf([]) }, key)
    expect([sent.status, textOf(sent.body)]).toEqual([
      400,
      expect.stringContaining('“Number of the import” is required'),
    ])
    expect(storedFiles()).toEqual([])
  })
})

describe('the file of an upload', () => {
  it.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\asha\\day.csv', 'day.csv'],
    [`"><script>alert('1')</script>.csv`, 'script>.csv'],
    ["$(reboot)';rm -rf ~;'.csv", "$(reboot)';rm -rf ~;'.csv"],
    ['-x.csv', '-x.csv'],
    ['\u202Efdp.csv', '\uFFFDfdp.csv'],
  ])('is stored without a name on disk if its name is %j, and the import lists its base name', async (name, listed) => {
    const file = fileOf([row(newUtr())], name)
    const { status, body, fields } = await site.post(IMPORT, { file }, key)
    expect([status, storedFiles(), readdirSync(folder)]).toEqual([200, [await file.text()], []])
    expect(body).not.toContain('<script>')
    expect(textOf(body)).toContain(`file ${listed} size`)
    expect((await site.post(IMPORT, fields, key)).status).toBe(303)
    expect((await json('settlements', 'imports')).at(-1).file).toBe(listed)
  })

  it('replaces the earlier file of its operator only', async () => {
    const [first, second] = [fileOf([row(newUtr())]), fileOf([row(newUtr())])]
    const other = await newOperatorKey(service.db, undefined, { operator: unique('ravi') })
    const theirs = await site.post(IMPORT, { file: first }, other)
    const { fields } = await site.post(IMPORT, { file: first }, key)
    const replaced = await site.post(IMPORT, { file: second }, key)
    const replacing = [await first.text(), await second.text()].sort()
    await until('the file is replaced', () => isDeepStrictEqual(storedFiles().sort(), replacing))
    const gone = await site.post(IMPORT, fields, key)
    expect([gone.status, textOf(gone.body)]).toEqual([400, expect.stringContaining('Upload it again.')])
    expect((await site.post(IMPORT, replaced.fields, key)).status).toBe(303)
    expect((await site.post(IMPORT, theirs.fields, other)).status).toBe(303)
  })

  it('is removed after the time in which its import may be confirmed', async () => {
    const now = new Date()
    const brief = await createTestConsole(service, () => now, {}, limits({ confirmationMs: 40 }))
    const { fields } = await brief.post(IMPORT, { file: fileOf([row(newUtr())]) }, key)
    await until('the file is removed', () => storedFiles().length === 0)
    const gone = await brief.post(IMPORT, fields, key)
    expect([gone.status, textOf(gone.body)]).toEqual([400, expect.stringContaining('Upload it again.')])
  })
})

describe('an upload that is rejected', () => {
  it.each<[string, string, () => Record<string, string | string[] | File | File[]>]>([
    [
      'a file above the limit',
      'Choose one file of at most 64 MB',
      () => ({ file: new File(['x'.repeat(1001)], 'a.csv') }),
    ],
    ['two files', 'Choose one file', () => ({ file: [fileOf([], 'a.csv'), fileOf([], 'b.csv')] })],
    ['no file', 'Choose one file', () => ({ file: new File([], '') })],
    ['more fields than any form has', 'Choose one file', () => ({ ...manyFields(), file: fileOf([]) })],
    [
      'a field that is sent twice',
      'A field was sent twice. Open the form again.',
      () => ({ rows: ['1', '2'], file: fileOf([]) }),
    ],
    ['a form without a file', 'FILE is required', () => ({ rows: '1' })],
  ])('leaves nothing on disk: %s', async (_name, error, fields) => {
    const small = await createTestConsole(service, undefined, {}, limits({ uploadBytes: 1000 }))
    const { status, body, fields: signed } = await small.post(IMPORT, fields(), key)
    expect([status, textOf(body), signed.mac]).toEqual([400, expect.stringContaining(error), undefined])
    expect(storedFiles()).toEqual([])
  })

  it('a file of exactly the limit is accepted, and fields that are no flags are ignored', async () => {
    const file = fileOf([row(newUtr())])
    const exact = await createTestConsole(service, undefined, {}, limits({ uploadBytes: file.size }))
    const { status, fields } = await exact.post(
      IMPORT,
      { file, by: 'meera', 'dry-run': 'on', FILE: '/etc/passwd' },
      key,
    )
    expect([status, JSON.parse(fields.change as string).values]).toEqual([200, { file: '-' }])
  })

  it('a body that is no multipart form leaves nothing on disk', async () => {
    const headers = { ...SAME_ORIGIN, host: 'localhost:3002', authorization: basic(key) }
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=b']) {
      const sent = { method: 'POST', url: IMPORT, headers: { ...headers, 'content-type': type }, payload: 'x' } as const
      expect((await site.app.inject(sent)).statusCode).toBe(400)
    }
    expect(storedFiles()).toEqual([])
  })
})

describe('over a socket', () => {
  let port: number
  beforeAll(async () => {
    await site.app.listen({ host: '127.0.0.1', port: 0 })
    ;({ port } = site.app.server.address() as AddressInfo)
  })

  /** Opens an upload of 1 MB, and sends `body` of it. */
  function begin(headers: Record<string, string>, body = '') {
    const socket = connect(port, '127.0.0.1')
    const type = 'multipart/form-data; boundary=b'
    const all = { host: 'localhost:3002', 'content-type': type, 'content-length': '1000000', connection: 'close' }
    const lines = Object.entries({ ...all, ...headers }).map(([name, value]) => `${name}: ${value}`)
    socket.write([`POST ${IMPORT} HTTP/1.1`, ...lines, '', body].join('\r\n'))
    return socket
  }

  it('an upload without a key, from another origin or without the right act is rejected before its body arrives', async () => {
    const reader = await newOperatorKey(service.db, ['read'])
    for (const [status, headers] of [
      [401, SAME_ORIGIN],
      [403, { authorization: basic(key), origin: 'https://evil.example' }],
      [403, { authorization: basic(reader), ...SAME_ORIGIN }],
    ] as const) {
      const socket = begin(headers)
      const response = await new Promise((resolve) => socket.once('data', (data) => resolve(String(data))))
      expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      socket.destroy()
      expect(storedFiles()).toEqual([])
    }
  })

  it('an operator’s concurrent uploads are received one after the other', async () => {
    const other = await newOperatorKey(service.db, undefined, { operator: unique('ravi') })
    const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="day.csv"\r\n\r\nx'
    const sockets = [key, key, key, other].map((one) => begin({ authorization: basic(one), ...SAME_ORIGIN }, part))
    await until('the uploads of both operators arrive', () => storedFiles().length >= 2)
    expect(storedFiles()).toHaveLength(2)
    for (const socket of sockets) socket.destroy()
    await until('the files are removed', () => storedFiles().length === 0)
  })

  it('an upload that breaks off leaves nothing on disk', async () => {
    const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="day.csv"\r\n\r\n'
    const socket = begin({ authorization: basic(key), ...SAME_ORIGIN }, `${part}${'x'.repeat(100_000)}`)
    await until('the file arrives', () => storedFiles().length === 1)
    socket.destroy()
    await until('the file is removed', () => storedFiles().length === 0)
    await text(socket).catch(() => undefined)
  })
})

const manyFields = () => Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`field${index}`, '1']))
