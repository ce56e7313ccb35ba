import { LIMITS, type Limits } from '../../limits.ts'
import { inTransaction, type Pools, type Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { Brand } from '../tenants/merchants.ts'
import type { FailureReason } from './failure-reasons.ts'
import { createStatusLookUps, findPaymentStatus, type PaymentStatus } from './find-payment-status.ts'
import { createInsert } from './insert-intents.ts'
import { type Intent, isOrderId, type PaymentLink } from './intent.ts'
import { writeDeliveries } from './outbox.ts'
import { abandonedUntil, EXPIRY_GRACE_MINUTES, isOver, OPEN_STATUSES, type Status } from './outcome.ts'
import { PAY_PAGE_FACTS, type PayPageFacts } from './pay-page-facts.ts'
import { lockOrder } from './reported-orders.ts'
import {
  FAILURE_REPORTED,
  failureReason,
  type ReportedStatus,
  saveReportedStatus,
  writtenExpiries,
} from './reported-status.ts'
import { endUnreadable } from './unreadable.ts'

/**
 * The stored intent, the intent of the earlier request with the same Idempotency-Key, or the reason for the rejection.
 */
export type InsertOutcome =
  | { intent: Intent }
  | { rejected: 'order id exists' | 'idempotency key was used for another request' }

export type Checkout = StoredIntent & {
  status: Status
  utr: string | null
  /** Whether the acquirer's last status response was unreadable. The order then stays open. */
  isUnreadable: boolean
  /** Why the last attempt failed; null unless the order's last report is about a failed attempt. */
  failureReason: FailureReason | null
  /** Whether the whole payment was refunded. */
  refunded: boolean
  merchantDisabled: boolean
  brand: Brand
  /** When the order was paid, by the bank's time if it is known; null until the order is paid. */
  paidAt: Date | null
  /** The bank's reference of the payment, if `utr` is the acquirer's identifier and the reference is known. */
  bankReference: string | null
} & PayPageFacts

/** A payment's state for its open pay page. `utr` is null until the order is paid. */
export type PaymentState = Pick<
  Checkout,
  'status' | 'utr' | 'expiresAt' | 'isUnreadable' | 'failureReason' | 'merchantDisabled' | keyof PayPageFacts
>

export function createIntents(
  { creates, requests, pages }: Pick<Pools, 'creates' | 'requests' | 'pages'>,
  onBatch: (rows: number, stored: number) => void,
  { inserts }: Pick<Limits, 'inserts'> = LIMITS,
) {
  const store = createInsert(creates, onBatch, inserts)

  /**
   * Returns the intent of the earlier request with this Idempotency-Key, or the reason for rejecting the request;
   * undefined if neither exists.
   */
  async function findEarlier(intent: Intent): Promise<InsertOutcome | undefined> {
    const { mid, merchantOrderId, idempotency } = intent
    const earlier = await FIND_EARLIER(requests, { mid, merchantOrderId, key: idempotency?.key })
    const repeated = earlier.find(({ key }) => idempotency !== undefined && key === idempotency.key)
    if (!repeated || !idempotency) return earlier.length > 0 ? { rejected: 'order id exists' } : undefined
    const { key: _, fingerprint, ...stored } = repeated
    if (!fingerprint.equals(idempotency.fingerprint)) {
      return { rejected: 'idempotency key was used for another request' }
    }
    return { intent: { ...intent, ...stored } }
  }

  return {
    findEarlier,

    /**
     * Stores an intent, unless the merchant has used its merchantOrderId or Idempotency-Key before. A merchantOrderId
     * that equals an orderId of the merchant is treated as used, because findStatus could not distinguish the two
     * orders. This rule needs no constraint, because no merchant can guess an orderId before the order is stored.
     */
    async insert(intent: Intent): Promise<InsertOutcome> {
      const { orderId, merchantOrderId } = intent
      const isOurs = merchantOrderId !== orderId && isOrderId(merchantOrderId)
      const earlier = isOurs ? await findEarlier(intent) : undefined
      if (earlier) return earlier
      if (await store(intent)) return { intent }
      if (intent.idempotency === undefined) return { rejected: 'order id exists' }
      // A second query finds the reason, because `on conflict` does not name the constraint that rejected the row, and
      // the statement may not see the conflicting row.
      return (await findEarlier(intent)) ?? { rejected: 'order id exists' }
    },

    /** Whether this intent itself is stored, instead of another intent with the same merchantOrderId. */
    isStored: async (intent: Intent): Promise<boolean> => (await FIND(requests, intent)).length === 1,

    /** Finds an intent of any merchant. No key is checked, because an orderId cannot be guessed. */
    findCheckout: async (orderId: string): Promise<Checkout | undefined> =>
      (await FIND_CHECKOUT(pages, { orderId }))[0],

    /** Finds the states of payments by their orderIds. The result omits unknown orderIds. */
    async findStates(orderIds: readonly string[]): Promise<Map<string, PaymentState>> {
      const rows = await FIND_STATES(pages, { orderIds })
      return new Map(rows.map(({ orderId, ...state }) => [orderId, state]))
    },

    /** Moves an intent's expiry to `moment`, unless it is earlier. Only sandboxes call this function. */
    expire: ({ mid, orderId }: Pick<Intent, 'mid' | 'orderId'>, moment: Date) =>
      EXPIRE(pages, {
        mid,
        orderId,
        moment,
        finalAt: new Date(moment.getTime() + EXPIRY_GRACE_MINUTES * 60_000),
      }),

    /**
     * Cancels an intent, identified as for findStatus, unless it is paid or has its final status. Returns the
     * intent's status; undefined if the intent is unknown. `toClose` is the acquirer's link if this call has cancelled
     * the intent. pool.ts documents `claim` (type `Ending`).
     */
    async cancel(
      mid: string,
      merchantOrderId: string,
      now: Date,
      claim: () => void,
    ): Promise<(PaymentStatus & { toClose?: PaymentLink | undefined }) | undefined> {
      // The first query takes no lock, so that repeats, which change nothing, do not wait for each other.
      const found = await findPaymentStatus(requests, mid, merchantOrderId)
      if (!found || isOver(found, now)) return found
      return inTransaction(
        requests,
        async (client) => {
          const closed = await close(client, mid, found.orderId, now)
          if (closed)
            return { ...found, status: 'CANCELLED' as const, failureReason: null, failureReported: true, ...closed }
          // The intent was not cancelled, because a payment was stored after the first query.
          return findPaymentStatus(client, mid, merchantOrderId)
        },
        {
          claim,
          isStored: async (payment) =>
            (await findPaymentStatus(requests, mid, merchantOrderId))?.status === payment?.status,
        },
      )
    },

    findStatus: (mid: string, orderId: string) => findPaymentStatus(requests, mid, orderId),

    /** Does the same as findStatus, but concurrent calls share look-ups. */
    findSharedStatus: createStatusLookUps(requests),

    saveReportedStatus: (reported: ReportedStatus, now: Date) => saveReportedStatus(requests, reported, now),
  }
}

/**
 * Cancels an order. Returns undefined if the order was already paid or final, or if its final status was reported to
 * the merchant before the order was locked. `toClose` is the acquirer's link, if the order has one.
 */
async function close(
  client: Queryable,
  mid: string,
  orderId: string,
  now: Date,
): Promise<{ toClose: PaymentLink | undefined } | undefined> {
  // The update is a second statement, so that it sees a payment.expired event that was written while this
  // transaction waited for the order's lock.
  await lockOrder(client, { mid, orderId })
  const [cancelled] = await CANCEL(client, { mid, orderId, now, abandonedUntil: abandonedUntil(now) })
  if (cancelled === undefined) return undefined
  await endUnreadable(client, { mid, orderId }, { by: 'merchant', now })
  await writeDeliveries(client, 'payment.cancelled', mid, [
    { orderId, ...cancelled, txnStatus: 'FAIL', occurredAt: now },
  ])
  const [link] = await FIND_LINK(client, { mid, orderId })
  return { toClose: link?.paymentLink }
}

export type Intents = ReturnType<typeof createIntents>

type StoredIntent = Omit<Intent, 'customer' | 'idempotency'>

const PAYMENT_LINK = `
  json_build_object('acquirer', a.acquirer, 'merchantId', a.acquirer_merchant_id, 'id', a.acquirer_order_id,
                    'reference', a.reference, 'link', a.link)`

const INTENT = `
  i.mid, i.order_id, i.merchant_order_id, i.amount_paise as amount, i.redirect_url, i.note, i.created_at, i.expires_at,
  json_build_object('vpa', i.payee_vpa, 'name', i.payee_name, 'mcc', i.payee_mcc) as payee,
  case when a.order_id is not null then ${PAYMENT_LINK} end as payment_link`

type Named = { mid: string; orderId: string }

const FIND = query<object, Named>('select from payment_intents where mid = :mid and order_id = :orderId')

const FIND_EARLIER = plannedQuery<
  StoredIntent & { key: string | null; fingerprint: Buffer },
  { mid: string; merchantOrderId: string; key: string | undefined }
>(`
  select ${INTENT}, i.idempotency_key as key, i.idempotency_fingerprint as fingerprint
    from payment_intents i
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where i.mid = :mid
     and (i.merchant_order_id = :merchantOrderId or i.order_id = :merchantOrderId or i.idempotency_key = :key)`)

const FIND_LINK = query<{ paymentLink: PaymentLink }, Named>(
  `select ${PAYMENT_LINK} as payment_link from acquirer_intents a where a.mid = :mid and a.order_id = :orderId`,
)

const EXPIRE = query<object, Named & { moment: Date; finalAt: Date }>(`
  with ended as (
    update payment_intents set expires_at = least(expires_at, :moment) where mid = :mid and order_id = :orderId
  )
  update webhook_expiries set final_at = least(final_at, :finalAt) where mid = :mid and order_id = :orderId`)

const CANCEL = query<{ sequence: number }, Named & { now: Date; abandonedUntil: Date }>(`
  update payment_intents i
     set status = 'CANCELLED', cancelled_at = :now, event_sequence = event_sequence + 1
   where mid = :mid and order_id = :orderId and status in ${OPEN_STATUSES}
     and (expires_at > :abandonedUntil or unreadable_at is not null)
     and not ${FAILURE_REPORTED} and not exists (${writtenExpiries(':mid', ':orderId')})
  returning event_sequence as sequence`)

/** SQL columns of the order `i` of the merchant `m` that both the pay page and its updates show. */
const STATE = `
  i.status, i.utr, i.unreadable_at is not null as is_unreadable, ${failureReason()} as failure_reason,
  m.disabled_at is not null as merchant_disabled, ${PAY_PAGE_FACTS}`

const FIND_CHECKOUT = query<Checkout, { orderId: string }>(`
  select ${INTENT}, ${STATE},
         json_build_object('colour', m.brand_colour, 'website', m.brand_website, 'support', m.brand_support,
                           'logo', m.brand_logo) as brand,
         i.utr is not null and i.amount_paise <= (
           select coalesce(sum(r.amount_paise), 0)
             from current_refunds r
            where r.mid = i.mid and r.order_id = i.order_id and r.utr = i.utr
              and r.status = 'SUCCESS') as refunded,
         coalesce(p.paid_at, p.received_at) as paid_at, p.bank_reference
    from payment_intents i
    join merchants m on m.mid = i.mid
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
    left join payments p on p.mid = i.mid and p.utr = i.utr
   where i.order_id = :orderId`)

const FIND_STATES = query<PaymentState & { orderId: string }, { orderIds: readonly string[] }>(`
  select i.order_id, i.expires_at, ${STATE}
    from payment_intents i
    join merchants m on m.mid = i.mid
   where i.order_id = any (:orderIds)`)
