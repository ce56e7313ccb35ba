import { describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { opsAtNoon, opsOn } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService } from '../support/service.ts'

const service = await startService()

const { ops, json: find } = opsOn(() => service.databaseUrl, ['payments', 'find'])
const { jsonOn: findOn } = opsAtNoon(() => service.databaseUrl, ['payments', 'find'])

async function newOrder(fields: Record<string, string> = {}) {
  const { mid, key } = await newMerchant(service.db)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid, fields), key)).body.data
  return { mid, key, orderId }
}

const idsOf = ({ payments }: { payments: { orderId: string }[] }) => payments.map(({ orderId }) => orderId)

describe('payments find', () => {
  it('payments find --utr, in upper or lower case, prints the order’s history without customer data', async () => {
    const { mid, orderId } = await newOrder({ order_id: 'A-17' })
    const [failed, utr, again] = [newUtr(), `AXIS${newUtr()}`, newUtr()]
    await notify(service, notification(orderId, { status: 'FAIL', UTR: failed }))
    for (const UTR of [utr, again]) {
      service.clock.advance(1)
      await notify(service, notification(orderId, { UTR }))
    }
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at, payment_utr, fee_paise)
       values ($1, 'PAYOUT1', 19800, 'BRN', 'SUCCESS', '2026-04-01T04:00:00Z', now(), $2, 200)`,
      [mid, utr],
    )
    const { payments } = await find('--utr', utr.toLowerCase())
    expect(payments).toEqual([
      expect.objectContaining({ mid, orderId, merchantOrderId: 'A-17', amount: 200, status: 'SUCCESS', utr }),
    ])
    expect(payments[0].steps.map(({ what, by }: { what: string; by: string }) => [what, by])).toEqual([
      ['order of ₹200.00 created', 'merchant'],
      [`attempt failed: FAIL, UTR ${failed}, at the bank 2026-03-31 23:59:59 IST`, 'notification'],
      [`paid, UTR ${utr}, at the bank 2026-03-31 23:59:59 IST`, 'notification'],
      [
        expect.stringMatching(`^exception [0-9a-f]{12}: double payment, SUCCESS, UTR ${again}, ₹200.00; still open$`),
        null,
      ],
      ['settled: SUCCESS, UTR PAYOUT1, ₹198.00, fee ₹2.00', 'bank'],
    ])
    const results = payments[0].steps.map(({ result }: { result?: string }) => result)
    expect(results).toEqual([undefined, 'failure', 'success', 'failure', 'success'])
    const { stdout } = await ops('--utr', utr)
    expect(stdout + JSON.stringify(payments)).not.toMatch(/Asha|asha@|0123456789/)
    expect(stdout).toMatch(/merchantOrderId +A-17\n/)
    expect(stdout).toMatch(new RegExp(`^2026-04-01 00:00:00 IST +notification +paid, UTR ${utr}`, 'm'))
    // Customer and bank may also give the UTR of the failed or of the second payment, or the orderId.
    for (const one of [failed, again]) expect(idsOf(await find('--utr', one))).toEqual([orderId])
    expect(idsOf(await find('--order-id', orderId))).toEqual([orderId])
  })

  it('payments find --utr accepts spaces and hyphens copied from a bank’s page', async () => {
    const { orderId } = await newOrder()
    await notify(service, notification(orderId, { UTR: 'HDFCR52026040100001' }))
    for (const copied of [
      ' hdfc r520 2604 0100 001\n',
      'HDFC\u00a0R520\u202f2604\u20090100\u200b001',
      'HDFC-R520\u20112604\u20130100\u2014001',
      'UTR: HDFCR5 2026040100001',
    ]) {
      expect(idsOf(await find('--utr', copied))).toEqual([orderId])
    }
    for (const wrong of [' - ', 'HDFC/R52026040100001']) {
      const stderr = expect.stringMatching(/^ops: --utr must be 1 to 35 letters and digits\n/)
      expect(await ops('--utr', wrong)).toEqual({ code: 2, stdout: '', stderr })
    }
  })

  it('payments find --utr extracts the reference from pasted text, and rejects text with several references', async () => {
    const { orderId } = await newOrder()
    const rrn = newUtr()
    await notify(service, notification(orderId, { UTR: rrn }))
    const groups = rrn.replace(/(?=(?:.{4})+$)/g, ' ').trim()
    const [wide, hindi] = [0xff10, 0x966].map((zero) =>
      rrn.replace(/./g, (d) => String.fromCodePoint(zero + Number(d))),
    )
    for (const pasted of [
      `UPI Ref No. ${rrn}.`,
      `'${rrn}`,
      `\u00a0${rrn}\u00a0`,
      `UPI Ref No: ${groups}`,
      `UPI transaction ID\u00a0${groups.replaceAll(' ', '\u00a0')}\n`,
      `UPI/CR/0000${rrn}/ASHA/asha919876543210@okaxis`,
      `${rrn} from 919876543210.wa@okaxis, 919876543210-2@axl`,
      `₹200.00 paid on 01/04/2026, 10:15:22 UTR ${rrn} RRN 0000${rrn}`,
      `${rrn}.0`,
      ...[wide, hindi].map((digits) => `${digits}`),
    ]) {
      expect(idsOf(await find('--utr', pasted)), pasted).toEqual([orderId])
    }
    for (const [pasted, references] of [
      [`T2604011015220123456789 ${rrn}`, `T2604011015220123456789, ${rrn}`],
      // PAID may be a bank’s code or a word before the RRN.
      [`Paid ${groups}`, `${rrn}, PAID${rrn}`],
    ] as const) {
      const stderr = expect.stringMatching(`^ops: --utr has several references: enter one of ${references}\n`)
      expect(await ops('--utr', pasted)).toEqual({ code: 2, stdout: '', stderr })
    }
    for (const unreadable of ['6.32E+11', `sent by Asha ${groups}`, 'Ref. No.: /']) {
      expect((await ops('--utr', unreadable)).stderr).toMatch(/^ops: --utr must be 1 to 35 letters and digits\n/)
    }
  })

  it('payments find --merchant-order-id lists orders of all merchants, and with --mid only orders of the given merchant', async () => {
    const [one, other] = [await newOrder({ order_id: 'SAME-1' }), await newOrder({ order_id: 'SAME-1' })]
    expect(idsOf(await find('--merchant-order-id', 'SAME-1')).sort()).toEqual([one.orderId, other.orderId].sort())
    expect(idsOf(await find('--merchant-order-id', 'SAME-1', '--mid', one.mid))).toEqual([one.orderId])
    expect(idsOf(await find('--order-id', one.orderId, '--mid', one.mid))).toEqual([one.orderId])
    expect(idsOf(await find('--order-id', one.orderId, '--mid', other.mid))).toEqual([])
    const { stdout } = await ops('--merchant-order-id', 'SAME-1')
    expect(stdout.split('\n')[0]).toMatch(
      /^paidAt +amount +status +mid +merchantOrderId +utr +foundBy +orderId +createdAt +acquirer$/,
    )
  })

  it('payments find prints the acquirer account that created each order’s link', async () => {
    const [one, other] = [await newOrder({ order_id: 'TWO-1' }), await newOrder({ order_id: 'TWO-1' })]
    await service.db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks, by_fallback)
       values ($1, $2, 'cashfree:acme', '', $2, $2, 'upi://pay?pa=x@y', 0, true)`,
      [one.mid, one.orderId],
    )
    const { payments } = await find('--merchant-order-id', 'TWO-1')
    const accounts = payments.map(({ orderId, acquirer }: { orderId: string; acquirer: string }) => [orderId, acquirer])
    expect(Object.fromEntries(accounts)).toEqual({ [one.orderId]: 'cashfree:acme', [other.orderId]: 'direct' })
    expect((await ops('--merchant-order-id', 'TWO-1')).stdout).toMatch(
      new RegExp(` FAIL .* ${one.orderId} .* cashfree:acme *$`, 'm'),
    )
    expect((await ops('--order-id', one.orderId)).stdout).toMatch(/^acquirer +cashfree:acme$/m)
  })

  it('payments find --amount --on lists only orders of the given amount on the given IST day', async () => {
    service.clock.set('2026-05-01T18:29:59.999Z')
    const before = await newOrder({ amount: '777' })
    service.clock.set('2026-05-01T18:30:00.000Z')
    const first = await newOrder({ amount: '777' })
    await newOrder({ amount: '778' })
    service.clock.set('2026-05-02T18:29:59.999Z')
    const last = await newOrder({ amount: '777' })
    service.clock.set('2026-05-02T18:30:00.000Z')
    await newOrder({ amount: '777' })
    expect(idsOf(await find('--amount', '777', '--on', '2026-05-02'))).toEqual([last.orderId, first.orderId])
    expect(idsOf(await find('--amount', '777.00', '--on', '2026-05-01'))).toEqual([before.orderId])
  })

  it('payments find --amount --on lists payments made or reported on the given day, whenever the order was created', async () => {
    const stored = async (sql: string, ...values: unknown[]) => void (await service.db.query(sql, values))
    const payment = (mid: string, orderId: string, paidAt: string | null, heardAt: string) =>
      stored(
        `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
         values ($1, $2, $3, 61150, $4, $5, 'first', 'direct', 'notification')`,
        ...[mid, newUtr(), orderId, paidAt, heardAt],
      )
    const exception = (mid: string, orderId: string, paidAt: string | null, receivedAt: string) =>
      stored(
        `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, paid_at, received_at)
         values ($1, $2, $3, $4, 61150, 'SUCCESS', $5, $6)`,
        ...[mid, orderId, mid ? 'amount differs' : 'unknown order', newUtr(), paidAt, receivedAt],
      )
    const of = {
      paid: await newOrder(),
      received: await newOrder(),
      reported: await newOrder(),
      other: await newOrder(),
    }
    await payment(of.paid.mid, of.paid.orderId, '2026-07-01T18:30:00Z', '2026-07-05T06:00:00Z')
    await payment(of.received.mid, of.received.orderId, null, '2026-07-02T18:29:59.999Z')
    await payment(of.other.mid, of.other.orderId, '2026-07-02T18:30:00Z', '2026-07-02T06:00:00Z')
    await exception(of.reported.mid, of.reported.orderId, null, '2026-07-02T06:00:00Z')
    await exception(of.other.mid, of.other.orderId, '2026-07-01T18:29:59Z', '2026-07-02T06:00:00Z')
    await exception('', '0'.repeat(32), null, '2026-07-02T06:00:00Z')
    const found = await find('--amount', '611.50', '--on', '2026-07-02')
    expect(idsOf(found).sort()).toEqual([of.paid.orderId, of.received.orderId, of.reported.orderId].sort())
    expect(found.exceptions).toEqual([expect.objectContaining({ kind: 'unknown order', amount: '611.50' })])
    const ofOne = await find('--amount', '611.50', '--on', '2026-07-02', '--mid', of.received.mid)
    expect(idsOf(ofOne)).toEqual([of.received.orderId])
  })

  it('payments find without options lists the payments of today, and --on those of another day', async () => {
    service.clock.set('2026-08-11T18:29:59.999Z')
    const before = await newOrder({ amount: '12' })
    service.clock.set('2026-08-11T18:30:00.000Z')
    const unpaid = await newOrder({ amount: '13' })
    const paid = await newOrder({ amount: '14' })
    service.clock.set('2026-08-11T18:31:00.000Z')
    await notify(service, notification(paid.orderId, { amount: 14, paidAt: '2026-08-11T18:31:00.000Z' }))
    expect(idsOf(await findOn('2026-08-12'))).toEqual([paid.orderId, unpaid.orderId])
    expect(idsOf(await findOn('2026-08-12', '--amount', '13'))).toEqual([unpaid.orderId])
    expect(idsOf(await find('--on', '2026-08-11'))).toEqual([before.orderId])
  })

  it('payments find --amount --on lists the newest payment first, with its time, and orders without a payment last', async () => {
    service.clock.set('2026-08-01T05:00:00Z')
    const [first, second, unpaid] = [
      await newOrder({ amount: '345' }),
      await newOrder({ amount: '345' }),
      await newOrder({ amount: '345' }),
    ]
    for (const [{ orderId }, paidAt] of [
      [second, '2026-08-01T05:01:00.000Z'],
      [first, '2026-08-01T05:02:00.000Z'],
    ] as const) {
      service.clock.set(paidAt)
      await notify(service, notification(orderId, { amount: 345, paidAt }))
    }
    const found = await find('--amount', '345', '--on', '2026-08-01')
    expect(found.payments.map(({ orderId, paidAt }: Record<string, string>) => [orderId, paidAt])).toEqual([
      [first.orderId, '2026-08-01T05:02:00.000Z'],
      [second.orderId, '2026-08-01T05:01:00.000Z'],
      [unpaid.orderId, null],
    ])
  })

  it('payments find --payment-id finds a payment by the acquirer’s id, although its UTR is the bank’s reference', async () => {
    const { mid, orderId } = await newOrder()
    const utr = newUtr()
    await notify(service, notification(orderId, { UTR: utr }))
    await service.db.query('update payments set acquirer_payment_id = $2 where mid = $1', [mid, `pay_${utr}-x`])
    expect(idsOf(await find('--payment-id', `pay_${utr}-x`))).toEqual([orderId])
    expect(idsOf(await find('--payment-id', `pay_${utr}-x`, '--mid', 'another'))).toEqual([])
  })

  it('payments find --utr says which orders have the UTR only in an exception or a failed attempt', async () => {
    const [paid, reported, failed] = [await newOrder(), await newOrder(), await newOrder()]
    const utr = newUtr()
    await notify(service, notification(paid.orderId, { UTR: utr }))
    await notify(service, notification(reported.orderId, { UTR: utr, amount: 1 }))
    await notify(service, notification(failed.orderId, { UTR: utr, status: 'FAIL' }))
    const { payments } = await find('--utr', utr)
    const foundBy = payments.map((one: Record<string, string>) => [one.orderId, one.foundBy])
    expect(Object.fromEntries(foundBy)).toEqual({
      [paid.orderId]: null,
      [reported.orderId]: 'its exception: amount differs',
      [failed.orderId]: 'its failed attempt',
    })
    expect((await ops('--utr', utr)).stdout).toMatch(
      new RegExp(`${reported.orderId} [^\\n]* its exception: amount differs `, 'm'),
    )
  })

  it('payments find --utr lists settlements with the UTR, including settlements to other merchants', async () => {
    const [paid, wrong] = [await newOrder(), await newMerchant(service.db)]
    const utr = `HDFC${newUtr()}`
    await notify(service, notification(paid.orderId, { UTR: utr }))
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at, payment_utr)
       values ($1, $3, 20000, 'BRN', 'SUCCESS', '2026-04-01T04:00:00Z', now(), null),
              ($2, 'ROW1', 200, 'BRN', 'SUCCESS', '2026-04-01T05:00:00Z', now(), $3)`,
      [paid.mid, wrong.mid, utr.toLowerCase()],
    )
    const { payments, settlements } = await find('--utr', utr, '--mid', paid.mid)
    const of = ({ mid }: { mid: string }) => mid
    expect([payments[0].settlements.map(of), settlements.map(of)]).toEqual([[paid.mid], [paid.mid, wrong.mid]])
    const { stdout } = await ops('--utr', utr)
    expect(stdout).toMatch(new RegExp(`bank +settled: SUCCESS, UTR ${utr.toLowerCase()}, ₹200.00`))
    const [, others = ''] = stdout.split('\n\nSettlements to other merchants:\n')
    expect(others.split('\n').slice(1, -1)).toEqual([
      expect.stringMatching(new RegExp(`^2026-04-01 10:30:00 IST +${wrong.mid} +ROW1 +${utr.toLowerCase()} `)),
    ])
    // One UTR pays orders of two merchants, and each order has a settlement.
    const second = (await post(service.app, CREATE, intentFields(wrong.mid), wrong.key)).body.data.orderId
    await notify(service, notification(second, { UTR: utr }))
    expect(idsOf(await find('--utr', utr)).sort()).toEqual([paid.orderId, second].sort())
    const [, both = ''] = (await ops('--utr', utr)).stdout.split('\n\nSettlements:\n')
    expect(both.trimEnd().split('\n')).toHaveLength(3)
  })

  it('payments find prints the expiry of an unpaid order, the time of the merchant’s notification, and the late payment', async () => {
    service.clock.set('2026-03-01T06:00:00Z')
    const { orderId } = await newOrder()
    const steps = async () =>
      (await find('--order-id', orderId)).payments[0].steps.map(({ at, what }: Record<string, string>) => [at, what])
    const ended = [
      ['2026-03-01T06:00:00.000Z', 'order of ₹200.00 created'],
      ['2026-03-01T06:15:00.000Z', 'time to pay expired'],
      ['2026-03-01T06:25:00.000Z', 'final status: checkPaymentStatus returns a failure from here on'],
    ]
    expect(await steps()).toEqual(ended)
    service.clock.set('2026-03-01T07:00:00Z')
    await notify(service, notification(orderId, { UTR: newUtr() }))
    const [paid, late] = [/^paid, /, /^exception [0-9a-f]{12}: late payment/].map((what) => expect.stringMatching(what))
    expect(await steps()).toEqual([...ended, ['2026-03-01T07:00:00.000Z', paid], ['2026-03-01T07:00:00.000Z', late]])
  })

  it('payments find --utr lists exceptions and settlements with a UTR that belongs to no order', async () => {
    const { mid } = await newOrder()
    const utr = newUtr()
    expect((await notify(service, notification('0'.repeat(32), { UTR: utr }))).status).toBe(404)
    await service.db.query(
      `insert into settlements (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at)
       values ($1, $2, 20000, 'BRN', 'SUCCESS', '2026-04-01T04:00:00Z', now())`,
      [mid, utr],
    )
    const found = await find('--utr', utr)
    expect(found).toEqual({
      payments: [],
      more: false,
      exceptions: [expect.objectContaining({ kind: 'unknown order', utr })],
      settlements: [expect.objectContaining({ mid, utr, amount: '200.00' })],
    })
    expect((await ops('--utr', utr)).stdout).toMatch(
      /^No payments found\.\n\nExceptions without a known order:\n.*unknown order/s,
    )
    expect(await ops('--utr', newUtr())).toEqual({ code: 0, stdout: 'No payments found.\n', stderr: '' })
  })

  const ONE_OF =
    'give one of --utr, --order-id, --merchant-order-id, --payment-id, --refund, --exception, or --amount and --on'
  it.each([
    [['--utr', 'A', '--amount', '200'], '--amount cannot be combined with --utr'],
    [['--order-id', '0'.repeat(32), '--on', '2026-02-01'], '--on cannot be combined with --order-id'],
    [['--utr', 'A', '--order-id', '0'.repeat(32)], ONE_OF],
    [
      ['--amount', '200', '--on', '2026-02-30'],
      '--on must be an existing day from 2000 to 2099: YYYY-MM-DD or dd-mm-yyyy',
    ],
  ])('payments find rejects the arguments %j with usage and exit code 2', async (args, message) => {
    const { code, stderr } = await ops(...args)
    expect([code, stderr.split('\n')[0]]).toEqual([2, `ops: ${message}`])
  })
})
