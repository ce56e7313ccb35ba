import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { type DailyReportResult, importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { LIMITS } from '../../src/limits.ts'
import { CsvFileError } from '../../src/platform/csv/csv.ts'
import { MOMENT_RULE } from '../../src/platform/time.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import { storedRows } from '../support/stored-rows.ts'

const HEADER = 'order_id,status,utr,amount,paid_at'
const PAID_AT = '2026-03-31T23:59:59+05:30'

let service: TestService
let mid: string
beforeAll(async () => {
  service = await startService()
  // The command line uses the machine's clock.
  service.clock.set(new Date().toISOString())
  ;({ mid } = await newMerchant(service.db))
})

let lastOrder = 0

/**
 * Intents of ₹200, created before PAID_AT, that expire after 15 minutes. They are inserted by SQL, because a test needs
 * thousands.
 */
async function newOrders(count: number, of = mid): Promise<string[]> {
  const orderIds = Array.from({ length: count }, () => (++lastOrder).toString(16).padStart(32, '0'))
  await service.db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select $1, id, id, 20000, 'https://shop.example.in', 'Order', '', '', '',
            'chaipoint@examplebank', 'Chai Point', '5814', $3, $4::timestamptz + interval '15 minutes'
       from unnest($2::text[]) id`,
    [of, orderIds, '2026-03-31T18:20:00Z', service.clock.now()],
  )
  return orderIds
}

async function newOrder(): Promise<string> {
  const [orderId = ''] = await newOrders(1)
  return orderId
}

type Fields = { orderId: string; status?: string; utr?: string; amount?: string; paidAt?: string }

const line = ({ orderId, status = 'SUCCESS', utr = newUtr(), amount = '200.00', paidAt = PAID_AT }: Fields) =>
  [orderId, status, utr, amount, paidAt].join(',')

/** Imports a file after a dry run, which stores nothing and returns the same counts. */
async function load(lines: string[], header = HEADER, progress = {}) {
  const run = (more: object) =>
    importDailyReport(service.db, Readable.from([Buffer.from(`${[header, ...lines].join('\n')}\n`)]), {
      now: service.clock.now,
      ...more,
    })
  const before = await storedRows(service.db)
  const judged = await run({ isDry: true })
  expect(await storedRows(service.db)).toEqual(before)
  const imported = await run(progress)
  expect(judged).toEqual(imported)
  return imported
}

const importBy = (lines: string[], ...args: string[]) =>
  runOps(service.databaseUrl, ['payments', 'import', '-', ...args], [HEADER, ...lines, ''].join('\n'))

const result = ({
  recorded = 0,
  unchanged = 0,
  ...kinds
}: { recorded?: number; unchanged?: number } & Partial<DailyReportResult['exceptions']>): DailyReportResult => ({
  recorded,
  unchanged,
  exceptions: {
    'unknown order': 0,
    'amount differs': 0,
    'UTR of another order': 0,
    'double payment': 0,
    'failure after success': 0,
    'late payment': 0,
    ...kinds,
  },
})

/** Without `UTR of another merchant`, which the scheduler stores later, for the merchant that was paid later. */
const EXCEPTIONS = `(select * from payment_exceptions where kind <> 'UTR of another merchant') e`

/**
 * All stored facts of these orders, under their positions in `orderIds`; without the source and the time of the
 * reports.
 */
async function stored(orderIds: string[]) {
  const select = async (columns: string, table: string) => {
    const { rows } = await service.db.query(
      `select array_position($1::text[], order_id) as place, ${columns} from ${table} where order_id = any ($1)`,
      [orderIds],
    )
    return rows.map((row) => JSON.stringify(row)).sort()
  }
  return {
    intents: await select('status, utr', 'payment_intents'),
    payments: await select('utr, kind, paid_at', 'payments'),
    attempts: await select('status, attempt, utr, paid_at', 'payment_attempts'),
    exceptions: await select('kind, status, utr, amount_paise, paid_at', EXCEPTIONS),
  }
}

async function errorsOf(lines: string[], header?: string): Promise<CsvFileError> {
  const error = await load(lines, header).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof CsvFileError) return error
  throw error ?? new Error('the file was imported')
}

describe('daily transaction report', () => {
  it('ops payments import stores the same result, with the same counts, as the same notifications sent in sequence', {
    timeout: 60_000,
  }, async () => {
    // Always the same numbers, so that a failure can be repeated.
    let seed = 20_261_121
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return Math.floor((seed / 2 ** 31) * below)
    }
    const pick = <T>(...values: T[]) => values[random(values.length)] as T
    const CROWDED = 20
    const script = [
      // Few orders and few UTRs, so that lines contradict one another.
      ...Array.from({ length: 160 }, () => ({ order: random(CROWDED), utr: `S${random(15)}` })),
      // Orders of one line each, which contradict nothing.
      ...Array.from({ length: 60 }, (_, index) => ({ order: CROWDED + index, utr: `ONE${index}` })),
    ]
      .map((one) => ({ ...one, at: random(2 ** 20) }))
      .sort((a, b) => a.at - b.at)
      .map(({ order, utr }) => {
        const status = pick('SUCCESS', 'SUCCESS', 'FAIL', 'REJECT')
        const isAnonymous = status !== 'SUCCESS' && random(2) === 0
        return { order, status, utr: isAnonymous ? '' : utr, amount: pick('200', '200.00', '0200.0', '200', '199.99') }
      })
    const merchants = await Promise.all([newMerchant(service.db), newMerchant(service.db)])
    const orders = await Promise.all(merchants.map(async (merchant) => newOrders(CROWDED + 60, merchant.mid)))
    const [notified = [], imported = []] = orders
    for (const orderIds of orders) {
      const some = (rest: number) => orderIds.filter((_, index) => index % 5 === rest)
      await service.db.query(
        'update payment_intents set expires_at = $2, failure_reported_at = $2 where order_id = any ($1)',
        [some(1), new Date(service.clock.now().getTime() - 86_400_000)],
      )
      await service.db.query(
        `update payment_intents set status = 'CANCELLED', cancelled_at = now() where order_id = any ($1)`,
        [some(2)],
      )
    }

    for (const { order, status, utr, amount } of script) {
      const UTR = utr === '' ? undefined : utr
      await notify(service, notification(notified[order] ?? '', { status, UTR, amount, paidAt: PAID_AT }))
    }
    const lines = script.map(({ order, ...fields }) => line({ orderId: imported[order] ?? '', ...fields }))
    const first = await load(lines)

    const after = await stored(notified)
    expect(await stored(imported)).toEqual(after)
    expect(after.intents.filter((row) => row.includes('SUCCESS')).length).toBeGreaterThan(30)
    expect(Object.entries(first.exceptions).filter(([, count]) => count === 0)).toEqual([['unknown order', 0]])
    const own = after.payments.filter((row) => !row.includes('second'))
    expect(first.recorded).toBe(own.length + after.attempts.length)

    const second = await load(lines)
    expect(await stored(imported)).toEqual(after)
    expect(second.recorded).toBe(0)
  })

  it('ops payments import counts the lines of a file, and stores contradictions for the operator', async () => {
    const [notified = '', lost = '', late = '', failed = ''] = await newOrders(4)
    const expired = 'update payment_intents set expires_at = $2, failure_reported_at = $2 where order_id = $1'
    await service.db.query(expired, [late, '2026-03-01'])
    await notify(service, notification(notified, { UTR: 'DAY1' }))
    const paidAt = '2026-03-31 23:59:59'
    const lines = [
      line({ orderId: notified, utr: 'DAY1', paidAt }),
      line({ orderId: lost, utr: 'day2', paidAt }),
      line({ orderId: lost, utr: 'DAY3', paidAt }),
      line({ orderId: late }),
      line({ orderId: failed, status: 'REJECT', utr: '', paidAt: '' }),
      line({ orderId: failed, amount: '1' }),
      line({ orderId: 'nobody', utr: 'DAY4' }),
    ]
    const text =
      '3 payments recorded, 1 unchanged; exceptions: 1 unknown order, 1 amount differs, 1 double payment, 1 late payment.\n'
    expect(await importBy(lines)).toEqual({ code: 0, stdout: text, stderr: '' })
    const all = [notified, lost, late, failed, 'nobody']
    const before = await stored(all)
    const again = { 'unknown order': 1, 'amount differs': 1, 'double payment': 1 }
    expect(JSON.parse((await importBy(lines, '--json')).stdout)).toEqual({
      ...result({ unchanged: 4, ...again }),
      ...{ matched: 0, settlementImport: null, warnings: [] },
    })
    const cut = await runOps(service.databaseUrl, ['payments', 'import', '-'], [HEADER, ...lines].join('\n'))
    expect(cut.stderr).toMatch(/^ops: warning: line 8, the last one, has no line end: .*\n$/)
    expect(await stored(all)).toEqual(before)

    const shown = await runOps(service.databaseUrl, ['payments', 'show', '--order-id', lost, '--json'])
    expect(JSON.parse(shown.stdout)).toMatchObject({
      utr: 'DAY2',
      changes: [{ status: 'SUCCESS', reason: 'day file', paidAt: '2026-03-31T18:29:59.000Z' }],
      exceptions: [{ kind: 'double payment', utr: 'DAY3' }],
    })
    const { stdout } = await runOps(service.databaseUrl, ['payments', 'exceptions'])
    expect(stdout).toMatch(/unknown order .* nobody +- +SUCCESS +DAY4/)
  })

  it('ops payments import changes nothing for a line that repeats a notification, in any format', async () => {
    const [paid = '', failed = ''] = await newOrders(2)
    await notify(service, notification(paid, { UTR: 'SPELL1', amount: 200, paidAt: '2026-03-31T18:29:59.250Z' }))
    await notify(service, notification(failed, { status: 'FAIL', UTR: undefined, paidAt: '2026-03-31T18:29:59.250Z' }))
    const before = await stored([paid, failed])
    const lines = [
      `2026-03-31T23:59:59.250+05:30,${paid},0200.0,spell1,SUCCESS`,
      `"2026-03-31T18:29:59.2509Z","${failed}","200","","FAIL"`,
    ]
    expect(await load(lines, '\ufeffpaid_at, order_id ,amount,utr,status')).toEqual(result({ unchanged: 2 }))
    expect(await stored([paid, failed])).toEqual(before)
  })

  it('ops payments import records a file larger than a batch in order, and reports progress', {
    timeout: 60_000,
  }, async () => {
    const orderIds = await newOrders(2_000)
    const utrs = orderIds.map(newUtr)
    // Most are already paid, because only new payments take time.
    await service.db.query(
      `update payment_intents i set status = 'SUCCESS', utr = one.utr
         from unnest($1::text[], $2::text[]) as one (order_id, utr) where i.mid = $3 and i.order_id = one.order_id`,
      [orderIds.slice(100), utrs.slice(100), mid],
    )
    const lines = orderIds.map((orderId, index) => line({ orderId, utr: utrs[index] ?? '' }))
    // In separate batches: the first line of an order pays it.
    lines.push(
      line({ orderId: orderIds[0] ?? '', utr: 'SECOND' }),
      line({ orderId: orderIds[0] ?? '', status: 'FAIL' }),
    )
    const checked: number[] = []
    const recorded: number[] = []
    const onChecked = (lines: number) => checked.push(lines)
    const onRecorded = (lines: number) => recorded.push(lines)
    expect(await load(lines, HEADER, { onChecked, onRecorded })).toEqual(
      result({ recorded: 100, unchanged: 1_900, 'double payment': 1, 'failure after success': 1 }),
    )
    expect([checked, recorded]).toEqual([[2_003], [2_001, 2_003]])
    const { rows } = await service.db.query('select order_id, utr from payment_intents where order_id = any ($1)', [
      orderIds,
    ])
    expect(new Map(rows.map(({ order_id, utr }) => [order_id, utr]))).toEqual(
      new Map(orderIds.map((orderId, index) => [orderId, utrs[index]])),
    )
  })

  it('ops payments import records a payment after several hundred failed attempts of its order in one file', async () => {
    const orderId = await newOrder()
    const { attemptsOfOrder } = LIMITS.reports
    const failed = Array.from({ length: attemptsOfOrder + 2 }, () => line({ orderId, status: 'FAIL' }))
    expect(await load([...failed, line({ orderId })])).toEqual(result({ recorded: attemptsOfOrder + 1, unchanged: 2 }))
    const { intents, attempts } = await stored([orderId])
    expect(attempts).toHaveLength(attemptsOfOrder)
    expect(intents[0]).toContain('"status":"SUCCESS"')
  })
})

it('ops payments import assigns a line to its order_id, otherwise to the intent whose link or orderId matches the line’s reference', async () => {
  const [named = '', referred = '', own = '', one = '', other = ''] = await newOrders(5)
  // The reference does not determine which of the last two orders is paid.
  const references = { SETU1: named, SETU2: referred, TWICE1: one, TWICE2: other }
  for (const [reference, orderId] of Object.entries(references)) {
    await service.db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
       values ($1, $2, 'setu', 'S1', 'A1', $3, 'upi://pay', 0)`,
      [mid, orderId, reference.replace('TWICE2', 'TWICE1')],
    )
  }
  const unknown = 'back\\slash "é'
  const lines = [
    // Its own reference is that of another order.
    `SETU2,${line({ orderId: named })}`,
    ...['SETU2', own, 'TWICE1', `"${unknown.replace('"', '""')}"`].map((text) => `${text},${line({ orderId: '' })}`),
  ]
  const header = `acquirer_reference,${HEADER}`
  expect(await load(lines, header)).toEqual(result({ recorded: 3, 'unknown order': 2 }))
  expect(await load(lines, header)).toEqual(result({ unchanged: 3, 'unknown order': 2 }))
  const { payments, exceptions } = await stored([named, referred, own, one, other, unknown, 'TWICE1'])
  expect(payments.map((row) => JSON.parse(row).place)).toEqual([1, 2, 3])
  expect(exceptions.map((row) => JSON.parse(row).place)).toEqual([6, 7])
  // The column of order_id may be missing.
  const reference = HEADER.replace('order_id', 'acquirer_reference')
  expect(await load([line({ orderId: 'SETU1', status: 'FAIL' })], reference)).toEqual(
    result({ 'failure after success': 1 }),
  )
})

