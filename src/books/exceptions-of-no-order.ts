import type { PoolClient } from 'pg'
import type { FoundDifference } from './differences.ts'
import { paiseOf, type Texts, withPaise } from './paid-and-settled.ts'

/** The exceptions `e` that tell of money which reached the payee, so that it may be what was settled. */
export const TELLS_OF_MONEY = `e.utr <> '' and e.status in ('SUCCESS', '') and e.kind <> 'late payment'`

/** The amount is in paise, null of what is unreadable. */
type NoOrder = Pick<FoundDifference, 'orderId' | 'exceptionId' | 'exceptionKind' | 'resolution'> & {
  utr: string
  amount: bigint | null
}

/**
 * Completes the settlements of `found` that nothing of the merchant `mid` itself explains, by the exceptions of no known order.
 * Those have no merchant, so on a database of several servers they may lie on another one than the merchant's books.
 */
export async function explainByNoOrder(
  client: PoolClient,
  mid: string,
  found: FoundDifference[],
): Promise<FoundDifference[]> {
  const isUnexplained = ({ settlementUtr, orderId, exceptionId }: FoundDifference) =>
    settlementUtr !== null && orderId === null && exceptionId === null
  const exceptions = await findOfNoOrder(client, found.filter(isUnexplained))
  const exceptionOf = (one: FoundDifference) => (isUnexplained(one) ? exceptions.get(one.utr) : undefined)
  const settledBefore = await findSettledBefore(
    client,
    mid,
    found.filter((one) => exceptionOf(one)?.resolution != null),
  )
  return found.map((one) => {
    const exception = exceptionOf(one)
    if (exception === undefined) return one
    const { utr: _, amount, ...explanation } = exception
    // What a person has resolved is the money of the exception, once: at the merchant who got it first.
    const isItsMoney = amount !== null && one.settlementUtr === one.otherUtr && (one.settled ?? 0n) <= amount
    const resolution = isItsMoney && !settledBefore.has(one.settlementUtr) ? explanation.resolution : null
    return { ...one, ...explanation, resolution }
  })
}

/** By UTR; of several the one that nobody has resolved, else the first. */
async function findOfNoOrder(client: PoolClient, settlements: FoundDifference[]): Promise<Map<string | null, NoOrder>> {
  if (settlements.length === 0) return new Map()
  const { rows } = await client.query<Texts<NoOrder>>(
    `select distinct on (upper(e.utr)) upper(e.utr) as utr, e.exception_id as "exceptionId", e.kind as "exceptionKind",
            nullif(e.order_id, '') as "orderId", ${paiseOf('e.amount')} as amount, r.reason as resolution
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.mid = '' and ${TELLS_OF_MONEY} and upper(e.utr) collate "C" = any ($1::text[])
      order by upper(e.utr), r.reason is not null, e.received_at, e.exception_id`,
    [settlements.map(({ utr }) => utr)],
  )
  return new Map(rows.map((row) => [row.utr, withPaise<NoOrder>(row, 'amount')]))
}

/** The UTRs of those settlements whose payment another merchant's settlement carries that came before. */
async function findSettledBefore(client: PoolClient, mid: string, settlements: FoundDifference[]) {
  if (settlements.length === 0) return new Set<string | null>()
  // By an index each.
  const carriedBy = (condition: string) => `
    select a.utr
      from unnest($2::text[], $3::text[], $4::timestamptz[]) as a (utr, key, initiated_at)
     cross join merchants o
      join settlements s on s.mid = o.mid and ${condition}
     where o.mid <> $1 and s.status = 'SUCCESS' and (s.initiated_at, o.mid) < (a.initiated_at, $1)`
  const { rows } = await client.query<{ utr: string }>(
    `${carriedBy('s.utr in (a.utr, a.key, lower(a.key)) and s.payment_utr is null')}
     union all ${carriedBy('s.payment_utr = a.key')}`,
    [
      mid,
      settlements.map(({ settlementUtr }) => settlementUtr),
      settlements.map(({ utr }) => utr),
      settlements.map(({ initiatedAt }) => initiatedAt),
    ],
  )
  return new Set<string | null>(rows.map(({ utr }) => utr))
}
