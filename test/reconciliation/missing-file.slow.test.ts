import { expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

/** More payments than a report lists, from 1 to 25 October. */
const PAYMENTS = 100_500

it('reconcile lists the first discrepancies of a missing file and counts the other discrepancies, which operators can resolve and close by id', {
  timeout: 300_000,
}, async () => {
  const { url, db } = await createTestDatabase()
  const { mid } = await newMerchant(db)
  await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
     select $1, 'P' || i, 'O' || i, 20000, at, at, 'first', 'direct', 'notification'
       from (select i, $2::timestamptz + i % 25 * interval '1 day' as at from generate_series(1, $3) i) one`,
    [mid, istMoment('2026-10-01', '12:00:00'), PAYMENTS],
  )
  // A single line that names its payment marks the file as one with a line per payment.
  await importRows(
    db,
    [{ mid, utr: 'P25', day: '2026-10-02', amount: 200_00, paymentUtr: 'P25' }],
    new Date('2026-10-03'),
  )
  const { jsonOn, opsOn } = opsAtNoon(() => url, ['reconcile'])
  const { merchants } = await jsonOn('2026-11-05', '--month', '2026-10', '--mid', mid)
  const [{ differences, unlisted, total }] = merchants
  expect(differences).toHaveLength(1_000)
  expect(new Set(differences.map(({ day }: { day: string }) => day))).toEqual(new Set(['2026-10-01']))
  expect(unlisted).toEqual([
    { kind: 'missing settlement', count: PAYMENTS - 1_001, owed: `${(PAYMENTS - 1_001) * 200}.00` },
  ])
  expect(total).toMatchObject({ differences: PAYMENTS - 1, carriedForward: `${(PAYMENTS - 1) * 200}.00` })
  expect((await opsOn('2026-11-05', '--month', '2026-10', '--mid', mid)).stdout).toContain(
    'a settlement file may be missing',
  )
  // A report of one day lists a discrepancy that the monthly report leaves out.
  const day = ['--from', '2026-10-20', '--to', '2026-10-20', '--mid', mid]
  const [found] = (await jsonOn('2026-11-05', ...day)).merchants[0].differences
  await jsonOn('2026-11-05', 'resolve', '--difference', found.id, '--reason', 'paid by hand')
  expect(await jsonOn('2026-11-05', 'differences', '--mid', mid)).toMatchObject({ count: PAYMENTS - 2 })
  expect((await opsOn('2026-11-05', 'close', '--month', '2026-10')).code).toBe(0)
  const { rows } = await db.query('select count(*) as items, sum(balance_paise)::bigint as sum from closed_items')
  expect(rows).toEqual([{ items: PAYMENTS - 2, sum: (PAYMENTS - 2) * 200_00 }])
})
