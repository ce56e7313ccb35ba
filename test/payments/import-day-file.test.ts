import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { CsvFileError } from '../../src/csv.ts'
import { LIMITS } from '../../src/limits.ts'
import { type DayFileResult, importDayFile } from '../../src/payments/import-day-file.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'

const HEADER = 'order_id,status,utr,amount,paid_at'
const PAID_AT = '2026-03-31T23:55:00+05:30'
/** PostgreSQL's 64 locks for each of 100 connections. */
const DEFAULT_LOCKS = 6_400

let service: TestService
let mid: string
beforeAll(async () => {
  service = await startService()
  ;({ mid } = await newMerchant(service.db))
})

let lastOrder = 0

/** Intents of ₹200, by SQL because a test needs thousands. They expire in 15 minutes, as the service makes them. */
async function newOrders(count: number, of = mid): Promise<string[]> {
  const orderIds = Array.from({ length: count }, () => (++lastOrder).toString(16).padStart(32, '0'))
  await service.db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select $1, id, id, 200, 'https://shop.example.in', 'Order', '', '', '',
            'chaipoint@examplebank', 'Chai Point', '5814', $3, $3::timestamptz + interval '15 minutes'
       from unnest($2::text[]) id`,
    [of, orderIds, service.clock.now()],
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

const load = (lines: string[], header = HEADER, progress = {}) =>
  importDayFile(service.db, Readable.from([Buffer.from(`${[header, ...lines].join('\n')}\n`)]), {
    now: service.clock.now,
    ...progress,
  })

const result = ({
  recorded = 0,
  unchanged = 0,
  ...kinds
}: { recorded?: number; unchanged?: number } & Partial<DayFileResult['exceptions']>): DayFileResult => ({
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

/** All that is stored of these orders, under their places in `orderIds`; without who told it and when. */
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
    changes: await select('status, utr, paid_at', 'payment_changes'),
    attempts: await select('status, attempt, utr, paid_at', 'payment_attempts'),
    exceptions: await select('kind, status, utr, amount, paid_at', 'payment_exceptions'),
  }
}

const reasonOf = async (orderId: string) =>
  (await service.db.query('select reason from payment_changes where order_id = $1', [orderId])).rows[0]?.reason

async function faultsOf(lines: string[], header?: string): Promise<CsvFileError> {
  const error = await load(lines, header).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof CsvFileError) return error
  throw error ?? new Error('the file was imported')
}

describe('a day file', () => {
  it('stores what the same notifications would have stored one after the other, with the same counts', async () => {
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
      ...Array.from({ length: 240 }, () => ({ order: random(CROWDED), utr: `S${random(15)}` })),
      // Orders of one line each, between which there is nothing to decide.
      ...Array.from({ length: 150 }, (_, index) => ({ order: CROWDED + index, utr: `ONE${index}` })),
    ]
      .map((one) => ({ ...one, at: random(2 ** 20) }))
      .sort((a, b) => a.at - b.at)
      .map(({ order, utr }) => {
        const status = pick('SUCCESS', 'SUCCESS', 'FAIL', 'REJECT')
        const isAnonymous = status !== 'SUCCESS' && random(2) === 0
        return { order, status, utr: isAnonymous ? '' : utr, amount: pick('200', '200.00', '0200.0', '200', '199.99') }
      })
    const merchants = await Promise.all([newMerchant(service.db), newMerchant(service.db)])
    const orders = await Promise.all(merchants.map(async (merchant) => newOrders(CROWDED + 150, merchant.mid)))
    const [notified = [], imported = []] = orders
    for (const orderIds of orders) {
      const some = (rest: number) => orderIds.filter((_, index) => index % 5 === rest)
      await service.db.query(
        `update payment_intents set expires_at = created_at - '1 day'::interval where order_id = any ($1)`,
        [some(1)],
      )
      await service.db.query(`update payment_intents set status = 'CANCELLED' where order_id = any ($1)`, [some(2)])
    }

    for (const { order, status, utr, amount } of script) {
      const UTR = utr === '' ? undefined : utr
      await notify(service, notification(notified[order] ?? '', { status, UTR, amount, paidAt: PAID_AT }))
    }
    const lines = script.map(({ order, ...fields }) => line({ orderId: imported[order] ?? '', ...fields }))
    const first = await load(lines)

    const after = await stored(notified)
    expect(await stored(imported)).toEqual(after)
    expect(after.intents.filter((row) => row.includes('SUCCESS')).length).toBeGreaterThan(50)
    expect(Object.entries(first.exceptions).filter(([, count]) => count === 0)).toEqual([['unknown order', 0]])
    expect(first.recorded).toBe(after.changes.length + after.attempts.length)

    const second = await load(lines)
    expect(await stored(imported)).toEqual(after)
    expect(second.recorded).toBe(0)
  })

  it('says who told of a payment, and that a second run has changed nothing', async () => {
    const [paid = '', late = '', failed = ''] = await newOrders(3)
    await service.db.query(`update payment_intents set expires_at = $2 where order_id = $1`, [late, '2026-03-01'])
    const lines = [
      line({ orderId: paid, utr: 'abc1' }),
      line({ orderId: late }),
      line({ orderId: failed, status: 'REJECT', utr: '', paidAt: '' }),
      line({ orderId: failed, amount: '1' }),
      line({ orderId: 'no such order' }),
    ]
    const contradictions = { 'amount differs': 1, 'unknown order': 1 }
    expect(await load(lines)).toEqual(result({ recorded: 3, 'late payment': 1, ...contradictions }))
    expect(await reasonOf(paid)).toBe('day file')
    const before = await stored([paid, late, failed, 'no such order'])
    expect(before.intents[0]).toContain('ABC1')
    expect(await load(lines)).toEqual(result({ unchanged: 3, ...contradictions }))
    expect(await stored([paid, late, failed, 'no such order'])).toEqual(before)
  })

  it('that tells what was notified already changes nothing, whatever the spelling', async () => {
    const [paid = '', failed = ''] = await newOrders(2)
    await notify(service, notification(paid, { UTR: 'SPELL1', amount: 200, paidAt: '2026-03-31T18:25:00.250Z' }))
    await notify(service, notification(failed, { status: 'FAIL', UTR: undefined, paidAt: '2026-03-31T18:25:00.250Z' }))
    const before = await stored([paid, failed])
    const lines = [
      `2026-03-31T23:55:00.250+05:30,${paid},0200.0,spell1,SUCCESS`,
      `"2026-03-31T18:25:00.2509Z","${failed}","200","","FAIL"`,
    ]
    expect(await load(lines, '\ufeffpaid_at, order_id ,amount,utr,status')).toEqual(result({ unchanged: 2 }))
    expect(await stored([paid, failed])).toEqual(before)
  })

  it('takes a time without a zone for Indian time', async () => {
    const orderId = await newOrder()
    await load([line({ orderId, paidAt: '2026-03-31 23:55:00' })])
    expect((await stored([orderId])).changes[0]).toContain('2026-03-31T18:25:00.000Z')
  })

  it('larger than a batch is recorded in its order, and tells how far it is', async () => {
    const orderIds = await newOrders(4_500)
    const utrs = orderIds.map(newUtr)
    const lines = orderIds.map((orderId, index) => line({ orderId, utr: utrs[index] ?? '' }))
    // In batches of their own: the first line of an order pays it.
    lines.push(
      line({ orderId: orderIds[0] ?? '', utr: 'SECOND' }),
      line({ orderId: orderIds[0] ?? '', status: 'FAIL' }),
    )
    const checked: number[] = []
    const recorded: number[] = []
    const onChecked = (lines: number) => checked.push(lines)
    const onRecorded = (lines: number) => recorded.push(lines)
    expect(await load(lines, HEADER, { onChecked, onRecorded })).toEqual(
      result({ recorded: 4_500, 'double payment': 1, 'failure after success': 1 }),
    )
    expect([checked, recorded]).toEqual([[4_503], [2_001, 4_001, 4_503]])
    const { rows } = await service.db.query('select order_id, utr from payment_intents where order_id = any ($1)', [
      orderIds,
    ])
    expect(new Map(rows.map(({ order_id, utr }) => [order_id, utr]))).toEqual(
      new Map(orderIds.map((orderId, index) => [orderId, utrs[index]])),
    )
  })

  it('stores some hundred failed attempts of an order, and the payment after all of them', async () => {
    const orderId = await newOrder()
    const { attemptsOfOrder } = LIMITS.reports
    const failed = Array.from({ length: attemptsOfOrder + 2 }, () => line({ orderId, status: 'FAIL' }))
    expect(await load([...failed, line({ orderId })])).toEqual(result({ recorded: attemptsOfOrder + 1, unchanged: 2 }))
    const { intents, attempts } = await stored([orderId])
    expect(attempts).toHaveLength(attemptsOfOrder)
    expect(intents[0]).toContain('"status":"SUCCESS"')
  })

  it('of no lines changes nothing', async () => {
    expect(await load([])).toEqual(result({}))
  })
})

describe('a line with the reference of the acquirer', () => {
  const REFERENCE_HEADER = HEADER.replace('order_id', 'acquirer_reference')

  async function newReference(orderId: string, reference: string): Promise<void> {
    await service.db.query(
      `insert into acquirer_intents
         (mid, order_id, acquirer, acquirer_merchant_id, acquirer_id, reference, link, enquiries)
       values ($1, $2, 'setu', 'S1', 'A1', $3, 'upi://pay', 0)`,
      [mid, orderId, reference],
    )
  }

  it('is about the intent of that link', async () => {
    const orderId = await newOrder()
    await newReference(orderId, 'SETU1')
    const lines = [line({ orderId: 'SETU1', utr: 'REF1' })]
    expect(await load(lines, REFERENCE_HEADER)).toEqual(result({ recorded: 1 }))
    expect((await stored([orderId])).changes[0]).toContain('REF1')
    expect(await load(lines, REFERENCE_HEADER)).toEqual(result({ unchanged: 1 }))
  })

  it('that nobody knows is an unknown order, kept under the reference', async () => {
    expect(await load([line({ orderId: 'back\\slash "é' })].map(quoteFirst), REFERENCE_HEADER)).toEqual(
      result({ 'unknown order': 1 }),
    )
    expect((await stored(['back\\slash "é'])).exceptions).toHaveLength(1)
  })
  const quoteFirst = (text: string) => text.replace(/^([^,]*)/, (field) => `"${field.replaceAll('"', '""')}"`)

  it('that two intents have is an unknown order: it does not say which of them is paid', async () => {
    const [one = '', other = ''] = await newOrders(2)
    await newReference(one, 'TWICE1')
    await newReference(other, 'TWICE1')
    expect(await load([line({ orderId: 'TWICE1' })], REFERENCE_HEADER)).toEqual(result({ 'unknown order': 1 }))
    expect((await stored([one, other])).changes).toEqual([])
  })

  it('that is our own orderId, as in the links that we make, is about that order', async () => {
    expect(await load([line({ orderId: await newOrder() })], REFERENCE_HEADER)).toEqual(result({ recorded: 1 }))
  })

  it('and an order_id is about the order_id', async () => {
    const [named = '', referred = '', empty = ''] = await newOrders(3)
    await newReference(referred, 'BOTH1')
    await newReference(empty, 'BOTH2')
    const lines = [`BOTH1,${line({ orderId: named })}`, `BOTH2,${line({ orderId: '' })}`]
    expect(await load(lines, `acquirer_reference,${HEADER}`)).toEqual(result({ recorded: 2 }))
    expect((await stored([named, referred, empty])).changes.map((row) => JSON.parse(row).place)).toEqual([1, 3])
  })
})

