import { describe, expect, it } from 'vitest'
import { readIdempotency } from '../../src/gateway/payments/create.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { notification, notify } from '../support/acquirer.ts'
import { opsOn, runOps, runOpsOnTerminal } from '../support/ops.ts'
import {
  basic,
  CREATE,
  errorResponse,
  intentFields,
  type Key,
  newKey,
  newMerchant,
  post,
  REFUND,
  startService,
} from '../support/service.ts'

const DAY_MS = 24 * 60 * 60_000
/** Longer than a command takes to start, shorter than the steps by which tests move the clock. */
const MINUTE_MS = 60_000

const service = await startService()

const { ops, json } = opsOn(() => service.databaseUrl, ['payments', 'forget-customers'])
const forget = async (days: number) => {
  const { forgotten: erased } = await json('--older-than-days', String(days), '--yes')
  return { forgotten: erased }
}

/** Creates an intent whose creation time is `ageMs` in the past. */
async function create(
  { mid, key }: { mid: string; key: Key },
  ageMs: number,
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
) {
  service.clock.set(new Date(Date.now() - ageMs).toISOString())
  return post(service.app, CREATE, intentFields(mid, fields), key, headers)
}

async function rowOf(orderId: string) {
  const { rows } = await service.db.query('select * from payment_intents where order_id = $1', [orderId])
  return rows[0]
}

const KEY_REUSED = errorResponse(
  422,
  'This Idempotency-Key was already used with other fields. Use a new key for a new request.',
)

const ERASED = { customer_name: '', customer_email: '', customer_mobile: '' }

/** Tries mobile numbers against the stored hash of the request, as an attacker with a copy of the table would. */
async function guessMobile(orderId: string): Promise<string | undefined> {
  const row = await rowOf(orderId)
  const stored = Object.values(row).filter(Buffer.isBuffer)
  const candidates = Array.from({ length: 1_000 }, (_, i) => String(123_456_000 + i).padStart(10, '0'))
  return candidates.find((mobile) => {
    const { mid, merchant_order_id: own, redirect_url, note } = row
    const amount = Number(row.amount_paise)
    const fields = { mid, amount, ...(own !== orderId && { order_id: own }), redirect_url, note }
    const customer = { customer_name: 'Asha Rao', customer_email: 'asha@example.in', customer_mobile: mobile }
    const guess = readIdempotency(row.idempotency_key, 'createPaymentIntent', { ...fields, ...customer })
    return stored.some((bytes) => bytes.equals(guess?.fingerprint as Buffer))
  })
}

