import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hashSecret } from '../../src/gateway/tenants/credentials.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { unique } from '../support/service.ts'

const { url, db } = await createTestDatabase()

const { ops, json } = opsOn(() => url)

const fault = (line: string) => ({ code: 1, stdout: '', stderr: `ops: ${line}\n` })

async function newMerchant(): Promise<string> {
  const { mid } = await json('merchants', 'add', '--name', 'Chai Point', '--vpa', 'chaipoint@examplebank')
  return mid
}

const SETU = {
  SETU_CLIENT_ID: 'client-of-a-test',
  SETU_CLIENT_SECRET: 'secret-of-a-test',
  SETU_NOTIFICATION_SECRETS: 'secretOfATestWithLetters20',
}

describe('merchants', () => {
  it('merchants add prints every field of the merchant, and rejects an existing mid without changing the existing merchant', async () => {
    const mid = unique('M')
    const payee = ['--vpa', 'chaipoint@examplebank', '--mcc', '5814', '--dynamic-qr', 'image']
    const add = ['merchants', 'add', '--mid', mid, ...payee]
    const added = await json(...add, '--name', 'Chai Point')
    expect(added).toEqual({
      mid,
      name: 'Chai Point',
      vpa: 'chaipoint@examplebank',
      payees: [],
      mcc: '5814',
      dynamicQr: 'image',
      acquirer: 'direct',
      acquirerMerchantId: null,
      nextAcquirer: null,
      nextAcquirerMerchantId: null,
      input: 'strict',
      expiryMinutes: null,
      maxExpiryMinutes: 1_440,
      maxAmount: 100_000,
      fees: [],
      returnCall: 'off',
      colour: null,
      website: null,
      support: null,
      logo: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      disabledAt: null,
      warnings: [],
    })
    expect(await ops(...add, '--name', 'Other')).toEqual(fault(`mid ${mid} already exists: choose another`))
    expect(await json('merchants', 'list')).toContainEqual(added)
  })

  it('merchants update rejects an acquirer that is unknown, not configured, or incompatible with the UPI address', async () => {
    const mid = await newMerchant()
    const update = (...args: string[]) => ops('merchants', 'update', '--mid', mid, ...args)
    const setUp = fault(
      'the acquirer setu is not set up: set SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
    )
    expect(await update('--acquirer', 'pigeon')).toEqual(
      fault('acquirer must be one of direct, setu, cashfree, phonepe, razorpay'),
    )
    expect(await update('--acquirer', 'setu', '--acquirer-merchant-id', '01ARZ3NDEKTSV4RRFFQ69G5FAV')).toEqual(setUp)
    Object.assign(process.env, SETU)
    try {
      expect(await update('--acquirer', 'setu')).toEqual(
        fault('setu requires --acquirer-merchant-id, the identifier of the merchant at Setu'),
      )
      const id = ['--acquirer-merchant-id', '01ARZ3NDEKTSV4RRFFQ69G5FAV']
      expect(await update('--acquirer', 'setu', ...id, '--vpa', 'Chai_Point@examplebank')).toEqual(
        fault('setu accepts a --vpa of a-z 0-9 . - before the @ and letters after it'),
      )
      expect((await update('--acquirer', 'setu', ...id)).code).toBe(0)
      // The new UPI address must fit the acquirer that the merchant already has.
      expect((await update('--vpa', 'Chai_Point@examplebank')).code).toBe(1)
    } finally {
      for (const name of Object.keys(SETU)) delete process.env[name]
    }
  })

  it('merchants add and update set input, expiry and maximum amount, and restore the service’s value with `default`', async () => {
    const mid = unique('M')
    const add = ['merchants', 'add', '--mid', mid, '--name', 'Shop', '--vpa', 'shop@examplebank', '--mcc', '5814']
    const settings = ['--input', 'shop', '--expiry-minutes', '5']
    expect(await json(...add, ...settings)).toMatchObject({ input: 'shop', expiryMinutes: 5 })
    const update = (...args: string[]) => json('merchants', 'update', '--mid', mid, ...args)
    expect(await update('--name', 'New')).toMatchObject({ input: 'shop', expiryMinutes: 5 })
    expect(await update('--expiry-minutes', '1440')).toMatchObject({ input: 'shop', expiryMinutes: 1440 })
    const cleared = await update('--expiry-minutes', 'default')
    expect(cleared).toMatchObject({ input: 'shop', expiryMinutes: null })
    expect(await json('merchants', 'list')).toContainEqual(cleared)
    expect(await update('--return-call', 'on')).toMatchObject({ input: 'shop', returnCall: 'on' })
    expect((await json('merchants', 'list')).find((one: { mid: string }) => one.mid === cleared.mid)).toMatchObject({
      returnCall: 'on',
    })
    expect(await update('--return-call', 'off')).toMatchObject({ returnCall: 'off' })
    expect(await update('--input', 'strict')).toMatchObject({
      input: 'strict',
      expiryMinutes: null,
      maxAmount: 100_000,
    })
    expect(await update('--max-amount', '1')).toMatchObject({ maxAmount: 1 })
    expect(await update('--max-amount', '500000')).toMatchObject({ maxAmount: 500_000 })
    expect(await update('--name', 'Newer')).toMatchObject({ maxAmount: 500_000 })
    expect((await ops('merchants', 'list')).stdout).toMatch(/ 5,00,000 /)
    expect(await update('--max-amount', 'default')).toMatchObject({ maxAmount: 100_000 })
    expect(await json(...add.with(3, unique('M')), '--max-amount', '200000')).toMatchObject({ maxAmount: 200_000 })
  })

  it('merchants add and update set the payees accepted in an acquirer’s links, and remove the payees with `default`', async () => {
    const mid = unique('M')
    const add = ['merchants', 'add', '--mid', mid, '--name', 'Shop', '--vpa', 'shop@examplebank', '--mcc', '5814']
    const payees = ['shop.*@icici', 'Shop@examplebank']
    expect(await json(...add, ...payees.flatMap((payee) => ['--payee', payee]))).toMatchObject({ payees })
    const update = (...args: string[]) => json('merchants', 'update', '--mid', mid, ...args)
    expect(await update('--name', 'New')).toMatchObject({ payees })
    expect((await ops('merchants', 'update', '--mid', mid, '--name', 'New')).stdout).toMatch(
      /^payees +shop\.\*@icici Shop@examplebank$/m,
    )
    expect((await ops('merchants', 'list')).stdout).toContain('shop.*@icici Shop@examplebank')
    const stored = await update('--payee', 'other@bank')
    expect(stored).toMatchObject({ payees: ['other@bank'] })
    expect(await json('merchants', 'list')).toContainEqual(stored)
    expect(await update('--payee', 'default')).toMatchObject({ payees: [] })
    const [last] = (await json('audit', '--mid', mid)).filter((row: { arguments: { payee?: string[] } }) =>
      row.arguments.payee?.includes('shop.*@icici'),
    )
    expect(last.arguments.payee).toEqual(payees)
  })

  it.each([
    ...['*@bank', 'ab*@bank', 'a*b@bank', 'abc*', 'abc*@', 'abc*@*', 'abc**@bank', 'abc_*@bank', 'abc*d@bank'].map(
      (payee) => [payee],
    ),
    ...[['abc'], [''], ['abc@bank@bank'], ['shop@bank', 'default'], ['shop@bank', 'ab*@bank']],
    Array.from({ length: 21 }, (_, index) => `shop${index}@bank`),
  ])('merchants update rejects the payees %j with usage and exit code 2', async (...payees) => {
    const given = payees.map((payee) => `--payee=${payee}`)
    const { code, stderr } = await ops('merchants', 'update', '--mid', 'any', ...given)
    expect([code, stderr.split('\n')[0]]).toEqual([
      2,
      'ops: --payee must be a UPI address, or at least 3 of a-z 0-9 . - with one * before the @, such as shop.*@bank; at most 20 values, or only default',
    ])
  })

  it.each([
    [['--input', 'loose'], '--input must be strict or shop'],
    ...['0', '1441', '05', '5.5', 'none', '-1'].map((minutes): [string[], string] => [
      [`--expiry-minutes=${minutes}`],
      '--expiry-minutes must be a whole number of minutes, 1 to 1440, or default',
    ]),
    ...['0', '500001', '1000000', '0200', '200.00', '2,00,000', '2e5', 'none', '-1', ''].map(
      (rupees): [string[], string] => [
        [`--max-amount=${rupees}`],
        '--max-amount must be whole rupees, 1 to 500000, or default',
      ],
    ),
  ])('merchants update rejects the option %j with usage and exit code 2', async (args, message) => {
    const { code, stderr } = await ops('merchants', 'update', '--mid', 'any', ...args)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
  })

  it('merchants add and update warn of a UPI address that UPI apps treat as an individual’s, and name the command that fixes the address', async () => {
    const mid = unique('M')
    const add = ['merchants', 'add', '--mid', mid, '--name', 'Chai Point', '--vpa', '9876543210@ybl']
    const added = await ops(...add)
    expect([added.code, added.stderr.trimEnd().split('\n')]).toEqual([
      0,
      [
        expect.stringMatching(
          /^ops: warning: mcc 0000 .* private person.*: ops merchants update --mid \w+ --mcc 5814$/,
        ),
        expect.stringMatching(
          /^ops: warning: 9876543210@ybl looks like a private person's address, .* --vpa shop@bank$/,
        ),
      ],
    ])
    expect(added.stdout).not.toContain('warning')
    const half = await ops('merchants', 'update', '--mid', mid, '--mcc', '5814')
    expect(half.stderr).toMatch(/^ops: warning: 9876543210@ybl [^\n]*\n$/)
    const mended = await ops('merchants', 'update', '--mid', mid, '--vpa', 'chaipoint@examplebank')
    expect([mended.code, mended.stderr]).toEqual([0, ''])
  })

  it('merchants add and update store a QR-only address and a high maximum amount, and warn of both', async () => {
    const mid = unique('M')
    const add = ['merchants', 'add', '--mid', mid, '--name', 'Chai Point', '--vpa', 'Q123456789@ybl', '--mcc', '5944']
    const added = await ops(...add, '--max-amount', '200001')
    expect([added.code, added.stderr.trimEnd().split('\n')]).toEqual([
      0,
      [
        expect.stringMatching(
          /^ops: warning: Q123456789@ybl .* by QR only.* online merchant from the bank: .* --vpa shop@bank$/,
        ),
        expect.stringMatching(
          /^ops: warning: the max amount 2,00,001 .* 2,00,000 .* mcc 5944 since 15 September 2025 \(6,00,000 from one customer in 24 hours\).*: ops merchants update --mid \w+ --max-amount 200000$/,
        ),
      ],
    ])
    const listed = await json('merchants', 'list')
    expect(listed).toContainEqual(
      expect.objectContaining({
        mid,
        maxAmount: 200_001,
        warnings: ['QR-only address', 'high max amount'],
      }),
    )
    const half = await ops('merchants', 'update', '--mid', mid, '--max-amount', '200000')
    expect(half.stderr).toMatch(/^ops: warning: Q123456789@ybl [^\n]*\n$/)
    const mended = await ops('merchants', 'update', '--mid', mid, '--vpa', 'chaipoint@examplebank')
    expect([mended.code, mended.stderr]).toEqual([0, ''])
  })

  it('merchants enable reverts merchants disable, which does not change disabledAt when repeated', async () => {
    const mid = await newMerchant()
    const { disabledAt } = await json('merchants', 'disable', '--mid', mid)
    expect(disabledAt).toMatch(/Z$/)
    expect(await json('merchants', 'disable', '--mid', mid)).toMatchObject({ disabledAt })
    expect(await json('merchants', 'enable', '--mid', mid)).toMatchObject({ mid, disabledAt: null })
  })

  it.each([['update', '--name', 'x'], ['disable'], ['enable']])(
    'merchants %s rejects an unknown mid',
    async (verb, ...rest) => {
      expect(await ops('merchants', verb, '--mid', 'NOBODY', ...rest)).toEqual(
        fault('mid NOBODY does not exist: see ops merchants list'),
      )
    },
  )

  it('merchants list prints a table with aligned columns', async () => {
    const mid = await newMerchant()
    const { stdout } = await ops('merchants', 'list')
    const [header = '', ...rows] = stdout.trimEnd().split('\n')
    expect(rows.find((row) => row.startsWith(mid))?.indexOf('Chai Point')).toBe(header.indexOf('name'))
  })
})

