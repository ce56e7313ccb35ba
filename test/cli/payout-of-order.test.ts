import { describe, expect, it, vi } from 'vitest'
import { newReference } from '../support/bank-statements.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, startService, unique } from '../support/service.ts'

const service = await startService()

/** Runs a command at noon IST of a day and returns its document. */
async function onDay(day: string, args: string[], input = '') {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(`${day}T12:00:00+05:30`) })
  const outcome = await runOps(service.databaseUrl, [...args, '--json'], input).finally(() => vi.useRealTimers())
  expect({ code: outcome.code, stderr: outcome.stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(outcome.stdout)
}

let lastUtr = 523_604_870_000
/** Stores an order of ₹200 that a customer paid on Monday, 3 August 2026, and that is due on Tuesday. */
async function paidOrder() {
  const { mid } = await newMerchant(service.db)
  const utr = String(++lastUtr)
  const orderId = await storePaidOrder(service.db, { mid, utr, paidAt: new Date('2026-08-03T06:30:00Z') })
  const show = async (day: string) => (await onDay(day, ['payments', 'show', '--order-id', orderId])).payout
  return { mid, utr, orderId, show }
}

const COLUMNS = 'mid,amount,utr,bank_reference_number,status,initiation_date,payment_utr,fee'
const settle = (day: string, row: string) => onDay(day, ['settlements', 'import', '-'], `${COLUMNS}\n${row}\n`)

describe('the payout of an order', () => {
  it('is the payout of the line that names its payment, with its receipt by the bank account', async () => {
    const { mid, utr, show } = await paidOrder()
    const reference = newReference()
    expect(await show('2026-08-03')).toMatchObject({
      bankReference: null,
      day: null,
      overdueSince: null,
      discrepancy: null,
    })
    await settle(
      '2026-08-04',
      `${mid},198,${unique('L').replace(/\W/g, '')},${reference},SUCCESS,2026-08-04 09:00:00,${utr},2`,
    )
    expect(await show('2026-08-05')).toEqual({
      bankReference: reference,
      day: '2026-08-04',
      arrival: 'not known',
      overdueSince: null,
      discrepancy: null,
    })
    await onDay('2026-08-11', [
      ...['statements', 'layout', 'add', '--name', unique('bank'), '--date', 'dd/mm/yyyy'],
      ...['day=Date', 'reference=Narration', 'credit=Credit', 'debit=Debit'].flatMap((column) => ['--column', column]),
    ]).then(async ({ name }) => {
      const args = [
        'statements',
        'import',
        '-',
        '--layout',
        name,
        '--mid',
        mid,
        '--from',
        '2026-08-01',
        '--to',
        '2026-08-10',
      ]
      await onDay(
        '2026-08-11',
        args,
        `Date,Narration,Debit,Credit\n05/08/2026,NEFT CR-UTIB0000100-ACQUIRER-${reference},,198.00\n`,
      )
    })
    expect(await show('2026-08-12')).toMatchObject({ bankReference: reference, arrival: 'arrived' })
  })

  it('is overdue since its due day, with the open discrepancy, if no line has come', async () => {
    const { mid, show } = await paidOrder()
    const other = await storePaidOrder(service.db, {
      mid,
      utr: String(++lastUtr),
      paidAt: new Date('2026-08-03T07:00:00Z'),
    })
    await settle(
      '2026-08-04',
      `${mid},200,${unique('L').replace(/\W/g, '')},BRN1,SUCCESS,2026-08-04 09:00:00,${lastUtr},0`,
    )
    const payout = await show('2026-08-06')
    expect(payout).toMatchObject({ bankReference: null, day: null, overdueSince: '2026-08-04' })
    expect(payout.discrepancy).toMatchObject({ kind: 'missing settlement', day: '2026-08-03' })
    const { payout: settled } = await onDay('2026-08-06', ['payments', 'show', '--order-id', other])
    expect(settled).toMatchObject({ bankReference: 'BRN1', overdueSince: null, discrepancy: null })
  })

  it('is the sole payout of the due day if that payout is a total, with its discrepancy', async () => {
    const { mid, show } = await paidOrder()
    await settle('2026-08-04', `${mid},150,${unique('T').replace(/\W/g, '')},BRN2,SUCCESS,2026-08-04 09:00:00,,`)
    const payout = await show('2026-08-06')
    expect(payout).toMatchObject({ bankReference: 'BRN2', day: '2026-08-04', overdueSince: null })
    expect(payout.discrepancy).toMatchObject({ kind: 'payout total' })
  })
})
