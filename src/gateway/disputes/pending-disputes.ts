import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { DAY_MS } from '../../platform/time.ts'
import { findPendingDisputes, type PendingMerchant } from '../payments/pending-merchants.ts'
import { DISPUTE_DAYS } from './dispute.ts'
import { CHECK_PAUSE_MS } from './record-dispute.ts'
import type { DisputeKey } from './store.ts'

export type PendingDispute = DisputeKey & { orderId: string }

export function createPendingDisputes(db: Database) {
  return {
    findPending: (now: Date) => findPendingDisputes(db, { now }),

    /** Claims up to `limit` pending status checks of a merchant at an acquirer account, and schedules the next ones. */
    claimPending({ acquirer, mid }: PendingMerchant, limit: number, now: Date): Promise<PendingDispute[]> {
      const nextAt = new Date(now.getTime() + CHECK_PAUSE_MS)
      const openedAfter = new Date(now.getTime() - DISPUTE_DAYS * DAY_MS)
      return CLAIM(db, { acquirer, mid, limit, now, nextAt, openedAfter })
    },
  }
}

export type PendingDisputes = ReturnType<typeof createPendingDisputes>

const CLAIM = query<PendingDispute, PendingMerchant & { limit: number; now: Date; nextAt: Date; openedAfter: Date }>(`
  with due as materialized (
    select dispute_id
      from disputes
     where mid = :mid and acquirer = :acquirer and check_at <= :now
     order by check_at
     limit :limit
       for update skip locked
  )
  update disputes d
     set check_at = case when d.opened_at > :openedAfter then :nextAt::timestamptz end
    from due
   where d.mid = :mid and d.acquirer = :acquirer and d.dispute_id = due.dispute_id
  returning d.mid, d.acquirer, d.dispute_id, d.order_id`)