describe('partners', () => {
  it('ops partners adds a partner, links and unlinks merchants, and lists linked merchants', async () => {
    const [pid, mid] = [unique('P'), await newMerchant()]
    expect(await json('partners', 'add', '--pid', pid, '--name', 'Acme')).toMatchObject({ pid, name: 'Acme', mids: [] })
    const link = ['--pid', pid, '--mid', mid]
    expect(await json('partners', 'link', ...link)).toEqual({ pid, mid, linked: true })
    expect(await json('partners', 'link', ...link)).toEqual({ pid, mid, linked: true })
    expect(await json('partners', 'list')).toContainEqual(expect.objectContaining({ pid, mids: [mid] }))
    expect(await json('partners', 'unlink', ...link)).toEqual({ pid, mid, linked: false })
    expect(await json('partners', 'list')).toContainEqual(expect.objectContaining({ pid, mids: [] }))
  })

  it('ops partners rejects adding an existing pid, and rejects linking or unlinking an unknown pid or mid', async () => {
    const [pid, mid] = [unique('P'), await newMerchant()]
    await json('partners', 'add', '--pid', pid, '--name', 'Acme')
    expect(await ops('partners', 'add', '--pid', pid, '--name', 'Acme')).toEqual(
      fault(`pid ${pid} already exists: choose another`),
    )
    expect(await ops('partners', 'link', '--pid', 'NOBODY', '--mid', mid)).toEqual(
      fault('pid NOBODY does not exist: see ops partners list'),
    )
    expect(await ops('partners', 'unlink', '--pid', pid, '--mid', 'NOBODY')).toEqual(
      fault('mid NOBODY does not exist: see ops merchants list'),
    )
  })
})

