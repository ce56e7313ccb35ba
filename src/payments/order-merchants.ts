import { createHash } from 'node:crypto'
import type { Places } from '../db/few-at-once.ts'
import { nodesOf } from '../db/nodes.ts'
import type { Database } from '../db/pool.ts'
import { ORDER_ID_DIGITS } from './intent.ts'

/**
 * Whose an order is. Pages and banks name it by our orderId alone, and where the database is spread by `mid`, such a look-up asks
 * every shard: with one node away nobody's page would open. So there an orderId ends in three characters of a hash of its
 * merchant, of which there are 250,000: with 10,000 merchants 1 order in 25 is looked for at a second merchant. On one server
 * orderIds have no such end. `inTurn` limits the look-ups of merchants, which are made on the node that is connected to.
 */
export function createOrderMerchants(db: Database, inTurn: Places = (work) => work()) {
  const nodes = nodesOf(db)

  return {
    /** What new orderIds of `mid` end in: three letters or digits, or nothing on one server. */
    endOf: async (mid: string): Promise<string> => ((await nodes.isSpread()) ? endOf(mid) : ''),

    /**
     * Runs `look` for the merchant of an order, and returns what it finds; with an undefined mid it is to look at all. Where the
     * order can be of several, all are looked at together and the first that has it counts, whatever becomes of the others.
     */
    async find<T>(orderId: string, look: (mid: string | undefined) => Promise<T | undefined>): Promise<T | undefined> {
      const candidates = (await this.candidates([orderId])) ?? [undefined]
      return firstFound(candidates.map(look))
    },

    /**
     * The merchants whose orders these can be; undefined when they can be anyone's, as on one server and where an order is
     * older than the spreading.
     */
    async candidates(orderIds: readonly string[]): Promise<string[] | undefined> {
      if (!(await nodes.isSpread()) || orderIds.some((orderId) => orderId.length === ORDER_ID_DIGITS)) return undefined
      const { rows } = await inTurn(() =>
        db.query<{ mid: string }>(
          `select mid from merchants where translate(left(encode(sha256(mid::bytea), 'base64'), 3), '+/', 'AB') = any ($1)`,
          [orderIds.map((orderId) => orderId.slice(ORDER_ID_DIGITS))],
        ),
      )
      return rows.map(({ mid }) => mid)
    },
  }
}

/** Rejects when none is found and one of them has failed: it could have been there. */
async function firstFound<T>(looks: Promise<T | undefined>[]): Promise<T | undefined> {
  const found = looks.map(async (look) => (await look) ?? Promise.reject(new NotHere()))
  try {
    return await Promise.any(found)
  } catch (error) {
    const fault = (error as AggregateError).errors.find((one) => !(one instanceof NotHere))
    if (fault !== undefined) throw fault
    return undefined
  }
}

class NotHere extends Error {}

/** Migration 0013 has an index of the same. Letters and digits only, since other characters are not safe in the `tr` of a UPI link. */
const endOf = (mid: string) =>
  createHash('sha256').update(mid).digest('base64').slice(0, 3).replaceAll('+', 'A').replaceAll('/', 'B')
