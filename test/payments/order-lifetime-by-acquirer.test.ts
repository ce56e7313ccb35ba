import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createAccounts } from '../../src/gateway/acquirers/acquirers.ts'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { createTestDatabase } from '../support/database.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { unique } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { ENCRYPTION_KEYS } from '../support/webhooks.ts'

const { url, db } = await createTestDatabase()

const SETTINGS = {
  ...{ SETU_CLIENT_ID: 'id', SETU_CLIENT_SECRET: 'secret', SETU_NOTIFICATION_SECRETS: 'a'.repeat(20) },
  ...{ CASHFREE_CLIENT_ID: 'id', CASHFREE_CLIENT_SECRET: 'secret' },
  ...{ PHONEPE_CLIENT_ID: 'id', PHONEPE_CLIENT_VERSION: '1', PHONEPE_CLIENT_SECRET: 'secret' },
  ...{ PHONEPE_WEBHOOK_PASSWORD: 'Passw0rd9' },
  ...{ RAZORPAY_KEY_ID: 'rzp_test_1', RAZORPAY_KEY_SECRET: 'secret', RAZORPAY_WEBHOOK_SECRETS: 'webhook-secret' },
  WEBHOOK_SEALING_KEY: `${ENCRYPTION_KEYS[0]?.export().toString('base64')}`,
}

const ops = (...args: string[]) => runOps(url, args, '', SETTINGS)
const rotate = (name: string, lines: string) => runOps(url, ['accounts', 'rotate', ...which(name)], lines, SETTINGS)
const which = (name: string) => ['--acquirer', 'razorpay', '--account', name]
const linesOf = (minutes?: number) =>
  `RAZORPAY_KEY_ID=rzp_test_2\nRAZORPAY_KEY_SECRET=secret\nRAZORPAY_WEBHOOK_SECRETS=webhook-secret\n${minutes === undefined ? '' : `RAZORPAY_LINK_MINUTES=${minutes}\n`}`

async function addAccount(minutes?: number) {
  const name = unique('acc').toLowerCase()
  const added = await runOps(url, ['accounts', 'add', ...which(name)], linesOf(minutes), SETTINGS)
  expect(added).toMatchObject({ code: 0, stderr: '' })
  return name
}

