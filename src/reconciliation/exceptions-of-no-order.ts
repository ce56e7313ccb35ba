import type { PoolClient } from 'pg'
import type { FoundDifference } from './differences.ts'
import { CARRIED_UTR, PAID_OUT, paiseOf, settlementsOfAll, type Texts, withPaise } from './paid-and-settled.ts'

/** Condition for exceptions `e` of money that reached the payee, so that a settlement may carry it. */
export const TELLS_OF_MONEY = `
  e.utr <> '' and e.status in ('SUCCESS', '') and e.kind not in ('late payment', 'UTR of another merchant')
  and e.kind not like 'refund%'`

/** An exception of no known order. `amount` is in paise, and null for an unreadable notification. */
type NoOrder = Pick<FoundDifference, 'orderId' | 'exceptionId' | 'exceptionKind' | 'resolution'> & {
  utr: string
  amount: bigint | null
}

/**
 * Completes the settlements in `found` that nothing of merchant `mid` explains, by exceptions of no known order. Those
 * exceptions have no merchant: in a Citus cluster they may lie on another server than the merchant's books.
 */
export async function explainByNoOrder(
  client: PoolClient,
  mid: string,
  known: Date,
  found: FoundDifference[],
): Promise<FoundDifference[]> {
  const isUnexplained = ({ kind, orderId, exceptionId }: FoundDifference) =>
    (kind === 'no known payment' || kind === 'settled twice') && orderId === null && exceptionId === null
  const exceptions = await findOfNoOrder(client, known, found.filter(isUnexplained))
  const exceptionOf = (one: FoundDifference) => (isUnexplained(one) ? exceptions.get(one.utr) : undefined)
  const settledBefore = await findSettledBefore(
    client,
    mid,
    known,
    found.filter((one) => exceptionOf(one)?.resolution != null),
  )
  return found.map((one) => {
    const exception = exceptionOf(one)
    if (exception === undefined) return one
    const { utr: _, amount, ...explanation } = exception
    // A resolution covers the exception's money once: for the merchant who was settled first.
    const isItsMoney = amount !== null && one.settlementUtr === one.otherUtr && (one.settled ?? 0n) <= amount
    const resolution = isItsMoney && !settledBefore.has(one.settlementUtr) ? explanation.resolution : null
    return { ...one, ...explanation, resolution }
  })
}

/** Exceptions of no known order, by UTR. Of several with one UTR an open one is taken, else the oldest. */
async function findOfNoOrder(
  client: PoolClient,
  known: Date,
  settlements: FoundDifference[],
): Promise<Map<string | null, NoOrder>> {
  if (settlements.length === 0) return new Map()
  const { rows } = await client.query<Texts<NoOrder>>(
    `select distinct on (upper(e.utr)) upper(e.utr) as utr, e.exception_id as "exceptionId", e.kind as "exceptionKind",
            nullif(e.order_id, '') as "orderId", ${paiseOf('e.amount')} as amount, r.reason as resolution
       from payment_exceptions e
       left join payment_resolutions r
         on r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2
      where e.mid = '' and e.received_at <= $2 and ${TELLS_OF_MONEY} and upper(e.utr) collate "C" = any ($1::text[])
      order by upper(e.utr), r.reason is not null, e.received_at, e.exception_id`,
    [settlements.map(({ utr }) => utr), known],
  )
  return new Map(rows.map((row) => [row.utr, withPaise<NoOrder>(row, 'amount')]))
}

/** UTRs of `settlements` whose payment is also carried by an earlier settlement of another merchant. */
async function findSettledBefore(client: PoolClient, mid: string, known: Date, settlements: FoundDifference[]) {
  if (settlements.length === 0) return new Set<string | null>()
  const { rows } = await client.query<{ utr: string }>(
    // Materialized, since Citus joins settlements of all merchants to nothing else.
    `with earlier as materialized (${settlementsOfAll(`${CARRIED_UTR} = any ($4) and mid <> $1 and ${PAID_OUT}`)})
     select a.utr
       from unnest($3::text[], $4::text[], $5::timestamptz[]) as a (utr, key, initiated_at)
       join earlier
         on earlier.key = a.key and (earlier.initiated_at, earlier.mid) < (a.initiated_at, $1)`,
    [
      mid,
      known,
      settlements.map(({ settlementUtr }) => settlementUtr),
      settlements.map(({ utr }) => utr),
      settlements.map(({ initiatedAt }) => initiatedAt),
    ],
  )
  return new Set<string | null>(rows.map(({ utr }) => utr))
}
