import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService, unique } from '../support/service.ts'

/** Characters that move the cursor (C1), reverse the writing direction, hide text, or end the line in some terminals. */
const HOSTILE = '\u009b2J\u007f\u202efdp.\u2066\u200f\u2028\ufeff\u{e0041}'
/** Characters that a terminal obeys. Line breaks are excluded, because `ops` writes them itself. */
const OBEYED = /(?!\n)[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\ufeff\u{e0041}]/u
/** Contains the joiners that Indian names and some emoji need. */
const NAME = `श्री\u200d ${HOSTILE} क्\u200cष`

let service: TestService
let mid: string
let exceptionId: string
beforeAll(async () => {
  service = await startService()
  const { mid: owner, key } = await newMerchant(service.db)
  mid = owner
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  for (const UTR of ['A1', 'A2']) expect((await notify(service, notification(orderId, { UTR }))).status).toBe(200)
  expect((await notify(service, `{"orderId":"\u001b[2J${HOSTILE}"}`)).status).toBe(400)
  const [{ exception_id: id }] = (
    await service.db.query(`select exception_id from payment_exceptions where kind = 'double payment'`)
  ).rows as [{ exception_id: string }]
  exceptionId = id
  // Written with SQL, because `ops` rejects control characters, but a compromised service could store them.
  const update = (sql: string) => service.db.query(sql, [`\u001b[2J\n${NAME}`])
  await update('update merchants set name = $1')
  await update(`insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
                select mid, exception_id, $1, $1, now() from payment_exceptions where kind = 'double payment'`)
  await update(`insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated)
                values (1, now(), $1, $1, '', 1, 0, 0)`)
})

const ops = (args: string[], input = '') => runOps(service.databaseUrl, args, input)

const csvPath = (name: string, text: string) => {
  const path = join(mkdtempSync(join(tmpdir(), 'ops-terminal-')), name)
  writeFileSync(path, text)
  return path
}

describe('terminal control characters in foreign text', () => {
  it('ops replaces control characters that an error quotes from a bank’s file', async () => {
    const { code, stderr } = await ops(['settlements', 'import', '-'], `mid,amount,${HOSTILE}\n`)
    expect([code, stderr]).toEqual([1, expect.stringContaining('is unknown')])
    expect(stderr).not.toMatch(OBEYED)
    expect(stderr).toContain('fdp.')
  })

  it('ops replaces control characters in the name of a file, including in the output of ops audit', async () => {
    const file = csvPath(`${HOSTILE}.csv`, 'nonsense\n')
    for (const [command, path] of [
      ['settlements', file],
      ['payments', file],
      ['payments', `${file}-is-not-there`],
    ] as const) {
      const { code, stderr } = await ops([command, 'import', path])
      expect(code).toBe(1)
      expect(stderr).not.toMatch(OBEYED)
    }
    const { stdout } = await ops(['audit', '--json'])
    expect(stdout).not.toMatch(OBEYED)
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ arguments: { file } }))
  })

  it('ops replaces control characters that an error quotes from the command line', async () => {
    const { code, stderr } = await ops(['merchants', 'list', `--${HOSTILE}`])
    expect([code, stderr]).toEqual([2, expect.stringContaining('fdp.')])
    expect(stderr).not.toMatch(OBEYED)
  })

  it('ops prints a database error in one line without control characters', async () => {
    const { code, stderr } = await ops(['payments', 'resolve', '--exception', exceptionId, '--reason', unique('again')])
    expect([code, stderr.trimEnd().split('\n').length]).toEqual([1, 1])
    expect(stderr).toContain('fdp.')
    expect(stderr).not.toMatch(OBEYED)
  })

  it.each([
    [['merchants', 'list'], NAME],
    [['payments', 'exceptions'], HOSTILE],
    [['today'], NAME],
    [['audit'], HOSTILE],
    [['reconcile', '--from', '2026-03-31', '--to', '2026-03-31'], undefined],
  ])(
    'ops %j replaces control characters in text output, and escapes control characters in JSON without loss',
    async (args, stored) => {
      const text = await ops(args)
      expect(text).toMatchObject({ code: 0, stderr: '' })
      expect(text.stdout).not.toMatch(OBEYED)
      const { stdout } = await ops([...args, '--json'])
      expect(stdout).not.toMatch(OBEYED)
      expect(stdout.trimEnd()).not.toContain('\n')
      const value = JSON.stringify(JSON.parse(stdout))
      if (stored !== undefined) expect(value).toContain(stored)
    },
  )

  it('ops prints the joiner characters in a Hindi name and the line breaks in a table unchanged', async () => {
    const { stdout } = await ops(['merchants', 'list'])
    expect(stdout).toMatch(/श्री\u200d .*fdp.* क्\u200cष/u)
    expect((await ops(['today'])).stdout).toMatch(
      /^information +settlements .*क्\u200cष imported .*\ninformation +database .*\n$/mu,
    )
  })
})