describe('payments forget-customers', () => {
  it('payments forget-customers empties only the customer fields of intents older than N days, to the minute', async () => {
    const [merchant, other] = [await newMerchant(service.db), await newMerchant(service.db)]
    const older = [
      await create(merchant, 10 * DAY_MS + MINUTE_MS),
      await create(merchant, 500 * DAY_MS),
      await create(other, 11 * DAY_MS, { note: 'Order of Asha' }),
    ].map(({ body }) => body.data.orderId)
    const younger = (await create(merchant, 10 * DAY_MS - 2 * MINUTE_MS)).body.data.orderId
    const before = await Promise.all(older.map(rowOf))
    expect(await forget(10)).toEqual({ forgotten: 3 })
    expect(await Promise.all(older.map(rowOf))).toEqual(before.map((row) => ({ ...row, ...ERASED })))
    expect(await rowOf(younger)).toMatchObject({
      customer_name: 'Asha Rao',
      customer_email: 'asha@example.in',
      customer_mobile: '0123456789',
    })
    expect(await forget(10)).toEqual({ forgotten: 0 })
    expect((await ops('--older-than-days', '9', '--yes')).stdout).toBe('Customer data of 1 intent erased.\n')
  })

  it('payments forget-customers --older-than-days leaves orders that can still be paid, and --email erases them too', async () => {
    const merchant = await newMerchant(service.db, { maxExpiryMinutes: 43_200 })
    const of = (expiry_minutes: string) =>
      create(merchant, 12 * DAY_MS, { expiry_minutes, customer_email: 'kiran@example.in' })
    const [open, expired] = [(await of('43200')).body.data.orderId, (await of('17000')).body.data.orderId]
    expect(await forget(10)).toEqual({ forgotten: 1 })
    expect([(await rowOf(open)).customer_name, (await rowOf(expired)).customer_name]).toEqual(['Asha Rao', ''])
    expect(await json('--email', 'kiran@example.in', '--yes')).toMatchObject({ forgotten: 1 })
    expect(await rowOf(open)).toMatchObject(ERASED)
  })

  it('payments forget-customers changes neither used order_ids nor the history, and makes an idempotent retry return 422', async () => {
    const merchant = await newMerchant(service.db)
    const fields = { order_id: '1001' }
    const once = { 'idempotency-key': 'retry-1001' }
    const first = await create(merchant, 3 * DAY_MS, fields, once)
    const { orderId } = first.body.data
    await notify(service, notification(orderId, { UTR: 'FORGET1' }))
    expect(await forget(2)).toEqual({ forgotten: 1 })
    expect(await rowOf(orderId)).toMatchObject(ERASED)

    expect((await create(merchant, 0, fields, once)).body).toEqual(KEY_REUSED)
    expect((await create(merchant, 0, { ...fields, customer_mobile: '9999999999' }, once)).body).toEqual(KEY_REUSED)
    expect((await create(merchant, 0, fields)).body).toEqual(errorResponse(409, 'Order ID already exists'))
    const shown = await runOps(service.databaseUrl, ['payments', 'show', '--order-id', orderId, '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({ status: 'SUCCESS', utr: 'FORGET1', note: 'Order 1001' })
    expect((await service.app.inject(`/pay/${orderId}`)).statusCode).toBe(200)
    const status = await post(
      service.app,
      '/v1/payments/checkPaymentStatus',
      { mid: merchant.mid, order_id: '1001' },
      undefined,
      { authorization: basic(merchant.key) },
    )
    expect(status.body).toMatchObject({ txnStatus: 'SUCCESS' })
  })

  it('payments forget-customers leaves no hash that reveals a mobile number to a search through all numbers', async () => {
    const merchant = await newMerchant(service.db)
    const created = await create(merchant, 3 * DAY_MS, { order_id: '1002' }, { 'idempotency-key': 'retry-1002' })
    const { orderId } = created.body.data
    expect(await guessMobile(orderId)).toBe('0123456789')
    expect(await forget(2)).toEqual({ forgotten: 1 })
    expect(await guessMobile(orderId)).toBeUndefined()
  })

  it('payments forget-customers empties refund notes, including later notes, and leaves refund retries idempotent', async () => {
    const merchant = await newMerchant(service.db)
    const key = await newKey(service.db, merchant, RIGHTS)
    const [mine, other] = ['9812340001', '9812340002']
    const notes = async () =>
      (await service.db.query('select note from refunds where mid = $1 order by refund_id', [merchant.mid])).rows.map(
        ({ note }) => note,
      )
    const paid = async (customer_mobile: string) => {
      const { orderId } = (await create(merchant, 3 * DAY_MS, { customer_mobile })).body.data
      await notify(service, notification(orderId))
      return orderId as string
    }
    const refund = (order_id: string, refund_id: string, note = 'Asha was not at home') =>
      post(service.app, REFUND, { mid: merchant.mid, order_id, refund_id, amount: '50', note }, key)
    const [orderId, neighbours] = [await paid(mine), await paid(other)]
    const { body } = await refund(orderId, 'R1')
    await refund(neighbours, 'R2')
    expect((await ops('--mobile', mine, '--yes')).code).toBe(0)
    expect(await notes()).toEqual(['', 'Asha was not at home'])
    expect((await refund(orderId, 'R1')).body).toEqual(body)
    expect((await refund(neighbours, 'R1')).status).toBe(409)
    expect((await refund(orderId, 'R3')).status).toBe(200)
    expect(await forget(2)).toEqual({ forgotten: 2 })
    expect(await notes()).toEqual(['', '', ''])
    expect(await forget(2)).toEqual({ forgotten: 0 })
  })

  it('payments forget-customers erases thousands of intents in batches, and each intent once over two concurrent runs', async () => {
    const { mid } = await newMerchant(service.db)
    // More than two batches of 1,000.
    const count = 2_100
    await service.db.query(
      `insert into payment_intents
         (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
          payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       select $1, id, id, 20000, 'https://shop.example.in', 'Order', 'Asha Rao', 'asha@example.in', '0123456789',
              'chaipoint@examplebank', 'Chai Point', '5814', at, at + interval '15 minutes'
         from generate_series(1, $2::int) i,
              lateral (select timestamptz '2020-01-01 00:00:00+00' + i * interval '1 second' as at) moments,
              lateral (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
                              || left(md5(i::text), 20) as id) ids`,
      [mid, count],
    )
    const runs = await Promise.all([forget(100), forget(100)])
    expect(runs.reduce((sum, { forgotten: erased }) => sum + erased, 0)).toBe(count)
    const { rowCount } = await service.db.query(
      `select from payment_intents where mid = $1 and (customer_name, customer_email, customer_mobile) <> ('', '', '')`,
      [mid],
    )
    expect(rowCount).toBe(0)
  })

  it('payments forget-customers --email and --mobile erase exactly one customer, across all merchants and orders of any age', async () => {
    const [merchant, other] = [await newMerchant(service.db), await newMerchant(service.db)]
    const of = async (owner: typeof merchant, ageMs: number, email: string, mobile: string) =>
      (await create(owner, ageMs, { customer_email: email, customer_mobile: mobile })).body.data.orderId as string
    const theirs = [
      await of(merchant, 0, 'Ravi.K@example.in', '9812345670'),
      await of(other, 400 * DAY_MS, 'ravi.k@EXAMPLE.in', '9812345671'),
    ]
    const neighbour = await of(merchant, 0, 'ravi.kk@example.in', '9812345672')
    expect((await ops('--email', 'ravi.k@example.in', '--yes')).stdout).toBe('Customer data of 2 intents erased.\n')
    expect(await Promise.all(theirs.map(rowOf))).toEqual(theirs.map(() => expect.objectContaining(ERASED)))
    expect(await rowOf(neighbour)).toMatchObject({ customer_email: 'ravi.kk@example.in' })
    // Erased intents no longer match.
    expect((await ops('--email', 'ravi.k@example.in', '--yes')).stdout).toBe('Customer data of 0 intents erased.\n')

    expect((await ops('--mobile', '+91 98123 45672', '--yes')).stdout).toBe('Customer data of 1 intent erased.\n')
    expect(await rowOf(neighbour)).toMatchObject(ERASED)
  })

  it('payments forget-customers matches a domain in Unicode or ASCII form, and a mobile number in the digits of another script', async () => {
    const { mid, key } = await newMerchant(service.db, { input: 'shop' })
    const of = async (customer_email: string, customer_mobile: string) =>
      (await create({ mid, key }, 0, { customer_email, customer_mobile })).body.data.orderId as string
    const ascii = 'ravi@xn--p1b6ci4b4b3a.xn--h2brj9c'
    for (const typed of ['ravi@उदाहरण.भारत', ascii]) {
      const theirs = [await of('ravi@उदाहरण.भारत', '9812345673'), await of(ascii.toUpperCase(), '9812345674')]
      expect(await json('--email', typed, '--yes')).toMatchObject({ forgotten: 2 })
      expect(await Promise.all(theirs.map(rowOf))).toEqual(theirs.map(() => expect.objectContaining(ERASED)))
    }
    const orderId = await of(ascii, '+91 ०९८१२३४५६७५')
    expect(await json('--mobile', '0091 98123 45675', '--yes')).toMatchObject({ forgotten: 1 })
    expect(await rowOf(orderId)).toMatchObject(ERASED)
  })

  it('payments forget-customers warns if --older-than-days is below the 365 days that the law will require', async () => {
    const LAW =
      'from 13 May 2027 at the latest, rule 8(3) of the DPDP Rules 2025 requires this data to be retained for one year: use 365 days or more'
    expect((await ops('--older-than-days', '364')).stderr).toContain(`warning: ${LAW}`)
    expect(await json('--older-than-days', '364')).toEqual({ forgotten: 0, warnings: [LAW] })
    expect(await json('--older-than-days', '365')).toEqual({ forgotten: 0, warnings: [] })
    expect((await ops('--email', 'nobody@example.in')).stderr).not.toContain('warning')
  })

  describe('the confirmation of payments forget-customers', () => {
    /** Creates an intent of a new customer; `isKnown` returns whether its customer data is still stored. */
    async function newCustomer() {
      const mobile = `98${String(Math.random()).slice(2, 10)}`
      const { orderId } = (await create(await newMerchant(service.db), 0, { customer_mobile: mobile })).body.data
      const isKnown = async () => (await rowOf(orderId)).customer_mobile !== ''
      return { mobile, isKnown }
    }
    const onTerminal = (response: string, ...args: string[]) =>
      runOpsOnTerminal(service.databaseUrl, ['payments', 'forget-customers', ...args], response)

    it('payments forget-customers --dry-run prints the number of intents and erases nothing', async () => {
      const { mobile, isKnown } = await newCustomer()
      expect(await ops('--mobile', mobile, '--dry-run')).toMatchObject({
        code: 0,
        stdout: 'Would erase the customer data of 1 intent.\n',
      })
      expect(await json('--mobile', mobile, '--dry-run')).toEqual({ wouldForget: 1, warnings: [] })
      expect(await isKnown()).toBe(true)
    })

    it('payments forget-customers requires --yes without a terminal for data younger than 365 days', async () => {
      const { mobile, isKnown } = await newCustomer()
      const { code, stdout, stderr } = await ops('--mobile', mobile)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(
        /would erase the customer data of 1 intent: add --yes to confirm, because standard input is not a terminal\n$/,
      )
      expect(await isKnown()).toBe(true)
      await create(await newMerchant(service.db), 40 * DAY_MS)
      expect((await ops('--older-than-days', '39')).stderr).toMatch(
        /warning: .*\n.*erase the customer data of 1 intent: add --yes/,
      )
      expect(await forget(39)).toEqual({ forgotten: 1 })
    })

    it('payments forget-customers on a terminal prints the number of intents and erases only after the input y', async () => {
      const { mobile, isKnown } = await newCustomer()
      const declined = await onTerminal('n\n', '--mobile', mobile)
      expect(declined).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('erase the customer data of 1 intent? (y/N)'),
      })
      expect(await isKnown()).toBe(true)
      expect((await onTerminal('y\n', '--mobile', mobile)).code).toBe(0)
      expect(await isKnown()).toBe(false)
    })

    it('payments forget-customers --older-than-days 365 needs no confirmation, so that a daily job can run the command', async () => {
      await create(await newMerchant(service.db), 366 * DAY_MS)
      expect(await ops('--older-than-days', '365')).toMatchObject({
        code: 0,
        stderr: 'ops: erase the customer data of 1 intent …\n',
        stdout: 'Customer data of 1 intent erased.\n',
      })
    })
  })

  it('payments forget-customers stores no customer data in the audit', async () => {
    expect((await ops('--email', 'canary@example.in')).code).toBe(0)
    expect((await ops('--mobile', '9898989898')).code).toBe(0)
    const { stdout } = await runOps(service.databaseUrl, ['audit', '--json'])
    const { rows } = await service.db.query(
      'select c::text, o::text from audit_commands c left join audit_outcomes o using (audit_id)',
    )
    const stored = JSON.stringify([JSON.parse(stdout), rows])
    expect(stored).not.toMatch(/canary|9898989898/)
    expect(JSON.parse(stdout).slice(-2)).toEqual([
      expect.objectContaining({ arguments: { email: 'withheld' }, outcome: 'done', detail: { forgotten: 0 } }),
      expect.objectContaining({ arguments: { mobile: 'withheld' }, outcome: 'done', detail: { forgotten: 0 } }),
    ])
  })

  it.each([
    [[]],
    [['--older-than-days', '1', '--email', 'a@b.in']],
    [['--mobile', '12']],
    [['--older-than-days', '0']],
    [['--older-than-days', '1.5']],
    [['--older-than-days', '-1']],
  ])('payments forget-customers rejects the arguments %j with usage and exit code 2', async (args) => {
    const { code, stdout, stderr } = await ops(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(
      'usage:\n  ops payments forget-customers (--older-than-days N | --email ADDRESS |\n      --mobile NUMBER)',
    )
  })
})
