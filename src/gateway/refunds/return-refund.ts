import { inTransaction, type Transactional } from '../../platform/db/pool.ts'
import type { Barrier } from '../payments/reports.ts'
import { lockRefund, saveEvent } from './record-update.ts'
import type { Refund, RefundName } from './refund.ts'
import { findRefund } from './store.ts'

type RefundReturn = { reference: string; reason: string; returnedBy: string }

/**
 * Records that the bank has returned a refund of `direct`, so that the refund has failed and its amount can be refunded
 * again, and writes the merchant's event. The row of the refund stays SUCCESS: reports as of an earlier time include
 * the refund. Changes nothing, and returns `isReturned` false, unless the refund is of `direct` and successful.
 */
export function returnRefund(
  db: Transactional,
  name: RefundName,
  { reference, reason, returnedBy }: RefundReturn,
  { now, barrier }: { now: () => Date; barrier: Barrier },
): Promise<{ refund: Refund; isReturned: boolean }> {
  return inTransaction(db, async (client) => {
    await barrier(client)
    const refund = (await lockRefund(client, name)) as Refund
    if (refund.acquirer !== 'direct' || refund.status !== 'SUCCESS') return { refund, isReturned: false }
    const { mid, ourRefundId } = refund
    const returnedAt = now()
    await client.query(
      `insert into refund_returns (mid, our_refund_id, reference, reason, returned_by, returned_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [mid, ourRefundId, reference, reason, returnedBy, returnedAt],
    )
    await saveEvent(client, refund, 'FAIL', returnedAt)
    return { refund: (await findRefund(client, mid, { ourRefundId })) as Refund, isReturned: true }
  })
}