describe('keys', () => {
  const USUAL = ['create', 'status', 'cancel', 'list']

  it('keys create prints the secret once and stores only the secret’s hash', async () => {
    const mid = await newMerchant()
    const { publicKey, secretKey } = await json('keys', 'create', '--mid', mid, '--label', 'shop')
    expect(publicKey).toMatch(/^pk_/)
    expect(secretKey).toMatch(/^sk_/)
    const { rows } = await db.query('select k.*, k::text as whole from access_keys k where public_key = $1', [
      publicKey,
    ])
    expect(rows[0].secret_hash).toEqual(hashSecret(secretKey))
    expect(rows[0].whole).not.toContain(secretKey)
    const listed = await json('keys', 'list', '--mid', mid)
    expect(listed).toEqual([
      {
        ...{ publicKey, mid, pid: null, operator: null, label: 'shop', rights: USUAL, expiresOn: null },
        ...{ createdAt: expect.any(String), lastUsedOn: null, revokedAt: null },
      },
    ])
    expect((await ops('keys', 'create', '--mid', mid)).stdout).toMatch(/secretKey +sk_\S+[\s\S]*not shown again/)
  })

  it.each([
    [[], USUAL],
    [['--may-refund'], [...USUAL, 'refund']],
    [['--rights', 'list'], ['list']],
    [
      ['--rights', 'refund,status,refund'],
      ['status', 'refund'],
    ],
    [
      ['--rights', 'status, create'],
      ['create', 'status'],
    ],
    [
      ['--rights', 'status', '--may-refund'],
      ['status', 'refund'],
    ],
    [
      ['--rights', 'create,status,cancel,list,refund'],
      [...USUAL, 'refund'],
    ],
  ])('keys create with %j gives a merchant’s key the rights %j', async (flags, rights) => {
    const mid = await newMerchant()
    const created = await json('keys', 'create', '--mid', mid, ...flags)
    expect(created.rights).toEqual(rights)
    expect(await json('keys', 'list', '--mid', mid)).toMatchObject([{ publicKey: created.publicKey, rights }])
  })

  it('keys create gives a partner’s key only the right to list', async () => {
    const { pid } = await json('partners', 'add', '--pid', unique('P'), '--name', 'Acme')
    expect((await json('keys', 'create', '--pid', pid)).rights).toEqual(['list'])
    expect((await json('keys', 'create', '--pid', pid, '--rights', 'list')).rights).toEqual(['list'])
    const rule = 'the key of a partner has only the right list: omit --rights'
    for (const [flags, error] of [
      [['--may-refund'], '--may-refund cannot be combined with --pid'],
      [['--rights', 'list,status'], rule],
      [['--rights', 'refund'], rule],
    ] as const) {
      const { code, stderr } = await ops('keys', 'create', '--pid', pid, ...flags)
      expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${error}`])
    }
  })

  it('keys create stores rights and the last day of a key, and the audit names both', async () => {
    const mid = await newMerchant()
    const flags = ['--rights', 'create,status', '--may-refund', '--expires-on', '31-03-2099', '--label', 'till 3']
    const { publicKey, expiresOn } = await json('keys', 'create', '--mid', mid, ...flags)
    expect(expiresOn).toBe('2099-03-31')
    expect((await ops('keys', 'list', '--mid', mid)).stdout).toMatch(/till 3 +create status refund +2099-03-31/)
    const audited = await json('audit', '--mid', mid)
    expect(audited.find((entry: object) => JSON.stringify(entry).includes(publicKey))).toMatchObject({
      arguments: { rights: 'create,status', mayRefund: true, expiresOn: '31-03-2099' },
    })
  })

  it.each([
    ['--rights', '', 'must be a comma-separated list of create, status, cancel, list, refund'],
    ['--rights', 'create,,status', 'must be a comma-separated list of create, status, cancel, list, refund'],
    ['--rights', 'read', 'must be a comma-separated list of create, status, cancel, list, refund'],
    ['--expires-on', '2027-02-29', 'must be an existing day from 2000 to 2099: YYYY-MM-DD or dd-mm-yyyy'],
  ])('keys create rejects %s with the value %j', async (flag, value, rule) => {
    const { code, stderr } = await ops('keys', 'create', '--mid', 'M1', `${flag}=${value}`)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${flag} ${rule}`])
  })

  it('keys create and rotate reject a last day in the past and accept the current day', async () => {
    const mid = await newMerchant()
    const yesterday = toIstDay(new Date(Date.now() - 24 * 60 * 60_000))
    const { publicKey } = await json('keys', 'create', '--mid', mid, '--expires-on', toIstDay(new Date()))
    for (const command of [
      ['create', '--mid', mid],
      ['rotate', '--public-key', publicKey],
    ]) {
      expect(await ops('keys', ...command, '--expires-on', yesterday)).toEqual(
        fault('--expires-on is in the past: give the last day (IST) on which the key is valid'),
      )
    }
  })

  it('keys rotate keeps the rights of a key, but not its expiry', async () => {
    const mid = await newMerchant()
    const old = await json('keys', 'create', '--mid', mid, '--rights', 'status,list', '--expires-on', '2099-03-31')
    const rotate = ['keys', 'rotate', '--public-key', old.publicKey]
    expect(await json(...rotate)).toMatchObject({ rights: ['status', 'list'], expiresOn: null })
    expect((await ops(...rotate)).stdout).toContain(
      `The old key remains valid until the end of 2099-03-31 (IST) or until you revoke it: ops keys revoke --public-key ${old.publicKey}`,
    )
    expect(await json(...rotate, '--expires-on', '2099-04-30')).toMatchObject({
      rights: ['status', 'list'],
      expiresOn: '2099-04-30',
    })
  })

  it('keys rotate copies merchant or partner, rights and label from the old key, which stays valid until an operator revokes the old key', async () => {
    const mid = await newMerchant()
    const old = await json('keys', 'create', '--mid', mid, '--may-refund', '--label', 'web shop')
    const rotate = ['keys', 'rotate', '--public-key', old.publicKey]
    const created = await json(...rotate)
    expect(created).toEqual({
      ...{ publicKey: expect.stringMatching(/^pk_/), secretKey: expect.stringMatching(/^sk_/), mid, pid: null },
      ...{ label: 'web shop', rights: [...USUAL, 'refund'], expiresOn: null, createdAt: expect.any(String) },
    })
    const listed = await json('keys', 'list', '--mid', mid)
    expect(listed.map(({ publicKey, revokedAt }: Record<string, unknown>) => [publicKey, revokedAt])).toEqual([
      [old.publicKey, null],
      [created.publicKey, null],
    ])
    const { stdout } = await ops(...rotate, '--label', 'new')
    expect(stdout).toMatch(/^rights +create status cancel list refund$/m)
    expect(stdout).toMatch(/^label +new$/m)
    expect(stdout).toMatch(
      new RegExp(
        `not shown again.*\nThe old key remains valid until you revoke it: ops keys revoke --public-key ${old.publicKey}\n$`,
      ),
    )
    const audited = (await json('audit', '--mid', mid)).filter(
      ({ command }: { command: string }) => command === 'keys rotate',
    )
    expect(audited).toMatchObject([
      { arguments: { publicKey: old.publicKey }, outcome: 'done', detail: { publicKey: created.publicKey } },
      { arguments: { publicKey: old.publicKey, label: 'new' }, outcome: 'done' },
    ])
    expect(JSON.stringify(audited)).not.toContain(created.secretKey)
    const { pid } = await json('partners', 'add', '--pid', unique('P'), '--name', 'Acme')
    const ofPartner = await json('keys', 'create', '--pid', pid)
    expect(await json('keys', 'rotate', '--public-key', ofPartner.publicKey)).toMatchObject({
      mid: null,
      pid,
      rights: ['list'],
    })
  })

  it('keys create, list, rotate and revoke handle the keys of operators, whose rights are read, or read and act', async () => {
    const operator = unique('asha')
    const create = ['keys', 'create', '--operator', operator]
    const key = await json(...create, '--rights', 'act,read', '--expires-on', '2099-03-31', '--label', 'laptop')
    expect(key).toEqual({
      ...{ publicKey: expect.stringMatching(/^pk_/), secretKey: expect.stringMatching(/^sk_/), operator },
      ...{ label: 'laptop', rights: ['read', 'act'], expiresOn: '2099-03-31', createdAt: expect.any(String) },
    })
    const { rows } = await db.query('select k.*, k::text as whole from operator_keys k where operator = $1', [operator])
    expect(rows).toMatchObject([{ secret_hash: hashSecret(key.secretKey) }])
    expect(rows[0].whole).not.toContain(key.secretKey)
    const rotated = await json('keys', 'rotate', '--public-key', key.publicKey)
    expect(rotated).toMatchObject({ operator, label: 'laptop', rights: ['read', 'act'], expiresOn: null })
    expect(await json('keys', 'revoke', '--public-key', key.publicKey)).toMatchObject({ operator })
    expect(await json('keys', 'list', '--operator', operator)).toMatchObject([
      { publicKey: key.publicKey, mid: null, pid: null, operator, revokedAt: expect.any(String) },
      { publicKey: rotated.publicKey, revokedAt: null },
    ])
    const rule =
      /^ops: (the key of an operator needs --rights read or --rights read,act|--may-refund cannot be combined with --operator)\n/
    for (const flags of [[], ['--rights', 'act'], ['--rights', 'read,list'], ['--rights', 'read', '--may-refund']]) {
      expect(await ops(...create, ...flags)).toMatchObject({ code: 2, stderr: expect.stringMatching(rule) })
    }
  })

  it('keys rotate rejects an unknown, revoked or expired API key', async () => {
    const mid = await newMerchant()
    const [revoked, expired] = [await json('keys', 'create', '--mid', mid), await json('keys', 'create', '--mid', mid)]
    await json('keys', 'revoke', '--public-key', revoked.publicKey)
    await db.query(`update access_keys set expires_on = '2026-01-01' where public_key = $1`, [expired.publicKey])
    for (const one of [revoked.publicKey, expired.publicKey, 'pk_none']) {
      expect(await ops('keys', 'rotate', '--public-key', one)).toEqual(
        fault('the public key does not exist, is revoked or has expired: see ops keys list'),
      )
    }
  })

  it('keys create rejects an unknown merchant or partner', async () => {
    expect(await ops('keys', 'create', '--mid', 'NOBODY')).toEqual(
      fault('mid NOBODY does not exist: see ops merchants list'),
    )
    expect(await ops('keys', 'create', '--pid', 'NOBODY')).toEqual(
      fault('pid NOBODY does not exist: see ops partners list'),
    )
  })

  it('keys revoke rejects an unknown key, and does not change revokedAt when repeated', async () => {
    const { publicKey } = await json('keys', 'create', '--mid', await newMerchant())
    const { revokedAt } = await json('keys', 'revoke', '--public-key', publicKey)
    expect(revokedAt).toMatch(/Z$/)
    expect(await json('keys', 'revoke', '--public-key', publicKey)).toMatchObject({ revokedAt })
    expect(await ops('keys', 'revoke', '--public-key', 'pk_none')).toEqual(
      fault('the public key does not exist: see ops keys list'),
    )
  })
})

