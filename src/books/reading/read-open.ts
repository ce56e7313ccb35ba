import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import type { MerchantSnapshot } from './merchant.ts'

/**
 * An exception that no operator has resolved. `mid` is empty if the order is unknown. `amount` is in paise; null means
 * an unreadable notification.
 */
export type OpenException = {
  mid: string
  exceptionId: string
  kind: string
  orderId: string
  utr: string
  amount: Paise | null
  receivedAt: Date
}

/** Returns the open exceptions that were received on these days, or whose order was created on these days. */
export function openExceptions({ client, mid, known }: MerchantSnapshot, days: Days): Promise<OpenException[]> {
  const { begin, end } = boundsOf(days)
  const orders = { firstOrder: orderIdsBegin(begin), nextOrder: orderIdsBegin(end) }
  return OPEN_EXCEPTIONS(client, { mid, known, begin, end, ...orders })
}

type Requested = { mid: string; known: Date; begin: Date; end: Date; firstOrder: string; nextOrder: string }

const OPEN_EXCEPTIONS = query<OpenException, Requested>(`
  select mid, exception_id, kind, order_id, utr, case when kind <> 'unreadable' then amount_paise end as amount, received_at
    from payment_exceptions e
   where mid = :mid and received_at <= :known
     and (received_at >= :begin and received_at < :end or mid <> '' and order_id >= :firstOrder and order_id < :nextOrder)
     and not exists (
           select from payment_resolutions r
            where r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= :known)
   order by received_at, order_id, exception_id`)