const newMid = () => `M${randomUUID().slice(0, 8)}`
const add = (mid: string, acquirer: string, minutes: readonly (number | undefined)[]) =>
  ops(
    ...['merchants', 'add', '--mid', mid, '--name', 'Shop', '--vpa', 'shop@examplebank', '--mcc', '5814'],
    ...['--acquirer', acquirer, '--acquirer-merchant-id', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    ...['--expiry-minutes', '--max-expiry-minutes'].flatMap((flag, index) =>
      minutes[index] === undefined ? [] : [flag, String(minutes[index])],
    ),
  )

/** Why `ops` rejects the settings of razorpay accounts; `name` is the account with the smallest value. */
const rule = (longest: number, name = 'razorpay') =>
  `${name} accepts orders of at most ${longest} minutes: set --expiry-minutes and --max-expiry-minutes to ${longest} or less`

const LONGEST = { direct: 43_200, setu: 1_440, cashfree: 1_440, phonepe: 43_200, razorpay: 10 }
type Name = keyof typeof LONGEST
const NAMES = Object.keys(LONGEST) as Name[]
const LINKING = NAMES.filter((name) => name !== 'direct')
const CHAINS: Name[][] = [
  ...NAMES.map((name) => [name]),
  ...LINKING.flatMap((first) => LINKING.filter((next) => next !== first).map((next) => [first, next])),
]

describe('ops merchants', () => {
  it.each(CHAINS)(
    'accepts for the chain %s %s every time to pay that all its acquirers allow, and no other',
    async (...names) => {
      const chain = names.filter((name) => typeof name === 'string')
      const longest = Math.min(...chain.map((name) => LONGEST[name]))
      // Setu needs an identifier of the merchant.
      const typed = chain.map((name) => `${name}/01ARZ3NDEKTSV4RRFFQ69G5FAV`).join()
      for (const minutes of [5, 10, 15, 1_440, 43_200]) {
        const { code, stderr } = await add(newMid(), typed, [Math.min(minutes, 1_440), minutes])
        expect([minutes, code]).toEqual([minutes, minutes <= longest ? 0 : 1])
        if (code !== 0) expect(stderr).toMatch(`accepts orders of at most ${longest} minutes`)
      }
      // Without the settings, an order can be open for as long as INTENT_EXPIRY_MINUTES and expiry_minutes allow.
      expect((await add(newMid(), typed, [])).code).toBe(longest < 1_440 ? 1 : 0)
    },
  )

  it.each([
    [undefined, undefined],
    [10, undefined],
    [undefined, 10],
    [11, 10],
    [10, 11],
    [10, 1_440],
  ])('rejects %j and %j minutes for Razorpay, and names both flags and the value', async (...minutes) => {
    const { code, stderr } = await add(newMid(), 'razorpay', minutes)
    expect([code, stderr]).toEqual([1, expect.stringContaining(rule(10))])
  })

  it('names the smallest value of the accounts of a chain', async () => {
    const [few, many] = [await addAccount(5), await addAccount(1_440)]
    for (const chain of [
      `razorpay:${few},razorpay:${many}`,
      `razorpay:${many},razorpay:${few}`,
      `cashfree,razorpay:${few}`,
    ]) {
      const { code, stderr } = await add(newMid(), chain, [10, 10])
      expect([code, stderr]).toEqual([1, expect.stringContaining(rule(5, `razorpay:${few}`))])
      expect((await add(newMid(), chain, [5, 5])).code).toBe(0)
    }
    expect((await add(newMid(), `razorpay:${many}`, [])).code).toBe(0)
  })

  it('rejects a change of any setting, of the acquirer or of the account that makes orders too long', async () => {
    const few = await addAccount(5)
    const [mid, other] = [newMid(), newMid()]
    expect((await add(mid, 'razorpay', [10, 10])).code).toBe(0)
    expect((await add(other, 'cashfree', [])).code).toBe(0)
    for (const [of, ...changes] of [
      [mid, '--expiry-minutes', 'default'],
      [mid, '--expiry-minutes', '11'],
      [mid, '--max-expiry-minutes', 'default'],
      [mid, '--account', few],
      [mid, '--acquirer', `razorpay,razorpay:${few}`],
      [other, '--acquirer', 'razorpay'],
      [other, '--acquirer', 'cashfree,razorpay'],
    ]) {
      const { code, stderr } = await ops('merchants', 'update', '--mid', of as string, ...changes)
      expect([changes, code, stderr]).toEqual([changes, 1, expect.stringContaining('accepts orders of at most')])
    }
    expect((await ops('merchants', 'update', '--mid', mid, '--name', 'Another')).code).toBe(0)
  })

  it.each(['4', '0', '1441', '10.5', 'default'])(
    'rejects an account with RAZORPAY_LINK_MINUTES=%s',
    async (minutes) => {
      const lines = linesOf().concat(`RAZORPAY_LINK_MINUTES=${minutes}\n`)
      const { code, stderr } = await runOps(url, ['accounts', 'add', ...which(unique('x'))], lines, SETTINGS)
      expect([code, stderr]).toEqual([1, expect.stringContaining('RAZORPAY_LINK_MINUTES')])
    },
  )
})

describe('ops accounts rotate', () => {
  it('rejects a lower value while a merchant, as first or fallback, has longer orders, and names the merchants', async () => {
    const name = await addAccount(20)
    const account = `razorpay:${name}`
    const [first, fallback, short] = [newMid(), newMid(), newMid()]
    expect((await add(first, account, [15, 20])).code).toBe(0)
    expect((await add(fallback, `cashfree,${account}`, [20, 5])).code).toBe(0)
    expect((await add(short, account, [5, 10])).code).toBe(0)
    expect((await ops('merchants', 'disable', '--mid', first)).code).toBe(0)

    const { code, stderr } = await rotate(name, linesOf())
    expect(code).toBe(1)
    const mids = [first, fallback].join(', ')
    expect(stderr).toContain(`${rule(10, account)} with ops merchants update first, for the merchants ${mids}`)
    expect(stderr).not.toContain(short)
    const { rows } = await db.query('select earlier_secrets from acquirer_accounts where name = $1', [account])
    expect(rows).toEqual([{ earlier_secrets: null }])

    for (const mid of [first, fallback]) {
      const lower = ['--expiry-minutes', '10', '--max-expiry-minutes', '10']
      expect((await ops('merchants', 'update', '--mid', mid, ...lower)).code).toBe(0)
    }
    expect((await rotate(name, linesOf())).code).toBe(0)
  })

  it('rejects --back to a lower value in the same way', async () => {
    const name = await addAccount(10)
    expect((await rotate(name, linesOf(20))).code).toBe(0)
    const mid = newMid()
    expect((await add(mid, `razorpay:${name}`, [20, 20])).code).toBe(0)
    const back = await ops('accounts', 'rotate', ...which(name), '--back')
    expect([back.code, back.stderr]).toEqual([1, expect.stringContaining(`for the merchants ${mid}`)])
  })

  it('names at most 20 merchants, and the number of the others', async () => {
    const name = await addAccount(20)
    await db.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, acquirer, expiry_minutes, max_expiry_minutes, created_at)
       select 'MANY' || i, 'Shop', 'shop@examplebank', '5814', 'link', $1, 20, 20, now() from generate_series(1, 25) i`,
      [`razorpay:${name}`],
    )
    expect((await rotate(name, linesOf())).stderr).toMatch(/(MANY\d+, ){19}MANY\d+ and 5 more/)
  })

  it('waits for a merchant that is stored concurrently, which waits for a rotation', async () => {
    const name = await addAccount(20)
    const client = await db.connect()
    const mid = newMid()
    // On Citus, pg_stat_activity does not show a lock awaited on a worker.
    const waiting = ON_CITUS
      ? 'select from citus_lock_waits where blocked_statement like $1'
      : `select from pg_stat_activity where wait_event_type = 'Lock' and query like $1`
    const isWaiting = async (query: string) => (await db.query(waiting, [query])).rowCount === 1
    try {
      await client.query('begin')
      await client.query('update acquirer_accounts set name = name where name = $1', [`razorpay:${name}`])
      const added = add(mid, `razorpay:${name}`, [20, 20])
      await until('merchants add waits', () => isWaiting('%acquirer_accounts%for share'))
      await client.query('commit')
      expect((await added).code).toBe(0)

      await client.query('begin')
      await client.query('select from acquirer_accounts where name = $1 for share', [`razorpay:${name}`])
      const rotated = rotate(name, linesOf())
      await until('accounts rotate waits', () => isWaiting('update acquirer_accounts%'))
      await client.query('commit')
      expect((await rotated).stderr).toContain(mid)
    } finally {
      client.release()
    }
  })
})

it('/readyz warns of the longest orders of an account whose value in the environment became lower', async () => {
  const ofMerchants = [{ acquirer: 'razorpay', longestOrder: 15 }]
  const account = { apiUrl: '', clientId: '', clientSecret: '', notificationSecrets: ['secret'] }
  const warnings = (linkMinutes: number) =>
    createAccounts({ direct: [], razorpay: { ...account, linkMinutes } }).warningsOf(ofMerchants)
  expect(await warnings(15)).toEqual([])
  expect(await warnings(10)).toEqual([`Merchants have orders of up to 15 minutes, but ${rule(10)}`])

  await db.query('update merchants set disabled_at = now()')
  expect((await add(newMid(), 'cashfree,razorpay', [7, 9])).code).toBe(0)
  expect(await createMerchants(db).acquirers()).toEqual([
    { acquirer: 'cashfree', longestOrder: 9 },
    { acquirer: 'razorpay', longestOrder: 9 },
  ])
})