describe('settlements import', () => {
  const file = (...lines: string[]) =>
    ['mid,amount,utr,bank_reference_number,status,initiation_date', ...lines, ''].join('\n')

  it('settlements import reports invalid lines in one line on stderr and prints nothing on stdout', async () => {
    const lines = Array.from({ length: 25 }, (_, index) => `NOBODY,10.00,U${index},B1,SUCCESS,2026-01-01 09:00:00`)
    const { code, stdout, stderr } = await runOps(url, ['settlements', 'import', '-', '--json'], file(...lines))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(
      /^ops: 25 invalid lines, nothing was imported; line 2: mid is not .*; line 21: .*; and 5 more\n$/,
    )
    expect(stderr).not.toContain('line 22')
  })

  it('settlements import rejects a path that does not exist', async () => {
    expect(await ops('settlements', 'import', '/nowhere.csv')).toEqual(fault('file /nowhere.csv does not exist'))
  })

  it('settlements import reports the path of a file that ops cannot open', async () => {
    // A socket exists but cannot be opened, like another user’s file in the container of `ops`.
    const folder = mkdtempSync(join(tmpdir(), 'upi-payments-file-'))
    const socket = join(folder, 'socket')
    const server = createServer().listen(socket)
    onTestFinished(() => {
      server.close()
      rmSync(folder, { recursive: true, force: true })
    })
    await once(server, 'listening')
    expect(await ops('settlements', 'import', socket)).toEqual(fault(`${socket} cannot be read: ENXIO`))
  })
})
