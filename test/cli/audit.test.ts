import { userInfo } from 'node:os'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { saveRefundException } from '../../src/gateway/refunds/record-update.ts'
import type { Refund } from '../../src/gateway/refunds/refund.ts'
import { listRefunds } from '../../src/gateway/refunds/store.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import type { AuditEntry } from '../../src/platform/audit.ts'
import { toIstDay, toIstText } from '../../src/platform/time.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService } from '../support/service.ts'

const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64')
const SETTINGS = { WEBHOOK_SEALING_KEY: ENCRYPTION_KEY }
const ME = userInfo().username
const DAY_MS = 86_400_000
const service = await startService()

const ops = (args: string[], input = '') => runOps(service.databaseUrl, args, input, SETTINGS)

async function json(args: string[], input = '') {
  const { code, stdout, stderr } = await ops([...args, '--json'], input)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Returns the result of `work`, during which PostgreSQL rejects `what`, such as an insert. */
async function whileRejected<T>(what: string, reason: string, work: () => Promise<T>): Promise<T> {
  await service.db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise ${reason}; end $$`,
  )
  await service.db.query(`create trigger refuse before ${what} for each row execute function refuse()`)
  try {
    return await work()
  } finally {
    await service.db.query('drop function refuse cascade')
  }
}

type Entry = Omit<AuditEntry, 'at'> & { at: string }

async function newEntries(since: number): Promise<Entry[]> {
  return (await json(['audit'])).slice(since)
}

const HEADER = 'mid,amount,utr,bank_reference_number,status,initiation_date'
const settlementFile = (mid: string) => `${HEADER}\n${mid},1.00,${newUtr()},BRN1,SUCCESS,2026-01-15T00:00:00Z\n`

/** Stores the exception of a refund that the service sent to Setu and that Setu does not know. */
async function makeUnsure(ourRefundId: string): Promise<void> {
  await service.db.query(`update refunds set acquirer = 'setu' where our_refund_id = $1`, [ourRefundId])
  const [refund] = await listRefunds(service.db, { ourRefundId })
  await saveRefundException(service.db, 'refund unsure', refund as Refund, { source: 'enquiry', now: new Date() })
}

const SECRETS = 'CASHFREE_CLIENT_ID=acme\nCASHFREE_CLIENT_SECRET=whsec_of_acme'

/** Arguments for one run of each changing command, and the detail that the audit stores of its result. */
async function everyChange(): Promise<{ args: string[]; input?: string; detail?: Record<string, unknown> }[]> {
  const { mid, key } = await newMerchant(service.db)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  const paid = (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
  for (const UTR of [newUtr(), newUtr()]) await notify(service, notification(paid, { UTR }))
  const { exceptions } = await json(['payments', 'show', '--order-id', paid])
  const { publicKey } = await json(['keys', 'create', '--mid', mid])
  const refund = ['refunds', 'create', '--order-id', paid, '--amount', '1', '--note', 'withheld']
  const refunds = await Promise.all([1, 2, 3].map(async () => (await json(refund)).refundId))
  await makeUnsure(refunds[2])
  const { id } = await json(['webhooks', 'add', '--mid', mid, '--url', 'https://shop.example.in/first'])
  const imported = await json(['settlements', 'import', '-'], settlementFile(mid))
  const report = await json(['reconcile', '--from', '2026-01-15', '--to', '2026-01-15', '--mid', mid])
  const [difference] = report.merchants[0].differences
  const vpa = 'audited@examplebank'
  const account = ['--account', 'acme', '--acquirer', 'cashfree']
  const columns = ['day=Date', 'reference=Text', 'amount=Amount'].flatMap((column) => ['--column', column])
  const layoutAdd = ['settlements', 'layout', 'add', '--name', 'audited', '--date', 'yyyy-mm-dd', ...columns]
  const day = toIstDay(new Date(Date.now() - 24 * 60 * 60_000))
  await json(['settlements', 'import', '-'], `${HEADER}\n${mid},7.00,AUDITED1,B1,SUCCESS,${day}T10:00:00Z\n`)
  return [
    { args: ['migrate'], detail: { applied: [] } },
    { args: ['merchants', 'add', '--name', 'A', '--vpa', vpa], detail: { mid: expect.stringMatching(/^M/) } },
    { args: ['merchants', 'update', '--mid', mid, '--vpa', vpa] },
    { args: ['merchants', 'disable', '--mid', mid] },
    { args: ['merchants', 'enable', '--mid', mid] },
    { args: ['partners', 'add', '--pid', 'AUDITED', '--name', 'Acme'] },
    { args: ['partners', 'link', '--pid', 'AUDITED', '--mid', mid] },
    { args: ['partners', 'unlink', '--pid', 'AUDITED', '--mid', mid] },
    { args: ['keys', 'create', '--mid', mid], detail: { publicKey: expect.stringMatching(/^pk_/) } },
    { args: ['keys', 'rotate', '--public-key', publicKey], detail: { publicKey: expect.stringMatching(/^pk_/) } },
    { args: ['keys', 'revoke', '--public-key', publicKey] },
    { args: ['reconcile', 'resolve', '--difference', difference.id, '--reason', 'by hand'], detail: { mid } },
    { args: ['reconcile', 'close', '--month', '2026-01'], detail: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
    { args: ['fees', 'add', '--mid', mid, '--acquirer', 'setu', '--percent', '1', '--from', '2026-04-01'] },
    { args: ['fees', 'end', '--mid', mid, '--acquirer', 'setu', '--from', '2026-10-01'] },
    { args: ['ledgers', 'set', '--mid', mid, '--ledger', 'UPI receipts', '--name', 'Sales UPI'] },
    { args: ['settlements', 'import', '-'], input: settlementFile(mid), detail: expect.objectContaining({}) },
    { args: ['settlements', 'undo', '--import', String(imported.import)], detail: expect.objectContaining({}) },
    { args: ['payments', 'confirm', '--order-id', orderId, '--utr', newUtr(), '--amount', '200'] },
    {
      args: ['payments', 'import', '-', '--acquirer', 'direct'],
      input: `order_id,status,utr,amount,paid_at\n${orderId},FAIL,,200,\n`,
      detail: expect.objectContaining({ recorded: 0 }),
    },
    { args: refund, detail: { mid, refundId: expect.stringMatching(/^[0-9a-f]{32}$/) } },
    { args: ['refunds', 'done', '--refund', refunds[0], '--reference', '523504870777'] },
    {
      args: [
        'refunds',
        'returned',
        '--refund',
        refunds[0],
        '--reference',
        '523504870778',
        '--reason',
        'account closed',
      ],
    },
    { args: ['refunds', 'fail', '--refund', refunds[1], '--reason', 'account closed'] },
    { args: ['refunds', 'retry', '--refund', refunds[2]] },
    { args: ['disputes', 'add', '--order-id', paid, '--dispute', 'D1', '--reason', 'withheld'], detail: { mid } },
    { args: ['disputes', 'update', '--mid', mid, '--dispute', 'D1', '--status', 'won'], detail: { mid } },
    { args: ['payments', 'forget-customers', '--older-than-days', '300'], detail: { forgotten: 0 } },
    { args: ['payments', 'resolve', '--exception', exceptions[0].id, '--reason', 'refunded'] },
    {
      args: ['webhooks', 'add', '--mid', mid, '--url', 'https://shop.example.in/hook?token=whsec_hook'],
      detail: { endpoint: expect.stringMatching(/^ep_/) },
    },
    { args: ['webhooks', 'disable', '--endpoint', id] },
    { args: ['webhooks', 'enable', '--endpoint', id] },
    { args: ['webhooks', 'rotate-secret', '--endpoint', id] },
    { args: ['webhooks', 'prune', '--older-than-days', '31'], detail: { pruned: 0 } },
    { args: ['bank-holidays', 'add', '--day', '2026-01-26', '--name', 'Republic Day'] },
    { args: ['bank-holidays', 'remove', '--day', '2026-01-26'], detail: { name: 'Republic Day' } },
    {
      args: ['bank-holidays', 'import', '-'],
      input: '2026-01-26,Republic Day',
      detail: { added: 1, unchanged: 0 },
    },
    { args: layoutAdd, detail: { name: 'audited' } },
    {
      args: ['statements', 'import', '-', '--layout', 'audited', '--mid', mid, '--from', day, '--to', day],
      input: `Date,Text,Amount\n${day},NEFT,7.00\n`,
      detail: expect.objectContaining({ kept: 1 }),
    },
    {
      args: ['statements', 'match', '--payout', 'B1', '--statement', '1', '--line', '2', '--reason', 'cut'],
      detail: { payout: 'B1', statement: 1, line: 2 },
    },
    { args: ['statements', 'undo', '--statement', '1'], detail: { removed: 1 } },
    { args: ['settlements', 'layout', 'remove', '--name', 'audited'], detail: { name: 'audited' } },
    { args: ['accounts', 'add', ...account], input: SECRETS },
    { args: ['accounts', 'rotate', ...account], input: SECRETS },
    { args: ['accounts', 'disable', ...account] },
    { args: ['accounts', 'enable', ...account] },
    { args: ['accounts', 'reseal'], detail: { accounts: 1, webhooks: expect.any(Number), unopened: 0 } },
    { args: ['webhooks', 'resend', '--mid', mid, '--since', '2026-01-01T00:00:00Z'] },
  ]
}

/** The arguments of a command as the audit stores them. */
function argumentsOf(args: string[]): Record<string, unknown> {
  const flags = args.flatMap((arg, at) =>
    arg.startsWith('--') ? [[camelCase(arg.slice(2)), args[at + 1]?.replace(/\?token=.*/, '')]] : [],
  )
  // Repeatable flags are stored as lists.
  const valuesOf = (name: string) => flags.filter(([flag]) => flag === name).map(([, value]) => value)
  return {
    ...Object.fromEntries(flags),
    ...(args.includes('--column') && { column: valuesOf('column') }),
    ...(args[0] === 'statements' && args.includes('--mid') && { mid: valuesOf('mid') }),
    ...(args.includes('-') && { file: '-' }),
  }
}

const camelCase = (flag: string) => flag.replace(/-(.)/g, (_, letter) => letter.toUpperCase())

describe('the audit', () => {
  it('the audit stores one row per changing command, with operator, arguments and outcome but without secrets', async () => {
    const changes = await everyChange()
    const names = COMMANDS.map(({ name }) => name).sort()
    const nameOf = (args: string[]) => names.findLast((name) => args.join(' ').startsWith(name)) as string
    // An alias is stored under the name of the command that it runs.
    const aliases = ['statements layout add', 'statements layout remove']
    // The first two call an acquirer and the third needs a Citus cluster: other tests run them.
    const driven = [
      'payments enquire',
      'settlements pull',
      'database spread',
      ...aliases,
      ...changes.map(({ args }) => nameOf(args)),
    ]
    const missing = COMMANDS.filter(({ name, changes }) => changes && !driven.includes(name))
    expect(missing.map(({ name }) => name)).toEqual([])

    const before = (await json(['audit'])).length
    const said: string[] = []
    for (const { args, input } of changes) {
      const { code, stdout, stderr } = await ops([...args, '--by', 'meera', '--json'], input)
      expect([args, code, stderr.replace(/^ops: warning.*\n/, '')]).toEqual([args, 0, ''])
      said.push(stdout)
    }
    const entries = await newEntries(before)
    expect(entries).toEqual(
      changes.map(({ args, detail = {} }) => ({
        at: expect.stringMatching(/^20/),
        person: 'meera',
        databaseRole: 'postgres',
        command: nameOf(args),
        arguments: argumentsOf(args),
        outcome: 'done',
        detail,
      })),
    )
    const { rows } = await service.db.query(
      'select c::text, o::text from audit_commands c left join audit_outcomes o using (audit_id)',
    )
    const secrets = said.flatMap((text) => text.match(/(?:sk_|whsec_)[^"]+/g) ?? [])
    // One secret of a key, two of webhooks, and one in a webhook’s URL, which the output repeats.
    expect(secrets.length).toBe(5)
    for (const secret of secrets) expect(JSON.stringify([entries, rows])).not.toContain(secret)
  }, 120_000)

  describe('ops audit', () => {
    let before = 0
    let mid = ''
    beforeEach(async () => {
      mid = (await newMerchant(service.db)).mid
      before = (await json(['audit'])).length
    })
    const vpaOf = async () => (await service.db.query('select vpa from merchants where mid = $1', [mid])).rows[0].vpa

    it('ops audit lists who changed a merchant’s UPI address, by default under the login name', async () => {
      await json(['merchants', 'update', '--mid', mid, '--vpa', 'thief@examplebank'])
      const said = { mid, vpa: 'thief@examplebank' }
      expect(await json(['audit', '--mid', mid])).toMatchObject([{ person: ME, arguments: said }])
      const { stdout } = await ops(['audit', '--mid', mid])
      expect(stdout).toMatch(new RegExp(`${ME} +postgres +merchants update +mid=${mid} vpa=thief@examplebank +done`))
      const lastYear = ['--since', '2025-01-01T00:00:00Z', '--until', '2026-01-01T00:00:00Z']
      expect(await json(['audit', '--mid', mid, ...lastYear])).toEqual([])
      const [{ at }] = await json(['audit', '--mid', mid])
      const month = new Date(Date.parse(at) + 330 * 60_000).toISOString().slice(0, 7)
      expect(await json(['audit', '--mid', mid, '--month', month])).toHaveLength(1)
      expect(await json(['audit', '--mid', mid, '--month', '2020-01'])).toEqual([])
    })

    it('ops audit prints how many lines of a daily transaction report became exceptions, by kind', async () => {
      const lines = [
        `${'0'.repeat(32)},SUCCESS,${newUtr()},200,2026-04-01T06:00:00Z`,
        `${'0'.repeat(32)},SUCCESS,${newUtr()},300,2026-04-01T06:00:00Z`,
      ]
      await json(
        ['payments', 'import', '-', '--acquirer', 'direct'],
        `order_id,status,utr,amount,paid_at\n${lines.join('\n')}\n`,
      )
      const { stdout } = await ops(['audit'])
      expect(stdout).toMatch(/^20.* IST .* recorded=0 unchanged=0 exceptions: 2 unknown order$/m)
      expect(stdout).not.toContain('[object')
    })

    it('ops audit --mid lists the merchant’s commands, including commands that name only the merchant’s key or webhook', async () => {
      const { publicKey } = await json(['keys', 'create', '--mid', mid])
      const { id } = await json(['webhooks', 'add', '--mid', mid, '--url', 'https://shop.example.in/hook'])
      await json(['webhooks', 'disable', '--endpoint', id])
      await ops(['webhooks', 'resend', '--delivery', `${id}.${'0'.repeat(32)}.1`])
      await json(['keys', 'revoke', '--public-key', publicKey])
      const another = await json(['merchants', 'add', '--name', 'Another', '--vpa', 'other@examplebank'])
      const entries: Entry[] = await json(['audit', '--mid', mid])
      expect(entries.map(({ command, outcome }) => [command, outcome])).toEqual([
        ['keys create', 'done'],
        ['webhooks add', 'done'],
        ['webhooks disable', 'done'],
        ['webhooks resend', 'failed'],
        ['keys revoke', 'done'],
      ])
      // The command itself assigned this mid.
      expect(await json(['audit', '--mid', another.mid])).toEqual([
        expect.objectContaining({ command: 'merchants add', outcome: 'done' }),
      ])
    })

    it('the audit stores no outcome for a multi-step command that was interrupted after the first change', async () => {
      const merchant = await newMerchant(service.db)
      const { orderId } = (await post(service.app, CREATE, intentFields(merchant.mid), merchant.key)).body.data
      const report = `order_id,status,utr,amount,paid_at\n${orderId},SUCCESS,${newUtr()},200.00,${toIstText(new Date())}\n`
      const command = ['payments', 'import', '-', '--acquirer', 'direct']
      const { code } = await whileRejected('insert on audit_outcomes', `'no room'`, () => ops(command, report))
      expect(code).toBe(1)
      const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
      expect(rows).toEqual([{ status: 'SUCCESS' }])
      const entries = await json(['audit'])
      expect(entries.at(-1)).toMatchObject({ command: 'payments import', outcome: null, detail: null })
    })

    it('the audit stores the database’s time, not the time of the operator’s machine', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 30 * DAY_MS })
      await ops(['merchants', 'disable', '--mid', mid]).finally(() => vi.useRealTimers())
      const [entry] = await newEntries(before)
      expect(Math.abs(Date.now() - Date.parse(entry?.at ?? ''))).toBeLessThan(3_600_000)
      const { rows } = await service.db.query('select disabled_at from merchants where mid = $1', [mid])
      expect(Date.now() - rows[0].disabled_at.getTime()).toBeGreaterThan(29 * DAY_MS)
    })

    it.each([
      [['keys', 'revoke', '--public-key', 'sk_live_pasted_by_mistake'], '--public-key must be a public key, pk_…'],
      [['webhooks', 'disable', '--endpoint', 'whsec_pasted'], '--endpoint must be the id of a webhook endpoint, ep_…'],
      [
        ['merchants', 'disable', '--mid', 'M1', '--by', ' '],
        '--by must be text of 1 to 64 characters, without control characters',
      ],
    ])('the audit stores no row for a command with invalid arguments: %j', async (args, message) => {
      const { code, stderr } = await ops(args)
      expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
      expect(await newEntries(before)).toEqual([])
    })

    it('the audit stores the operator’s name from --by, otherwise from OPS_BY', async () => {
      const settings = { ...SETTINGS, OPS_BY: 'ravi' }
      await runOps(service.databaseUrl, ['merchants', 'disable', '--mid', mid], '', settings)
      await runOps(service.databaseUrl, ['merchants', 'enable', '--mid', mid, '--by', 'meera'], '', settings)
      expect((await newEntries(before)).map(({ person }) => person)).toEqual(['ravi', 'meera'])
    })

    it('the audit stores the error of a rejected command', async () => {
      const file = `${settlementFile(mid)}nobody,1.00,U2,BRN2,SUCCESS,2026-01-15T00:00:00Z\n`
      expect((await ops(['settlements', 'import', '-'], file)).code).toBe(1)
      expect((await ops(['keys', 'create', '--mid', 'nobody'])).code).toBe(1)
      expect((await ops(['payments', 'enquire', '--order-id', '0'.repeat(32)])).code).toBe(1)
      expect((await ops(['reconcile', 'close', '--month', '2099-01'])).code).toBe(2)
      const fees = ['--fee', '1,2', '--tax', '1']
      expect((await ops(['merchants', 'update', '--mid', mid, ...fees])).code).toBe(2)
      expect((await newEntries(before)).map(({ outcome, detail }) => [outcome, detail])).toEqual([
        // Without the lines, because a file may contain customer data.
        ['failed', { fault: '1 invalid line, nothing was imported' }],
        ['failed', { fault: 'mid nobody does not exist: see ops merchants list' }],
        ['failed', { fault: 'the order does not exist: search with ops payments find' }],
        ['failed', { fault: '--month must be in the past: 2099-01 ends on 2099-01-31' }],
        ['failed', { fault: 'give --fee and --tax together, each with one value or one for each of direct' }],
      ])
      const { rowCount } = await service.db.query('select from settlements where mid = $1', [mid])
      expect(rowCount).toBe(0)
    })

    it('the audit stores only the code of a database error, whose text may quote rows', async () => {
      const update = () => ops(['merchants', 'update', '--mid', mid, '--name', 'B'])
      const { code } = await whileRejected('update on merchants', `'the disk is full of %', new.vpa`, update)
      expect(code).toBe(1)
      expect((await newEntries(before)).map(({ outcome, detail }) => [outcome, detail])).toEqual([
        ['failed', { fault: 'unexpected: P0001' }],
      ])
    })

    it.each([
      ['audit_commands', 'ops rejects a changing command before any change'],
      ['audit_outcomes', 'ops rolls back the command’s change'],
    ])('ops changes nothing if PostgreSQL rejects a row for the audit table %s: %s', async (table) => {
      const vpa = await vpaOf()
      const update = () => ops(['merchants', 'update', '--mid', mid, '--vpa', 'new@examplebank'])
      const { code, stderr } = await whileRejected(`insert on ${table}`, `'no room'`, update)
      expect([code, stderr]).toEqual([1, 'ops: no room\n'])
      expect(await vpaOf()).toBe(vpa)
    })
  })
})