describe('invalid file', () => {
  it('ops payments import stores nothing if only the last lines of a file are invalid, and names the invalid lines', async () => {
    const orderIds = await newOrders(100)
    const before = await stored(orderIds)
    const bad = [
      line({ orderId: 'x', utr: '' }),
      line({ orderId: '', status: 'PAID', utr: '', amount: 'x', paidAt: '' }),
    ]
    expect(await importBy([...orderIds.map((orderId) => line({ orderId })), ...bad])).toEqual({
      ...{ code: 1, stdout: '' },
      stderr:
        'ops: 2 invalid lines, nothing was imported; line 102: utr is required with SUCCESS; ' +
        'line 103: status must be SUCCESS, FAIL or REJECT, amount must be rupees with at most two decimals\n',
    })
    expect(await stored(orderIds)).toEqual(before)
  })

  it('ops payments import names each invalid line with the error in the line', async () => {
    const AMOUNT = 'amount must be rupees with at most two decimals'
    const wrong: [Partial<Fields>, unknown][] = [
      [{ orderId: '' }, 'order_id or acquirer_reference is required'],
      [{ orderId: 'x'.repeat(65) }, 'order_id must be text of 1 to 64 characters, without control characters'],
      [{ status: 'PENDING' }, 'status must be SUCCESS, FAIL or REJECT'],
      [{ status: '' }, 'status is required'],
      [{ utr: 'U 1' }, 'utr must be 1 to 35 letters and digits'],
      ...['', 'NA', '000000000000'].map((utr): [Partial<Fields>, string] => [{ utr }, 'utr is required with SUCCESS']),
      [{ paidAt: '' }, 'paid_at is required with SUCCESS'],
      [{ paidAt: '2026-02-31 09:00:00' }, `paid_at ${MOMENT_RULE}`],
      [{ paidAt: '2026-02-21T09:00:00' }, `paid_at ${MOMENT_RULE}`],
      [{ amount: '' }, 'amount is required'],
      [{ amount: '100000000000.01' }, 'amount must be at most 100000000000 rupees'],
      [{ amount: '1000000000000' }, 'amount must be at most 100000000000 rupees'],
      ...['1e3', '200.005', '-200', ' 200'].map((amount): [Partial<Fields>, string] => [{ amount }, AMOUNT]),
    ]
    const { errors } = await errorsOf(wrong.map(([fields]) => line({ orderId: 'x', ...fields })))
    expect(errors).toEqual(wrong.map(([, text], index) => ({ line: index + 2, text })))
  })

  it.each([
    ['status,utr,amount,paid_at', 'column order_id or acquirer_reference or acquirer_payment_id is missing'],
    ['order_id,status,utr,fee', 'column amount is missing, column paid_at is missing, column "fee" is unknown'],
  ])('ops payments import rejects a file with the first line %s: %s', async (header, text) => {
    expect((await errorsOf([], header)).errors).toEqual([{ line: 1, text }])
  })

  it('ops payments import stores nothing from a file that breaks off during reading', async () => {
    const orderId = await newOrder()
    async function* breakingOff() {
      yield `${HEADER}\n${line({ orderId })}\n`
      throw new Error('the disk is gone')
    }
    const importing = importDailyReport(service.db, Readable.from(breakingOff()), { now: service.clock.now })
    await expect(importing).rejects.toThrow('the disk is gone')
    expect((await stored([orderId])).payments).toEqual([])
  })
})