describe('a bad file', () => {
  it('stores nothing, even if only its last line is wrong', async () => {
    const orderIds = await newOrders(2_500)
    const before = await stored(orderIds)
    const good = orderIds.map((orderId) => line({ orderId }))
    const { faults, count } = await faultsOf([...good, line({ orderId: 'x', amount: '-1' })])
    expect({ count, line: faults[0]?.line }).toEqual({ count: 1, line: 2_502 })
    expect(await stored(orderIds)).toEqual(before)
  })

  it('is told its first 20 bad lines by number and how many there are', async () => {
    const { faults, count } = await faultsOf(Array.from({ length: 30 }, () => line({ orderId: 'x', status: 'PAID' })))
    expect([count, faults.map(({ line }) => line)]).toEqual([30, Array.from({ length: 20 }, (_, index) => index + 2)])
  })

  it.each([
    ['no order', { orderId: '' }, 'order_id or acquirer_reference is required'],
    [
      'an order that is too long',
      { orderId: 'x'.repeat(65) },
      'order_id must be text of 1 to 64 characters, without control characters',
    ],
    ['another status', { status: 'PENDING' }, 'status must be SUCCESS, FAIL or REJECT'],
    ['no status', { status: '' }, 'status is required'],
    ['a wrong UTR', { utr: 'U 1' }, 'utr must be 1 to 35 letters and digits'],
    ['a success without UTR', { utr: '' }, 'utr is required with SUCCESS'],
    ['a success without time', { paidAt: '' }, 'paid_at is required with SUCCESS'],
    ['a day that does not exist', { paidAt: '2026-02-31 09:00:00' }, /^paid_at must be a time that exists/],
    ['a time without zone', { paidAt: '2026-02-21T09:00:00' }, /^paid_at must be a time that exists/],
    ...['', '1e3', '200.005', '-200', ' 200'].map((amount): [string, Partial<Fields>, string] => [
      `the amount "${amount}"`,
      { amount },
      amount === '' ? 'amount is required' : 'amount must be rupees with at most two decimals',
    ]),
    ['every fault at once', { utr: '-', amount: 'x', status: 'x' }, /^status must.*, utr must.*, amount must/],
  ])('with %s names the line and the fault', async (_, fields, text) => {
    const { faults } = await faultsOf([line({ orderId: 'x', ...fields })])
    expect(faults).toEqual([{ line: 2, text: typeof text === 'string' ? text : expect.stringMatching(text) }])
  })

  it.each([
    ['without a column for the order', 'status,utr,amount,paid_at', 'column order_id or acquirer_reference is missing'],
    [
      'with columns missing and unknown',
      'order_id,status,utr,fee',
      'column amount is missing, column paid_at is missing, column "fee" is unknown',
    ],
  ])('%s names its first line', async (_, header, text) => {
    const error = await faultsOf([], header)
    expect(error.faults).toEqual([{ line: 1, text }])
  })

  it('that breaks off while it is read stores nothing', async () => {
    const orderId = await newOrder()
    async function* breakingOff() {
      yield `${HEADER}\n${line({ orderId })}\n`
      throw new Error('the disk is gone')
    }
    const importing = importDayFile(service.db, Readable.from(breakingOff()), { now: service.clock.now })
    await expect(importing).rejects.toThrow('the disk is gone')
    expect((await stored([orderId])).changes).toEqual([])
  })
})

