import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { addDays } from '../../src/books/ledger/bank-days.ts'
import { journalOf } from '../../src/books/reports/journal.ts'
import { statementOf } from '../../src/books/reports/statement.ts'
import { newId } from '../../src/gateway/payments/intent.ts'
import { saveRefundException } from '../../src/gateway/refunds/record-update.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { toIstDay } from '../../src/platform/time.ts'
import { createTestDatabase } from '../support/database.ts'
import { type Finding, findingsOf, readAll } from '../support/findings.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'

/** Bank days from Wednesday to Saturday, which is the third of its month. */
const [WEDNESDAY, THURSDAY, FRIDAY, SATURDAY] = ['2026-11-18', '2026-11-19', '2026-11-20', '2026-11-21'] as const
const at = (day: string, time = '12:00:00') => new Date(`${day}T${time}+05:30`)

let url: string
let db: Database
let mid: string
const { ops, json } = opsOn(() => url)

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
})
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
})

const pay = (utr: string, paidAt: Date) => storePaidOrder(db, { mid, utr, paidAt })

/** Stores a second payment of the order and returns the id of its exception. */
async function payTwice(utr: string, orderId: string, paidAt: Date): Promise<string> {
  await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     values ($1, $2, $3, 20000, $4, $4, 'second', 'direct', 'notification')`,
    [mid, utr, orderId, paidAt],
  )
  const { rows } = await db.query<{ id: string }>(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, paid_at, received_at)
     values ($1, $2, 'double payment', $3, 20000, 'SUCCESS', $4, $4)
     returning exception_id as id`,
    [mid, orderId, utr, paidAt],
  )
  return (rows[0] as { id: string }).id
}