describe('report of an acquirer account', () => {
  /** A merchant with its own account, whose link names another merchant's order as its reference, and is paid. */
  async function newThief(victim: string) {
    const { mid } = await newMerchant(service.db)
    const [orderId = ''] = await newOrders(1, mid)
    await service.db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
       values ($1, $2, 'cashfree:thief', 'cf', $2, $3, 'upi://pay', 0)`,
      [mid, orderId, victim],
    )
    return { mid, orderId }
  }
  beforeAll(async () => {
    await service.db.query(
      "insert into acquirer_accounts (name, secrets, created_at) values ('cashfree:thief', '', now()) on conflict do nothing",
    )
  })

  it('ops payments import marks no order of another acquirer or account as paid from an acquirer account’s report', async () => {
    const victim = await newOrder()
    const thief = await newThief(victim)
    const found = await importBy([line({ orderId: victim })], '--acquirer', 'cashfree:thief')
    expect(found).toMatchObject({ code: 0, stdout: '0 payments recorded, 0 unchanged; exceptions: 1 unknown order.\n' })
    const byReference = await runOps(
      service.databaseUrl,
      ['payments', 'import', '-', '--acquirer', 'cashfree:thief'],
      [HEADER.replace('order_id', 'acquirer_reference'), line({ orderId: victim }), ''].join('\n'),
    )
    expect(byReference.stdout).toBe('1 payment recorded, 0 unchanged; exceptions: none.\n')
    const { rows } = await service.db.query(
      'select order_id, status from payment_intents where order_id = any ($1) order by status',
      [[victim, thief.orderId]],
    )
    expect(rows).toEqual([
      { order_id: victim, status: 'PENDING' },
      { order_id: thief.orderId, status: 'SUCCESS' },
    ])
    const paid = await importBy([line({ orderId: victim })], '--acquirer', 'direct')
    expect(paid.stdout).toBe('1 payment recorded, 0 unchanged; exceptions: none.\n')
    const repeated = await importBy([line({ orderId: victim })], '--acquirer', 'cashfree:thief')
    expect(repeated.stdout).toBe('0 payments recorded, 0 unchanged; exceptions: 1 unknown order.\n')
  })

  it('ops payments import rejects a report without the name of the report’s account, and records nothing', async () => {
    const victim = await newOrder()
    const { code, stderr } = await importBy([line({ orderId: victim })])
    expect(code).toBe(2)
    expect(stderr).toContain('--acquirer setu:acme')
    expect((await stored([victim])).payments).toEqual([])
  })
})
