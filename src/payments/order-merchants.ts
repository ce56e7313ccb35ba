import { createHash } from 'node:crypto'
import type { Queryable } from '../db/pool.ts'
import { asksForCitus } from '../db/spread.ts'
import { ORDER_ID_DIGITS } from './intent.ts'

/**
 * Whose an order is. Pages and banks name it by our orderId alone, and where the database is spread by `mid`, such a look-up asks
 * every shard: with one node away nobody's page would open. So there an orderId ends in three characters of a hash of its
 * merchant, of which there are 250,000: with 10,000 merchants 1 order in 25 is looked for at a second merchant. On one server
 * orderIds have no such end.
 */
export function createOrderMerchants(db: Queryable) {
  const isSpread = asksForCitus(db)

  return {
    isSpread,

    /** What new orderIds of `mid` end in: three letters or digits, or nothing on one server. */
    endOf: async (mid: string): Promise<string> => ((await isSpread()) ? endOf(mid) : ''),

    /**
     * The merchants whose orders these can be; undefined when they can be anyone's, as on one server and where an order is
     * older than the spreading.
     */
    async candidates(orderIds: readonly string[]): Promise<string[] | undefined> {
      if (!(await isSpread()) || orderIds.some((orderId) => orderId.length === ORDER_ID_DIGITS)) return undefined
      const { rows } = await db.query<{ mid: string }>(
        `select mid from merchants where translate(left(encode(sha256(mid::bytea), 'base64'), 3), '+/', 'AB') = any ($1)`,
        [orderIds.map((orderId) => orderId.slice(ORDER_ID_DIGITS))],
      )
      return rows.map(({ mid }) => mid)
    },
  }
}

export type OrderMerchants = ReturnType<typeof createOrderMerchants>

/** Migration 0013 has an index of the same. Letters and digits only, since other characters are not safe in the `tr` of a UPI link. */
const endOf = (mid: string) =>
  createHash('sha256').update(mid).digest('base64').slice(0, 3).replaceAll('+', 'A').replaceAll('/', 'B')
