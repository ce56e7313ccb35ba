import { Readable } from 'node:stream'
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { runs } from '../support/generated.ts'
import { newMerchant } from '../support/service.ts'
import { storedRows } from '../support/stored-rows.ts'

let db: Database
let mids: string[] = []
beforeAll(async () => {
  ;({ db } = await createTestDatabase())
  mids = [(await newMerchant(db)).mid, (await newMerchant(db)).mid]
})

let count = 0

/** Stores two orders of one merchant and one of another, the last of which has expired. Returns their ids. */
async function newOrders(): Promise<string[]> {
  const orderIds = Array.from({ length: 3 }, () => (++count).toString(16).padStart(32, '0'))
  await db.query(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select mid, id, id, 20000, 'https://shop.example.in', 'Order', '', '', '',
            'chaipoint@examplebank', 'Chai Point', '5814', now() - interval '1 hour',
            now() + minutes * interval '1 minute'
       from unnest($1::text[], $2::text[], $3::integer[]) as o (mid, id, minutes)`,
    [[mids[0], mids[0], mids[1]], orderIds, [15, 15, -30]],
  )
  return orderIds
}

const line = fc.record({
  order: fc.nat({ max: 3 }),
  status: fc.constantFrom('SUCCESS', 'SUCCESS', 'SUCCESS', 'FAIL', 'REJECT'),
  utr: fc.option(fc.nat({ max: 3 })),
  amount: fc.constantFrom('200.00', '200.00', '200.00', '100.00'),
  minute: fc.nat({ max: 1 }),
  id: fc.option(fc.nat({ max: 2 })),
})

it('a dry run of a daily transaction report counts what the import then counts, and stores nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 12 }), fc.boolean(), async (lines, isRepeated) => {
      const orders = [...(await newOrders()), (++count).toString(16).padStart(32, 'f')]
      const run = count
      const rows = lines.map(({ order, status, utr, amount, minute, id }) =>
        [
          ...[orders[order], status, utr === null && id !== null ? '' : `P${run}U${utr ?? 0}`, amount],
          ...[`2026-03-3${minute}T10:00:00+05:30`, id === null ? '' : `pay_${run}_${id}`],
        ].join(','),
      )
      const file = ['order_id,status,utr,amount,paid_at,acquirer_payment_id', ...rows, ''].join('\n')
      const load = (isDry: boolean) =>
        importDailyReport(db, Readable.from([Buffer.from(file)]), { now: () => new Date(), isDry })
      if (isRepeated) await load(false)
      const before = await storedRows(db)
      const judged = await load(true)
      expect(await storedRows(db)).toEqual(before)
      expect(judged).toEqual(await load(false))
    }),
    { numRuns: runs(1_000, 15) },
  )
})
