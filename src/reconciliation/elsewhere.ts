import type { PoolClient } from 'pg'
import type { FoundDifference } from './differences.ts'
import { CARRIED_UTR, PAID_OUT, settlementsOfAll } from './paid-and-settled.ts'

/**
 * Completes payments that are not settled by settlements of other merchants that carry their UTR, and settlements of no known
 * payment by other merchants' orders that it has paid: the bank has booked the money under another name.
 */
export async function findElsewhere(
  client: PoolClient,
  mid: string,
  known: Date,
  found: FoundDifference[],
): Promise<FoundDifference[]> {
  const utrsOf = (sought: FoundDifference['kind']) => found.flatMap(({ kind, utr }) => (kind === sought ? [utr] : []))
  const texts = new Map([
    ...(await read(client, SETTLED_ELSEWHERE, [mid, known, utrsOf('not settled')])),
    ...(await read(client, PAID_ELSEWHERE, [mid, known, utrsOf('no known payment')])),
  ])
  return found.map((one) => {
    const isSought = one.kind === 'not settled' || one.kind === 'no known payment'
    return isSought ? { ...one, elsewhere: texts.get(one.utr) ?? null } : one
  })
}

const SETTLED_ELSEWHERE = `
  select distinct on (key) key as utr, 'settlement ' || utr || ' of merchant ' || mid || ' carries it' as text
    from (${settlementsOfAll(`${CARRIED_UTR} = any ($3) and mid <> $1 and ${PAID_OUT}`)}) s
   order by key, initiated_at, mid, utr`

const PAID_ELSEWHERE = `
  select distinct on (utr) utr, 'order ' || order_id || ' of merchant ' || mid || ' carries its UTR' as text
    from payments
   where utr = any ($3) and mid <> $1 and heard_at <= $2
   order by utr, heard_at, mid`

async function read(
  client: PoolClient,
  query: string,
  values: [string, Date, unknown[]],
): Promise<[string | null, string][]> {
  if (values[2].length === 0) return []
  const { rows } = await client.query<{ utr: string; text: string }>(query, values)
  return rows.map(({ utr, text }) => [utr, text])
}
