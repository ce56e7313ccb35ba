import { isOutage, isRejectedRow } from '../../platform/db/outage.ts'
import type { Snapshot } from './snapshot.ts'

/** A merchant that a report cannot include, and the cause for the operator. */
export type MerchantError = { mid: string; error: string }

export const isMerchantError = (one: object): one is MerchantError => 'error' in one

/** Formats the error as one line, such as `M1 cannot be reconciled: bigint out of range`. */
export const merchantErrorText = ({ mid, error }: MerchantError) =>
  `${mid === '' ? 'unknown orders' : mid} cannot be reconciled: ${error}`

/**
 * Returns the result of `read`, or an error if the facts of this merchant cannot be read or judged, such as amounts
 * whose sum is out of range. Throws errors that concern every merchant, such as a lost connection or a time limit.
 */
export async function readOne<T>(
  { client }: Pick<Snapshot, 'client'>,
  mid: string,
  read: () => Promise<T>,
): Promise<T | MerchantError> {
  try {
    return await read()
  } catch (error) {
    if (!isOfMerchant(error)) throw error
    await client.query('rollback to savepoint snapshot').catch(() => {
      throw error
    })
    // The detail of a PostgreSQL error is omitted, because the detail may quote a row.
    return { mid, error: String((error as Error).message.split('\n')[0]) }
  }
}

/** Whether the facts of one merchant have caused the error. Of the errors of PostgreSQL, only those about data can. */
const isOfMerchant = (error: unknown): boolean =>
  error instanceof Error && !isOutage(error) && (!('severity' in error) || isRejectedRow(error))
