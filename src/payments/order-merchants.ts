import { createHash } from 'node:crypto'
import type { Queryable } from '../db/pool.ts'
import { asksForCitus } from '../db/spread.ts'
import { ORDER_ID_DIGITS } from './intent.ts'

const END_DIGITS = 3

/**
 * Whose an order is. Pages and banks name it by our orderId alone, and where the database is spread by `mid`, such a look-up asks
 * every shard: with one node away nobody's page would open. So there an orderId ends in three hex digits of a hash of its
 * merchant, which with 1,000,000 merchants leaves 244 of them to look among. On one server orderIds have no such end.
 */
export function createOrderMerchants(db: Queryable) {
  const isSpread = asksForCitus(db)

  return {
    isSpread,

    /** What new orderIds of `mid` end in: three hex digits, or nothing on one server. */
    endOf: async (mid: string): Promise<string> => ((await isSpread()) ? hashOf(mid).slice(0, END_DIGITS) : ''),

    /**
     * The merchants whose orders these can be; undefined when they can be anyone's, as on one server and where an order is
     * older than the spreading.
     */
    async candidates(orderIds: readonly string[]): Promise<string[] | undefined> {
      if (!(await isSpread()) || orderIds.some((orderId) => orderId.length === ORDER_ID_DIGITS)) return undefined
      const { rows } = await db.query<{ mid: string }>(
        `select mid from merchants where left(encode(sha256(mid::bytea), 'hex'), 3) = any ($1)`,
        [orderIds.map((orderId) => orderId.slice(ORDER_ID_DIGITS))],
      )
      return rows.map(({ mid }) => mid)
    },
  }
}

export type OrderMerchants = ReturnType<typeof createOrderMerchants>

const hashOf = (mid: string) => createHash('sha256').update(mid).digest('hex')