describe('beside live notifications and other imports', () => {
  it('one UTR is counted once, as a payment or as a second one to be refunded, within PostgreSQL’s usual number of locks', async () => {
    const COUNT = 2_500
    const utrs = Array.from({ length: COUNT }, newUtr)
    const [paid, others, notified] = await Promise.all([newOrders(COUNT), newOrders(COUNT), newOrders(COUNT)])
    await service.db.query(
      `update payment_intents set status = 'SUCCESS', utr = 'FIRST' || order_id where order_id = any ($1)`,
      [paid],
    )
    const fileOf = (orderIds: string[]) => orderIds.map((orderId, index) => line({ orderId, utr: utrs[index] ?? '' }))
    let importing = true
    let mostLocks = 0
    const watch = async () => {
      while (importing) {
        const { rows } = await service.db.query(
          `select count(*)::integer as locks from pg_locks where locktype = 'advisory'`,
        )
        mostLocks = Math.max(mostLocks, rows[0].locks)
      }
    }
    const live = async () => {
      for (let i = 0; importing; i = (i + 7) % COUNT) {
        const { status } = await notify(service, notification(notified[i] ?? '', { UTR: utrs[i] }))
        expect([200, 409]).toContain(status)
      }
    }
    const imports = Promise.all([load(fileOf(paid)), load(fileOf(others))]).finally(() => {
      importing = false
    })
    const [results] = await Promise.all([imports, watch(), live()])

    const { rows } = await service.db.query<{ counted: number }>(
      `select count(*)::integer as counted
         from (select utr from payment_intents where utr = any ($1)
               union all
               select utr from payment_exceptions where utr = any ($1) and kind = 'double payment') payments
        group by utr`,
      [utrs],
    )
    expect(rows).toEqual(utrs.map(() => ({ counted: 1 })))
    const lines = results.map(
      ({ recorded, exceptions }) => recorded + exceptions['double payment'] + exceptions['UTR of another order'],
    )
    expect(lines).toEqual([COUNT, COUNT])
    expect(mostLocks).toBeGreaterThan(0)
    // Two imports at once leave a third to the others.
    expect(mostLocks).toBeLessThan((DEFAULT_LOCKS * 2) / 3)
  })

  it('a batch that PostgreSQL ends as a deadlock is recorded all the same', async () => {
    const orderIds = (await newOrders(50)).sort()
    // Of one transaction: the second half of the lines has another one.
    const [first, later] = [orderIds[0], orderIds[20]]
    const holder = await service.db.connect()
    const lock = (orderId: string | undefined) =>
      holder.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
    try {
      await holder.query('begin')
      // The one that began to wait first looks for a deadlock first, and is ended: the import.
      await holder.query(`set local deadlock_timeout = '60s'`)
      await lock(later)
      const importing = load(orderIds.map((orderId) => line({ orderId })))
      await untilItWaits()
      await lock(first)
      await holder.query('commit')
      expect(await importing).toEqual(result({ recorded: 50 }))
    } finally {
      await holder.query('rollback')
      holder.release()
    }
  })

  it('a payment that was in time when a lock held it up, and is late when it is stored, is kept as late', async () => {
    const orderId = await newOrder()
    const holder = await service.db.connect()
    try {
      await holder.query('begin')
      await holder.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
      const importing = load([line({ orderId })])
      await untilItWaits()
      // To the end of the time to pay, and of the minutes after it.
      service.clock.advance(30 * 60)
      await holder.query('commit')
      expect(await importing).toEqual(result({ recorded: 1, 'late payment': 1 }))
    } finally {
      await holder.query('rollback')
      holder.release()
    }
  })

  async function untilItWaits() {
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%set status = ''SUCCESS''%'`
    while ((await service.db.query(waiting)).rowCount === 0) await sleep(10)
  }
})