/** Stores a refund that succeeded at `endedAt`, or is still open if absent. Returns its `refundId`. */
async function refund(
  { orderId, utr, rupees = 200, reference = '', acquirer = 'direct' }: Refunding,
  madeAt: Date,
  endedAt?: Date,
): Promise<string> {
  const id = newId(madeAt)
  await db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
       reference, ended_at)
     values ($1, $2, $2, $3, $4, $5, 'cold', $6, 'merchant', $7, case when $9::timestamptz is null then 'PENDING' else 'SUCCESS' end,
       $8, $9)`,
    [mid, id, orderId, utr, rupees * 100, acquirer, madeAt, reference, endedAt],
  )
  return id
}

const returnRefund = (refundId: string, returnedAt: Date) =>
  db.query(`insert into refund_returns values ($1, $2, 'RET1', 'the account is closed', 'asha', $3)`, [
    mid,
    refundId,
    returnedAt,
  ])

type Refunding = { orderId: string; utr: string; rupees?: number; reference?: string; acquirer?: string }

type Settling = { amount?: string; paymentUtr?: string; brn?: string }
const settle = (utr: string, initiatedAt: Date, { amount = '200', paymentUtr, brn = 'BRN' }: Settling = {}) =>
  db.query(
    `insert into settlements (mid, utr, amount_paise, payment_utr, bank_reference_number, status, initiated_at, created_at)
     values ($1, $2, $3::numeric * 100, $4, $5, 'SUCCESS', $6, $6)`,
    [mid, utr, amount, paymentUtr, brn, initiatedAt],
  )

async function report(from: string = WEDNESDAY, to: string = SATURDAY, now = '2026-12-15') {
  const findings = await findingsOf(db, { from, to, mid, now: at(now) })
  const end = findings.at(-1) as Extract<Finding, { type: 'end' }>
  const { paid, duplicates, gross, refunded, resolved, brought, carried } = end.sums
  expect(brought + paid + duplicates - gross - refunded + resolved).toBe(carried)
  const differences = findings.flatMap((finding) => (finding.type === 'difference' ? [finding] : []))
  const owed = differences.reduce((sum, { resolution, owed }) => sum + (resolution === null ? owed : 0), 0)
  return { ...end, differences, owed }
}

describe('refunds deducted by a line of their own', () => {
  it.each([
    ['that has the refund’s payment and reference', 'ARN1', { paymentUtr: 'P1' }, 'ARN1'],
    ['that has only the refund’s reference', 'arn1', {}, 'ARN1'],
    ['that has the refund’s reference as bank reference', 'E1', { brn: 'ARN1' }, 'ARN1'],
    ['that has the refund’s payment and amount', 'P1R1', { paymentUtr: 'P1' }, ''],
  ])(
    'reconcile reports no discrepancy for a refund that the bank deducts by a negative line %s',
    async (_what, utr, row, reference) => {
      const orderId = await pay('P1', at(WEDNESDAY))
      await settle('P1', at(THURSDAY))
      await refund({ orderId, utr: 'P1', rupees: 50, reference }, at(THURSDAY), at(THURSDAY))
      await settle(utr, at(FRIDAY), { amount: '-50', ...row })
      const { differences, balances, sums } = await report()
      expect(differences).toEqual([])
      expect([balances, sums.refunded, sums.gross, sums.carried]).toEqual([true, 50_00, 150_00, 0])
      // On the day of its success, the refund is not deducted yet.
      expect((await report(WEDNESDAY, THURSDAY, FRIDAY)).sums).toMatchObject({ refunded: 50_00, differences: 0 })
    },
  )

  it('reconcile accepts one deduction of a refund and reports a second deduction as a reversal', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    await refund({ orderId, utr: 'P1', rupees: 50, reference: 'ARN1' }, at(THURSDAY), at(THURSDAY))
    await settle('P1R1', at(FRIDAY), { amount: '-50', paymentUtr: 'P1' })
    await settle('ARN1', at(FRIDAY, '13:00:00'), { amount: '-50', paymentUtr: 'P1' })
    const { differences, sums } = await report()
    expect(differences).toMatchObject([{ kind: 'reversal', settlementUtr: 'P1R1', owed: 50_00, orderId }])
    expect(sums.carried).toBe(50_00)
  })

  it('reconcile reports the difference between a deduction and its refund', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50, reference: 'ARN1' }, at(THURSDAY), at(THURSDAY))
    await settle('ARN1', at(FRIDAY), { amount: '-55', paymentUtr: 'P1' })
    const { differences, sums } = await report()
    expect(differences).toMatchObject([
      { kind: 'reversal', owed: 5_00, cause: `the amount differs from that of refund ${id}` },
    ])
    expect(sums.carried).toBe(5_00)
  })

  it('reconcile matches two refunds of the same amount with two deductions, oldest first', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    for (const day of [THURSDAY, FRIDAY]) await refund({ orderId, utr: 'P1', rupees: 50 }, at(day), at(day))
    await settle('P1R1', at(FRIDAY), { amount: '-50', paymentUtr: 'P1' })
    expect((await report()).differences).toMatchObject([{ kind: 'refund not deducted', day: FRIDAY }])
    await settle('P1R2', at(SATURDAY), { amount: '-50', paymentUtr: 'P1' })
    expect((await report()).differences).toEqual([])
  })
})

describe('deductions without a payment', () => {
  /**
   * Stores payments of ₹200 on Wednesday, settled on Thursday, each refunded by this amount on this day. Returns the
   * `refundId`s.
   */
  const refundEach = async (...refunds: [rupees: number, day: string][]) => {
    const ids: string[] = []
    for (const [index, [rupees, day]] of refunds.entries()) {
      const orderId = await pay(`P${index}`, at(WEDNESDAY))
      await settle(`P${index}`, at(THURSDAY))
      ids.push(await refund({ orderId, utr: `P${index}`, rupees }, at(day), at(day)))
    }
    return ids
  }
  const kindsOf = async () => (await report()).differences.map(({ kind }) => kind)

  it('reconcile matches one line that deducts all refunds of a bank day', async () => {
    await refundEach([50, WEDNESDAY], [30, WEDNESDAY], [45, THURSDAY])
    await settle('D1', at(THURSDAY, '18:00:00'), { amount: '-80' })
    await settle('D2', at(FRIDAY), { amount: '-45' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { refunded: 125_00, carried: 0 } })
  })

  it('reconcile matches one line that deducts all remaining refunds', async () => {
    await refundEach([50, WEDNESDAY], [30, THURSDAY])
    await settle('D1', at(FRIDAY), { amount: '-80' })
    expect(await report()).toMatchObject({ balances: true, differences: [] })
  })

  it('reconcile matches a line that names a payment with all refunds of that payment', async () => {
    const orderId = await pay('P9', at(WEDNESDAY))
    await settle('P9', at(THURSDAY))
    for (const rupees of [20, 30]) await refund({ orderId, utr: 'P9', rupees }, at(THURSDAY), at(THURSDAY))
    await settle('P9R1', at(FRIDAY), { amount: '-50', paymentUtr: 'P9' })
    expect(await report()).toMatchObject({ balances: true, differences: [] })
  })

  it("reconcile does not match a line with either of two refunds of the line's amount", async () => {
    await refundEach([50, WEDNESDAY], [50, WEDNESDAY])
    await settle('D1', at(THURSDAY), { amount: '-50' })
    expect(await kindsOf()).toEqual(['refund not deducted', 'refund not deducted', 'reversal'])
  })
})

describe('several deductions without a payment', () => {
  const refunds = async (...amounts: number[]) => {
    for (const [index, rupees] of amounts.entries()) {
      const utr = `P${index}`
      const orderId = await pay(utr, at(WEDNESDAY))
      await settle(utr, at(THURSDAY))
      await refund({ orderId, utr, rupees }, at(THURSDAY), at(THURSDAY))
    }
  }

  it('reconcile matches one line for the refunds of a bank day and one line for another refund, in any order', async () => {
    await refunds(50, 60, 70)
    await settle('N1', at(FRIDAY, '10:00:00'), { amount: '-110' })
    await settle('N2', at(FRIDAY, '11:00:00'), { amount: '-70' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })

  it('reconcile excludes a refund of a payment that was never paid out from the deduction of a bank day', async () => {
    await refunds(50, 60)
    const orderId = await pay('P9', at(WEDNESDAY))
    await payTwice('PX', orderId, at(WEDNESDAY))
    await settle('P9', at(THURSDAY))
    await refund({ orderId, utr: 'PX' }, at(THURSDAY), at(THURSDAY))
    await settle('N1', at(FRIDAY), { amount: '-110' })
    expect(await report()).toMatchObject({ differences: [], sums: { carried: 0 } })
  })

  it("reconcile excludes a refund netted in a payment's own line from the deduction of a bank day", async () => {
    await refunds(50, 60)
    const orderId = await pay('P9', at(THURSDAY))
    await refund({ orderId, utr: 'P9', rupees: 70 }, at(THURSDAY), at(THURSDAY))
    await settle('P9', at(FRIDAY), { amount: '130' })
    await settle('N1', at(FRIDAY), { amount: '-110' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })
})

describe('refunds without a deduction', () => {
  it("reconcile reports a refund that no line deducts once the payout's due day has passed, and accepts an operator's resolution", async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(THURSDAY), at(THURSDAY))
    expect((await report(WEDNESDAY, THURSDAY, FRIDAY)).differences).toEqual([])
    const { differences, owed, sums } = await report()
    expect(differences).toMatchObject([{ kind: 'refund not deducted', day: THURSDAY, orderId, utr: 'P1' }])
    expect(differences[0]?.cause).toContain(`refund ${id}`)
    expect([owed, sums.carried]).toEqual([-50_00, -50_00])
    const difference = differences[0]?.id as string
    expect((await ops('reconcile', 'resolve', '--difference', difference, '--reason', 'from our account')).code).toBe(0)
    expect(await report(WEDNESDAY, SATURDAY, '2099-01-01')).toMatchObject({ balances: true, sums: { carried: 0 } })
  })

  it("reconcile reports no discrepancy for a refund that makes the payment's own line smaller", async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await refund({ orderId, utr: 'P1', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    await settle('P1', at(THURSDAY), { amount: '150' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })

  it("reconcile does not count a refund netted in a payment's own line as the deduction of a later refund", async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await refund({ orderId, utr: 'P1', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    await settle('P1', at(THURSDAY), { amount: '150' })
    await refund({ orderId, utr: 'P1', rupees: 30 }, at(THURSDAY), at(THURSDAY))
    expect((await report(WEDNESDAY, THURSDAY, THURSDAY)).differences).toEqual([])
    const { differences, owed, sums } = await report()
    expect(differences).toMatchObject([{ kind: 'refund not deducted', day: THURSDAY, owed: -30_00 }])
    expect([owed, sums.carried]).toEqual([-30_00, -30_00])
    await settle('P1R1', at(FRIDAY), { amount: '-30', paymentUtr: 'P1' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })

  it('reconcile reports nothing for an unsettled payment with a full refund, and reports the remaining amount of an unsettled payment with a partial refund', async () => {
    await settle('P0', at(THURSDAY), { paymentUtr: 'P0' })
    await pay('P0', at(WEDNESDAY))
    const [whole, part] = [await pay('P1', at(WEDNESDAY)), await pay('P2', at(WEDNESDAY))]
    await refund({ orderId: whole, utr: 'P1' }, at(WEDNESDAY), at(WEDNESDAY))
    await refund({ orderId: part, utr: 'P2', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    const { differences, owed, sums } = await report()
    expect(differences).toMatchObject([{ kind: 'missing settlement', utr: 'P2', paid: 150_00 }])
    expect(differences[0]?.cause).toContain('50.00 of it was refunded')
    // One of the three payments is settled, and the refunded amounts are not awaited.
    expect([sums.carried, sums.awaited]).toEqual([owed, 150_00])
  })

  it('reconcile ignores a refund until the refund succeeds', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    await refund({ orderId, utr: 'P1' }, at(THURSDAY), at('2026-12-01'))
    expect(await report(WEDNESDAY, SATURDAY, '2026-11-30')).toMatchObject({ differences: [], sums: { refunded: 0 } })
    expect((await report('2026-12-01', '2026-12-01')).sums).toMatchObject({ refunded: 200_00, carried: -200_00 })
  })
})

describe('payouts by totals', () => {
  it('reconcile accepts a total that is reduced by the refunds since the previous payout', async () => {
    for (const utr of ['P1', 'P2']) await pay(utr, at(WEDNESDAY))
    const orderId = await pay('P3', at(WEDNESDAY))
    await refund({ orderId, utr: 'P3', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY, '23:59:59'))
    await settle('N1', at(THURSDAY), { amount: '550' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })

  it("reconcile does not reduce a total by a refund that is netted in the payment's own line", async () => {
    for (const utr of ['P1', 'P2']) await pay(utr, at(WEDNESDAY))
    const orderId = await pay('P3', at(WEDNESDAY))
    await refund({ orderId, utr: 'P3', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    await settle('N1', at(THURSDAY), { amount: '400' })
    await settle('N3', at(THURSDAY), { amount: '150', paymentUtr: 'P3' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
  })

  it('reconcile reports a total that does not deduct a refund, and names the refund', async () => {
    for (const utr of ['P1', 'P2']) await pay(utr, at(WEDNESDAY))
    const orderId = await pay('P3', at(WEDNESDAY))
    const id = await refund({ orderId, utr: 'P3', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    await settle('N1', at(THURSDAY), { amount: '600' })
    const { differences, sums } = await report()
    expect(differences).toMatchObject([
      {
        ...{ kind: 'payout total', day: THURSDAY, paid: 550_00, settled: 600_00, owed: -50_00 },
        cause: `50.00 more than the payments of ${WEDNESDAY}, less refunds of 50.00; likely refund ${id} (of 50.00, not deducted)`,
      },
    ])
    expect(sums.carried).toBe(-50_00)
  })

  it('reconcile reports no discrepancy if the bank deducts a refund from the next total', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    for (const utr of ['P2', 'P3']) await pay(utr, at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY))
    await settle('N1', at(THURSDAY), { amount: '200' })
    expect((await report(WEDNESDAY, THURSDAY, FRIDAY)).differences).toMatchObject([
      { kind: 'payout total', day: THURSDAY, cause: expect.stringContaining(`likely refund ${id}`) },
    ])
    await settle('N2', at(FRIDAY), { amount: '350' })
    expect(await report()).toMatchObject({ balances: true, differences: [], sums: { carried: 0 } })
    expect((await report(WEDNESDAY, THURSDAY)).differences).toEqual([])
    expect((await report(FRIDAY, FRIDAY)).differences).toEqual([])
  })

  it('reconcile does not explain a total by an exception about a refund, because the exception reports no incoming money', async () => {
    await pay('P2', at(WEDNESDAY))
    const orderId = await pay('P1', at(WEDNESDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50, acquirer: 'setu' }, at(WEDNESDAY))
    await saveRefundException(
      db,
      'refund unsure',
      { mid, orderId, utr: 'P1', amount: 50_00, ourRefundId: id, acquirer: 'setu' },
      { source: 'enquiry', now: at(WEDNESDAY) },
    )
    await settle('N1', at(THURSDAY), { amount: '450' })
    expect((await report()).differences).toMatchObject([
      { kind: 'payout total', cause: `50.00 more than the payments of ${WEDNESDAY}` },
    ])
  })
})

describe('refunds that the bank returned', () => {
  const MONDAY = '2026-11-23'
  const TUESDAY = '2026-11-24'

  it('reconcile reports nothing for a returned refund that the bank never deducted, and the refund as known before', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(THURSDAY), at(THURSDAY))
    await returnRefund(id, at(TUESDAY))
    expect(await report(WEDNESDAY, TUESDAY)).toMatchObject({ differences: [], sums: { refunded: 0, carried: 0 } })
    const before = await report(WEDNESDAY, SATURDAY, MONDAY)
    expect(before.differences).toMatchObject([{ kind: 'refund not deducted', owed: -50_00 }])
    expect(before.sums).toMatchObject({ refunded: 50_00, carried: -50_00 })
  })

  it('reconcile reports a returned refund that the bank deducted until a line pays it out again', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50, reference: 'ARN1' }, at(THURSDAY), at(THURSDAY))
    await settle('ARN1', at(FRIDAY), { amount: '-50', paymentUtr: 'P1' })
    await returnRefund(id, at(SATURDAY))
    const cause = `refund ${id}: the bank returned it, and no settlement line pays it out again`
    const { differences, owed, sums } = await report(WEDNESDAY, TUESDAY)
    expect(differences).toMatchObject([
      { kind: 'return not paid out', day: SATURDAY, orderId, utr: 'P1', owed: 50_00, cause },
    ])
    expect(sums.carried).toBe(owed)
    await settle('RET1', at(MONDAY), { amount: '50', paymentUtr: 'P1' })
    expect(await report(WEDNESDAY, TUESDAY)).toMatchObject({ differences: [], balances: true, sums: { carried: 0 } })
    expect((await report(WEDNESDAY, FRIDAY, SATURDAY)).differences).toEqual([])
  })

  it('reconcile reports nothing for a refund and its return that the payment’s lines include', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(WEDNESDAY), at(WEDNESDAY, '13:00:00'))
    await settle('P1', at(THURSDAY), { amount: '150' })
    await returnRefund(id, at(FRIDAY))
    await settle('RET1', at(SATURDAY), { amount: '50', paymentUtr: 'P1' })
    expect(await report()).toMatchObject({ differences: [], balances: true, sums: { carried: 0 } })
  })

  it('reconcile subtracts a refund from the total of its day, and adds its return to the total of the return', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('T1', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(THURSDAY), at(THURSDAY))
    await pay('P2', at(THURSDAY))
    await settle('T2', at(FRIDAY), { amount: '150' })
    await returnRefund(id, at(FRIDAY))
    await pay('P3', at(FRIDAY))
    await settle('T3', at(SATURDAY), { amount: '250' })
    expect(await report()).toMatchObject({ differences: [], balances: true, sums: { refunded: 0, carried: 0 } })
    await db.query(`update settlements set amount_paise = 20000 where mid = $1 and utr = 'T3'`, [mid])
    expect((await report()).differences).toMatchObject([
      {
        ...{ kind: 'payout total', day: SATURDAY, owed: 50_00 },
        cause: `50.00 less than the payments of ${FRIDAY}, plus returned refunds of 50.00; likely refund ${id} (of 50.00, returned, not paid out again)`,
      },
    ])
  })

  it('the ledger ends at 0.00 after a refund is returned, refunded again and returned again', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(WEDNESDAY, '18:00:00'))
    for (const [number, day] of [THURSDAY, FRIDAY].entries()) {
      const id = await refund({ orderId, utr: 'P1', rupees: 50 }, at(day), at(day))
      await settle(`D${number}`, at(day), { amount: '-50', paymentUtr: 'P1' })
      await returnRefund(id, at(day, '14:00:00'))
      await settle(`B${number}`, at(day, '15:00:00'), { amount: '50', paymentUtr: 'P1' })
    }
    expect(await report()).toMatchObject({ differences: [], balances: true, sums: { refunded: 0, carried: 0 } })
    const period = { from: WEDNESDAY, to: SATURDAY, mid, now: at('2026-12-15') }
    const { lines } = await statementOf(db, period)
    const ofRefunds = lines.filter(({ kind }) => kind.startsWith('refund'))
    expect(ofRefunds.map(({ kind, amount }) => [kind, amount])).toEqual([
      ['refund', -50_00],
      ['refund returned', 50_00],
      ['refund', -50_00],
      ['refund returned', 50_00],
    ])
    expect(lines.at(-1)).toMatchObject({ kind: 'closing', balance: 0 })
  })

  it('the journal posts the return of a duplicate payment’s refund to suspense', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await payTwice('P9', orderId, at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    await settle('P9', at(THURSDAY))
    const id = await refund({ orderId, utr: 'P9' }, at(THURSDAY), at(THURSDAY))
    await returnRefund(id, at(FRIDAY))
    const days = { from: FRIDAY, to: FRIDAY, mid, now: at('2026-12-15'), charges: 'supplier' as const }
    const postings = await readAll(journalOf(db, days))
    expect(postings).toMatchObject([
      { reference: `duplicates ${FRIDAY}`, ledger: 'UPI clearing direct', debit: 200_00 },
      { reference: `duplicates ${FRIDAY}`, ledger: 'Suspense', credit: 200_00 },
    ])
  })
})

describe('duplicate payments', () => {
  it('reconcile reports a duplicate payment as owed to the merchant until the duplicate payment is refunded', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    await payTwice('P9', orderId, at(WEDNESDAY))
    const cause = expect.stringMatching(/^exception [0-9a-f]{12}: double payment$/)
    expect((await report()).differences).toMatchObject([{ kind: 'missing settlement', utr: 'P9', owed: 200_00, cause }])
    await refund({ orderId, utr: 'P9' }, at(THURSDAY), at(THURSDAY))
    const sums = { paid: 200_00, duplicates: 200_00, refunded: 200_00, carried: 0 }
    expect(await report()).toMatchObject({ differences: [], sums })
  })

  it('reconcile balances once the bank deducts the refund for a settled duplicate payment', async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    const exception = await payTwice('P9', orderId, at(WEDNESDAY))
    await settle('P1', at(THURSDAY))
    await settle('P9', at(THURSDAY))
    const created = await json('refunds', 'create', '--exception', exception)
    expect(created).toMatchObject({ orderId, amount: 200, txnStatus: 'PENDING', reference: '' })
    expect((await report()).balances).toBe(false)
    await json('refunds', 'done', '--refund', created.refundId, '--reference', 'ARN9')
    const [found] = await json('payments', 'exceptions', '--mid', mid)
    expect(found.resolution).toContain('ARN9')
    const today = toIstDay(new Date())
    const before = await report(WEDNESDAY, today, '2099-01-01')
    expect(before.differences).toMatchObject([{ kind: 'refund not deducted', utr: 'P9', owed: -200_00 }])
    // The bank deducts the refund, so the line is no discrepancy.
    await settle('ARN9', at(FRIDAY), { amount: '-200' })
    const sums = { duplicates: 200_00, gross: 200_00, carried: 0 }
    expect(await report(WEDNESDAY, today, '2099-01-01')).toMatchObject({ balances: true, differences: [], sums })
    // The balance carried forward equals the next day's balance brought forward.
    const next = addDays(today, 1)
    expect((await report(next, next, '2099-01-01')).sums).toMatchObject({ brought: 0, carried: 0 })
  })

  it("refunds create refunds a duplicate payment at most once, and not after the payment's exception was resolved", async () => {
    const orderId = await pay('P1', at(WEDNESDAY))
    const exception = await payTwice('P9', orderId, at(WEDNESDAY))
    await json('refunds', 'create', '--exception', exception)
    expect((await ops('refunds', 'create', '--exception', exception)).stderr).toContain('exceeds the unrefunded rest')
    await json('refunds', 'create', '--order-id', orderId, '--note', 'both')
    expect((await ops('refunds', 'create', '--order-id', orderId, '--note', 'both')).stderr).toContain('exceeds')
    await json('payments', 'resolve', '--exception', exception, '--reason', 'by hand')
    expect((await ops('refunds', 'create', '--exception', exception)).stderr).toContain('was already resolved by')
  })
})
