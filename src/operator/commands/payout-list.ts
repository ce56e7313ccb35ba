import type { MerchantError } from '../../books/reading/snapshot.ts'
import { type ArrivedPayout, isOpenPayout, listArrivals, recentDays } from '../../books/reports/arrivals.ts'
import type { Database } from '../../platform/db/pool.ts'
import { receivedText } from '../texts.ts'
import { collectErrors, withErrors } from './merchant-errors.ts'
import { summed, table } from './result.ts'

type Payouts = AsyncIterable<ArrivedPayout | MerchantError>

const COLUMNS =
  'day, mid, account, bankReference, rows, Σgross, Σfee, Σtax, Σdeductions, Σnet, arrival, arrivedOn, ₹credited, ₹difference, statement, differenceId, resolution'

const VIEWS = withErrors<ArrivedPayout, typeof COLUMNS>('arrival', {
  words: ({ arrival }) => ({ arrival: receivedText(arrival) }),
  first: ['day', 'bankReference', 'arrival', 'net', 'credited', 'difference'],
  links: ({ bankReference: payout }) => ({ bankReference: { name: 'reconcile', flags: { payout } } }),
  changes: changesOfPayout,
})

/** Returns payouts with the sums of their amounts. */
export const payoutList = (payouts: Payouts) => summed('payouts', COLUMNS, payouts, VIEWS)

export async function* openOnly(payouts: Payouts) {
  for await (const payout of payouts) if (isOpenPayout(payout)) yield payout
}

/** Returns the open payouts of the last 31 days, and the error for merchants that they do not include. */
export function openPayouts(db: Database, { mid, now }: { mid: string | undefined; now: Date }) {
  const arrivals = listArrivals(db, { ...recentDays(now), mid, now, ofStatements: true })
  const { rows, failure } = collectErrors(openOnly(arrivals))
  const title = 'Payouts of the last 31 days that were not received in full:'
  return { payouts: table(COLUMNS, rows, { ...VIEWS, title }), failure }
}

/** Returns the flags that match a payout with a credit of its amount, or with any credit, and that resolve the payout. */
function changesOfPayout({ bankReference: payout, arrival, statement, differenceId }: ArrivedPayout) {
  const credits = arrival === 'perhaps' ? [...(statement ?? '').matchAll(/(\d+) line (\d+)/g)] : []
  return [
    ...credits.map(([, statement = '', line = '']) => ({ payout, statement, line })),
    ...(arrival === 'not arrived' ? [{ payout }] : []),
    ...(differenceId === null ? [] : [{ difference: differenceId }]),
  ]
}
