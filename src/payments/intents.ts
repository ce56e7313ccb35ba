import type { Queryable } from '../db/pool.ts'
import { LIMITS } from '../limits.ts'
import { deliveriesOf } from './events.ts'
import { batchInserts } from './insert-batches.ts'
import { type Intent, type IssuedLink, isOrderId } from './intent.ts'
import { EXPIRY_GRACE_MINUTES, givenUpUntil, OPEN_STATUSES, type Status } from './outcome.ts'

/** The stored intent, or that of the earlier request with the same Idempotency-Key, or why there is none. */
export type InsertOutcome =
  | { intent: Intent }
  | { refused: 'order id exists' | 'idempotency key was used for another request' }

/** What pay page and QR need to know of an intent. */
export type Checkout = Pick<
  Intent,
  | 'mid'
  | 'orderId'
  | 'merchantOrderId'
  | 'amount'
  | 'note'
  | 'payee'
  | 'redirectUrl'
  | 'createdAt'
  | 'expiresAt'
  | 'issued'
> & { status: Status; utr: string | null; merchantDisabled: boolean }

/** What an open page is told of its payment; `utr` is there once it is paid. */
export type PaymentState = Pick<Checkout, 'status' | 'utr' | 'expiresAt'>

export type PaymentStatus = Pick<Intent, 'amount' | 'expiresAt'> & { status: Status; utr: string | null }

/** The intents ever made. A constraint guards order_ids: of any number of simultaneous repeats exactly one is stored. */
export function createIntents(db: Queryable, onBatch: (rows: number, stored: number) => void, limits = LIMITS.inserts) {
  const store = batchInserts(db, onBatch, limits)

  /** Sends a query only if the merchantOrderId has the form of our orderIds. */
  async function isOrderIdOfAnother({ mid, orderId, merchantOrderId }: Intent): Promise<boolean> {
    if (merchantOrderId === orderId || !isOrderId(merchantOrderId)) return false
    const { rowCount } = await db.query('select from payment_intents where mid = $1 and order_id = $2', [
      mid,
      merchantOrderId,
    ])
    return rowCount === 1
  }

  /** The intent of the earlier request with the same Idempotency-Key, or why a new one is refused; undefined if neither. */
  async function findEarlier({
    mid,
    merchantOrderId,
    idempotency,
    ...intent
  }: Intent): Promise<InsertOutcome | undefined> {
    const { rows } = await db.query<IntentRow & { idempotency_key: string | null; idempotency_fingerprint: Buffer }>(
      `select ${INTENT}, i.idempotency_key, i.idempotency_fingerprint
         from payment_intents i
         left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
        where i.mid = $1 and (i.merchant_order_id = $2 or i.order_id = $2 or i.idempotency_key = $3)`,
      [mid, merchantOrderId, idempotency?.key],
    )
    const repeated = rows.find((row) => idempotency !== undefined && row.idempotency_key === idempotency.key)
    if (repeated === undefined || idempotency === undefined) {
      return rows.length > 0 ? { refused: 'order id exists' } : undefined
    }
    if (!repeated.idempotency_fingerprint.equals(idempotency.fingerprint)) {
      return { refused: 'idempotency key was used for another request' }
    }
    return { intent: { ...intent, mid, idempotency, ...toStored(repeated) } }
  }

  return {
    findEarlier,

    /**
     * Stores an intent, unless its merchantOrderId or its Idempotency-Key is taken within its merchant. An orderId of ours
     * counts as taken too: findStatus could not tell the two orders apart. That check needs no constraint, because nobody
     * can send an orderId before it is stored, and a new orderId has 80 random bits.
     */
    async insert(intent: Intent): Promise<InsertOutcome> {
      if (!(await isOrderIdOfAnother(intent)) && (await store(intent))) return { intent }
      if (intent.idempotency === undefined) return { refused: 'order id exists' }
      // `on conflict` does not say which constraint refused the row, and that statement may not see the row in its way:
      // ask again.
      return (await findEarlier(intent)) ?? { refused: 'order id exists' }
    },

    /** The intent with this orderId, of any merchant: who knows an orderId got it from us. Undefined when there is none. */
    async findCheckout(orderId: string): Promise<Checkout | undefined> {
      const { rows } = await db.query<
        IntentRow & { mid: string; status: Status; utr: string | null; merchant_disabled: boolean }
      >(
        `select ${INTENT}, i.mid, i.status, i.utr, m.disabled_at is not null as merchant_disabled
           from payment_intents i
           join merchants m on m.mid = i.mid
           left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
          where i.order_id = $1`,
        [orderId],
      )
      const [row] = rows
      if (row === undefined) return undefined
      const { mid, status, utr, merchant_disabled: merchantDisabled } = row
      return { ...toStored(row), mid, status, utr, merchantDisabled }
    },

    /** The states of many intents in one look-up, by orderId; unknown ones are left out. */
    async findStates(orderIds: string[]): Promise<Map<string, PaymentState>> {
      const { rows } = await db.query<PaymentState & { orderId: string }>(
        `select order_id as "orderId", status, utr, expires_at as "expiresAt"
           from payment_intents
          where order_id = any ($1)`,
        [orderIds],
      )
      return new Map(rows.map(({ orderId, ...state }) => [orderId, state]))
    },

    /** Ends the time to pay at `moment`, unless it ends before. For sandboxes only. */
    async expire(orderId: string, moment: Date): Promise<void> {
      await db.query(
        `with ended as (
           update payment_intents set expires_at = least(expires_at, $2) where order_id = $1
           returning mid, order_id, expires_at
         )
         update webhook_expiries w
            set final_at = e.expires_at + $3 * interval '1 minute'
           from ended e
          where w.mid = e.mid and w.order_id = e.order_id`,
        [orderId, moment, EXPIRY_GRACE_MINUTES],
      )
    },

    /**
     * Cancels an intent, named as for findStatus, unless it is paid or given up. Returns what has become of it then;
     * undefined when unknown. `toClose` is an acquirer's link that this call has made useless.
     */
    async cancel(
      mid: string,
      orderId: string,
      now: Date,
    ): Promise<(PaymentStatus & { toClose: IssuedLink | undefined }) | undefined> {
      const { rows } = await db.query<IssuedRow>(
        `with cancelled as (
           update payment_intents
              set status = 'CANCELLED', event_sequence = event_sequence + 1
            where mid = $1
              and order_id = (select order_id
                                from payment_intents
                               where mid = $1 and (merchant_order_id = $2 or order_id = $2)
                               order by merchant_order_id = $2 desc
                               limit 1)
              and status in ${OPEN_STATUSES}
              and expires_at > $3
           returning mid, order_id, event_sequence, 'FAIL' as txn_status, null as utr, $4::timestamptz as occurred_at
         ), told as (${deliveriesOf('cancelled', 'payment.cancelled')}
         ), change as (
           insert into payment_changes (mid, order_id, status, reason, changed_at)
           select mid, order_id, 'CANCELLED', 'merchant', $4 from cancelled
         )
         select ${ISSUED}
           from cancelled c
           join acquirer_intents a on a.mid = c.mid and a.order_id = c.order_id`,
        [mid, orderId, givenUpUntil(now), now],
      )
      // In a second statement: a payment may have been stored first, and then the update has changed nothing.
      const payment = await this.findStatus(mid, orderId)
      return payment && { ...payment, toClose: rows[0] && toIssued(rows[0]) }
    },

    /** What became of an intent that the merchant names by its own order_id, else by ours; undefined when unknown. */
    async findStatus(mid: string, orderId: string): Promise<PaymentStatus | undefined> {
      const { rows } = await db.query<PaymentStatus>(
        `select amount * 100 + paise as amount, status, utr, expires_at as "expiresAt"
           from payment_intents
          where mid = $1 and (merchant_order_id = $2 or order_id = $2)
          order by merchant_order_id = $2 desc
          limit 1`,
        [mid, orderId],
      )
      return rows[0]
    },
  }
}

