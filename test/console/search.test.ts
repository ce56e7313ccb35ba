import { beforeAll, describe, expect, it } from 'vitest'
import { toIstDay } from '../../src/platform/time.ts'
import { newUtr } from '../support/acquirer.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import { createTestConsole, newOperatorKey, type TestConsole } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { type Key, newMerchant } from '../support/service.ts'

const { url, db } = await createTestDatabase()
const { json } = opsOn(() => url)
const bank = bankOn(() => url)
const NOON = new Date('2026-08-04T12:00:00+05:30')
/** The day on which the operator searches, after everything that the setup stores. */
const TODAY = toIstDay(new Date(Date.now() + 24 * 60 * 60_000))
const NOW = new Date(`${TODAY}T18:00:00+05:30`)
const minutesBefore = (minutes: number) => new Date(NOW.getTime() - minutes * 60_000)

let site: TestConsole
let key: Key
let mid: string
let orderId: string
const [settled, unsettled] = [newUtr(), newUtr()]
const [received, missing] = [newReference(), newReference()]

/** Stores a merchant with a settled payment and one that is not settled, and a payout that the bank did not receive. */
beforeAll(async () => {
  site = await createTestConsole({ databaseUrl: url }, () => NOW)
  key = await newOperatorKey(db, ['read'])
  ;({ mid } = await newMerchant(db, { name: 'Chai Point Indiranagar' }))
  orderId = await storePaidOrder(db, { mid, utr: settled, paidAt: NOON })
  await storePaidOrder(db, { mid, utr: unsettled, paidAt: NOON })
  await bank.must(
    ['settlements', 'import', '-'],
    `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},200,${settled},${received},SUCCESS,2026-08-05 09:00:00\n`,
  )
  await bank.addPayout(mid, { day: '2026-08-05', reference: missing, rupees: 1005 })
  await bank.layout('bank', 'day=Date', 'reference=Text', 'debit=Debit', 'credit=Credit', 'balance=Balance')
  const lines = ['03/08/2026,TEA,1,,0', `05/08/2026,NEFT ${received},,200,200`, '30/08/2026,TEA,1,,199']
  await bank.must(importArgs(mid, 'bank'), ['Date,Text,Debit,Credit,Balance', ...lines, ''].join('\n'))
})

const search = (text: string) => site.get(`/search?${new URLSearchParams({ q: text })}`, key)

/** Returns the address to which the console redirects the search. */
async function pageOf(text: string) {
  const { status, headers } = await search(text)
  expect([text, status]).toEqual([text, 303])
  return headers.location
}

/** The text of a page without its header, without markup. */
const textOf = (body: string) =>
  (body.split('<main')[1] ?? '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')

/** The orderIds in the links of a page, in their order. */
const ordersIn = (body: string) => [
  ...new Set([...body.matchAll(/payments-show\?order-id=([0-9a-f]{32})/g)].map(([, id]) => id)),
]

const toParams = (address: unknown) => Object.fromEntries(new URLSearchParams(String(address).split('?')[1]))

describe('search for a payout', () => {
  it('search opens the payout with a bank reference, with or without the text around it', async () => {
    for (const text of [received, ` ${received} `, missing]) {
      const page = await pageOf(text)
      expect(page).toBe(`reconcile?payout=${text.trim()}`)
      expect((await site.get(`/${page}`, key)).body).toContain(mid)
    }
  })

  it('search opens the order, not its payout, for the UTR of a settled payment', async () => {
    for (const text of [settled, `0000${settled}`, settled.replace(/(\d{4})(?=\d)/g, '$1 ')]) {
      expect(await pageOf(text)).toBe(`payments-show?order-id=${orderId}`)
    }
  })

  it('search shows a payout by totals whose line has the bank reference as its UTR', async () => {
    const reference = newReference()
    await bank.must(
      ['settlements', 'import', '-'],
      `mid,amount,utr,bank_reference_number,status,initiation_date\n${mid},7,${reference},${reference},SUCCESS,2026-08-07 09:00:00\n`,
    )
    const { status, headers, body } = await search(reference)
    expect([status, headers.location ?? textOf(body)]).toEqual([200, expect.stringContaining(`Payout ${reference}`)])
  })
})

describe('search for a discrepancy', () => {
  it('search opens the report with the discrepancy of a payment, in upper and lower case', async () => {
    const { differences } = await json('reconcile', 'differences', '--mid', mid)
    const { id } = differences.find(({ utr }: { utr: string }) => utr === unsettled)
    for (const text of [id, id.toUpperCase()]) {
      const page = await pageOf(text)
      expect(page).toMatch(/^reconcile\?/)
      expect(toParams(page)).toEqual({ from: '2026-08-04', to: '2026-08-04', mid })
      expect((await site.get(`/${page}`, key)).body).toContain(id)
    }
  })

  it('search opens the payouts with the discrepancy of a payout that was not received', async () => {
    const { payouts } = await json('reconcile', 'payouts', '--month', '2026-08', '--mid', mid)
    const { differenceId } = payouts.find(({ bankReference }: { bankReference: string }) => bankReference === missing)
    const page = await pageOf(differenceId)
    expect(page).toMatch(/^reconcile-payouts\?/)
    expect(toParams(page)).toEqual({ from: '2026-08-05', to: '2026-08-05', mid })
    expect((await site.get(`/${page}`, key)).body).toContain(differenceId)
  })

  it('search finds nothing for an identifier of no discrepancy', async () => {
    expect(textOf((await search('260804ffffffffff')).body)).toContain('Nothing was found')
  })
})

