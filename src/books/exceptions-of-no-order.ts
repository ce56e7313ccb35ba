import type { PoolClient } from 'pg'
import type { FoundDifference } from './differences.ts'
import { paiseOf, type Texts, toPaise } from './paid-and-settled.ts'

/** The exceptions `e` that tell of money which reached the payee, so that it may be what was settled. */
export const TELLS_OF_MONEY = `e.utr <> '' and e.status in ('SUCCESS', '') and e.kind <> 'late payment'`

type NoOrder = {
  utr: string
  exceptionId: string
  exceptionKind: string
  orderId: string | null
  /** In paise, null of what is unreadable. */
  amount: bigint | null
  resolution: string | null
}

/**
 * Completes the settlements of `found` that nothing of the merchant `mid` itself explains, by the exceptions of no known order:
 * those have no merchant, so on a database of several servers they may lie on another one than the merchant's books.
 */
export async function explainByNoOrder(
  client: PoolClient,
  mid: string,
  found: FoundDifference[],
): Promise<FoundDifference[]> {
  const unexplained = found.filter(isUnexplained)
  if (unexplained.length === 0) return found
  const exceptions = await findOfNoOrder(client, unexplained)
  const resolved = unexplained.filter((one) => resolutionOf(one, exceptions.get(one.utr)) !== null)
  const settledBefore = await findSettledBefore(client, mid, resolved)
  return found.map((one) => {
    if (!isUnexplained(one)) return one
    const exception = exceptions.get(one.utr)
    if (exception === undefined) return one
    const { orderId, exceptionId, exceptionKind } = exception
    // What a person has resolved is its money once, at the merchant who got it first.
    const resolution = settledBefore.has(one.settlementUtr) ? null : resolutionOf(one, exception)
    return { ...one, orderId, exceptionId, exceptionKind, resolution }
  })
}

type Unexplained = FoundDifference & { utr: string; settlementUtr: string; settled: bigint }

const isUnexplained = (one: FoundDifference): one is Unexplained =>
  one.settlementUtr !== null && one.orderId === null && one.exceptionId === null

/** How the exception came to its end, where the settlement can be its money. */
function resolutionOf(
  { settlementUtr, otherUtr, settled }: Unexplained,
  exception: NoOrder | undefined,
): string | null {
  if (exception?.amount == null || settlementUtr !== otherUtr || settled > exception.amount) return null
  return exception.resolution
}

/** By UTR; of several the one that nobody has resolved, else the first. */
async function findOfNoOrder(client: PoolClient, settlements: Unexplained[]): Promise<Map<string, NoOrder>> {
  const { rows } = await client.query<Texts<NoOrder>>(
    `select distinct on (upper(e.utr)) upper(e.utr) as utr, e.exception_id as "exceptionId", e.kind as "exceptionKind",
            nullif(e.order_id, '') as "orderId", ${paiseOf('e.amount')} as amount, r.reason as resolution
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.mid = '' and ${TELLS_OF_MONEY} and upper(e.utr) collate "C" = any ($1::text[])
      order by upper(e.utr), r.reason is not null, e.received_at, e.exception_id`,
    [settlements.map(({ utr }) => utr)],
  )
  return new Map(rows.map(({ amount, ...row }) => [row.utr, { ...row, amount: toPaise(amount) }]))
}

/** The UTRs of those settlements whose payment another merchant's settlement carries that came before. */
async function findSettledBefore(client: PoolClient, mid: string, settlements: Unexplained[]): Promise<Set<string>> {
  if (settlements.length === 0) return new Set()
  const { rows } = await client.query<{ utr: string }>(
    `select a.utr
       from unnest($2::text[], $3::text[], $4::timestamptz[]) as a (utr, key, initiated_at)
      cross join merchants o
       join settlements s on s.mid = o.mid and s.utr in (a.utr, a.key, lower(a.key)) and s.payment_utr is null
      where o.mid <> $1 and s.status = 'SUCCESS' and (s.initiated_at, o.mid) < (a.initiated_at, $1)
      union all
     select a.utr
       from unnest($2::text[], $3::text[], $4::timestamptz[]) as a (utr, key, initiated_at)
      cross join merchants o
       join settlements s on s.mid = o.mid and s.payment_utr = a.key
      where o.mid <> $1 and s.status = 'SUCCESS' and (s.initiated_at, o.mid) < (a.initiated_at, $1)`,
    [
      mid,
      settlements.map(({ settlementUtr }) => settlementUtr),
      settlements.map(({ utr }) => utr),
      settlements.map(({ initiatedAt }) => initiatedAt),
    ],
  )
  return new Set(rows.map(({ utr }) => utr))
}