export type Intents = ReturnType<typeof createIntents>

const ISSUED = 'a.acquirer, a.acquirer_merchant_id, a.acquirer_id, a.reference, a.link'

const INTENT = `
  i.order_id, i.merchant_order_id, i.amount * 100 + i.paise as amount, i.redirect_url, i.note,
  i.payee_vpa, i.payee_name, i.payee_mcc, i.created_at, i.expires_at, ${ISSUED}`

type IssuedRow = {
  acquirer: string
  acquirer_merchant_id: string
  acquirer_id: string
  reference: string
  link: string
}

type IntentRow = (IssuedRow | { acquirer: null }) & {
  order_id: string
  merchant_order_id: string
  amount: number
  redirect_url: string
  note: string
  payee_vpa: string
  payee_name: string
  payee_mcc: string
  created_at: Date
  expires_at: Date
}

function toStored(row: IntentRow) {
  return {
    orderId: row.order_id,
    merchantOrderId: row.merchant_order_id,
    amount: row.amount,
    redirectUrl: row.redirect_url,
    note: row.note,
    payee: { vpa: row.payee_vpa, name: row.payee_name, mcc: row.payee_mcc },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    issued: row.acquirer === null ? undefined : toIssued(row),
  }
}

function toIssued({ acquirer, acquirer_merchant_id, acquirer_id, reference, link }: IssuedRow): IssuedLink {
  return { acquirer, merchantId: acquirer_merchant_id, id: acquirer_id, reference, link }
}