describe('search for a merchant', () => {
  it('search lists the merchants with a part of their name, each with its mid and a link to its orders of today', async () => {
    const other = await newMerchant(db, { name: 'CHAI <b>Stall</b>' })
    const { status, body } = await search('chai')
    expect(status).toBe(200)
    expect(textOf(body)).toContain(`Chai Point Indiranagar ${mid}`)
    for (const one of [mid, other.mid]) expect(body).toContain(`href="payments-list?mid=${one}"`)
    expect(textOf(body)).toContain('CHAI <b>Stall</b>')
    expect((await search(mid)).body).toContain(`href="payments-list?mid=${mid}"`)
    expect((await search('point indira')).body).not.toContain(`mid=${other.mid}`)
  })
})

describe('search for an acquirer’s payment id', () => {
  it('search opens the order of a payment by the acquirer’s id, although the UTR is the bank’s reference', async () => {
    const utr = newUtr()
    const paid = await storePaidOrder(db, { mid, utr, paidAt: NOON })
    await db.query('update payments set acquirer_payment_id = $2 where utr = $1', [utr, 'pay_29QQoUBi66-xm2f'])
    expect(await pageOf('pay_29QQoUBi66-xm2f')).toBe(`payments-show?order-id=${paid}`)
  })
})

describe('search for an amount', () => {
  it('search lists the payments of today with the amount, of all merchants, the newest payment first, with its time', async () => {
    const another = await newMerchant(db)
    const paid = (merchant: string, minutes: number, rupees = 499) =>
      storePaidOrder(db, { mid: merchant, utr: newUtr(), paidAt: minutesBefore(minutes), rupees })
    const oldest = await paid(mid, 90)
    const newest = await paid(another.mid, 5)
    const middle = await paid(mid, 30)
    await paid(mid, 10, 499.5)
    await paid(mid, 24 * 60)
    for (const text of ['₹499 today', '499', '₹499', '499.00', '₹ 499.00', 'Rs. 499', '499 Today']) {
      const { status, body } = await search(text)
      expect([text, status, ordersIn(body)]).toEqual([text, 200, [newest, middle, oldest]])
      expect(textOf(body)).toContain(`${TODAY} 17:55:00`)
    }
    expect(ordersIn((await search('₹499.50')).body)).toHaveLength(1)
  })

  it('search accepts an amount with commas', async () => {
    const paid = await storePaidOrder(db, { mid, utr: newUtr(), paidAt: minutesBefore(1), rupees: 123_456 })
    expect(ordersIn((await search('₹1,23,456')).body)).toEqual([paid])
  })

  it('search lists the payments with an amount beside the order with this number', async () => {
    const paid = await storePaidOrder(db, { mid, utr: newUtr(), paidAt: minutesBefore(2), rupees: 777 })
    await db.query('update payment_intents set merchant_order_id = $2 where order_id = $1', [orderId, '777'])
    expect(ordersIn((await search('777')).body)).toEqual([orderId, paid])
  })

  it('search lists the newest 100 payments with the amount, and says that there are more', async () => {
    for (let i = 0; i < 101; i += 1) {
      await storePaidOrder(db, { mid, utr: newUtr(), paidAt: minutesBefore(200 - i), rupees: 313 })
    }
    const { body } = await search('₹313 today')
    expect(ordersIn(body)).toHaveLength(100)
    expect(textOf(body)).toContain('Only the newest 100 are shown')
    expect(textOf(body)).not.toContain('14:40:00')
  })
})

describe('a search without a result', () => {
  it('says what is searched and that mobile numbers are not, and offers the search for an amount', async () => {
    const { body } = await search('9876543210')
    for (const part of [
      'UTR',
      'order number',
      'bank reference',
      'merchant',
      'discrepancy',
      'Mobile numbers are not searched',
    ]) {
      expect(textOf(body)).toContain(part)
    }
    expect(textOf(body)).toContain('Nothing was found for “9876543210”')
    expect(body.split('<main')[1]).toMatch(/<form[^>]* action="search">[\s\S]*name="q"/)
  })
})

describe('a result with an exception of another order', () => {
  it('says which exception reports the UTR', async () => {
    const [utr, other] = [newUtr(), newUtr()]
    const own = await storePaidOrder(db, { mid, utr, paidAt: NOON })
    const reported = await storePaidOrder(db, { mid, utr: other, paidAt: NOON })
    await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       values ($1, $2, 'UTR of another order', $3, 20000, 'SUCCESS', $4)`,
      [mid, reported, utr, NOON],
    )
    const { body } = await search(utr)
    expect(ordersIn(body).sort()).toEqual([own, reported].sort())
    expect(textOf(body)).toContain('its exception: UTR of another order')
  })
})
