import type { Queryable } from '../db/pool.ts'
import type { Intent } from './intent.ts'

/** What the QR needs to know of an intent, found by our orderId alone. */
export type OpenPayment = Pick<Intent, 'orderId' | 'amount' | 'note' | 'payee' | 'createdAt' | 'expiresAt'> & {
  merchantDisabled: boolean
}

/** The intents ever made. A constraint guards order_ids: of any number of simultaneous repeats exactly one is stored. */
export function createIntents(db: Queryable) {
  return {
    /** Answers the stored intent, or undefined when its merchantOrderId is taken within its merchant. */
    async insert(intent: Intent): Promise<Intent | undefined> {
      const { rowCount } = await db.query(
        `insert into payment_intents
           (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
            payee_vpa, payee_name, payee_mcc, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         on conflict on constraint payment_intents_merchant_order_id_key do nothing
         returning 1`,
        [
          intent.mid,
          intent.orderId,
          intent.merchantOrderId,
          intent.amount,
          intent.redirectUrl,
          intent.note,
          intent.customer.name,
          intent.customer.email,
          intent.customer.mobile,
          intent.payee.vpa,
          intent.payee.name,
          intent.payee.mcc,
          intent.createdAt,
          intent.expiresAt,
        ],
      )
      return rowCount === 1 ? intent : undefined
    },

    /** The intent of our unguessable orderId, whoever's it is; undefined when there is none. */
    async findOpenPayment(orderId: string): Promise<OpenPayment | undefined> {
      const { rows } = await db.query<OpenPaymentRow>(
        `select i.order_id, i.amount, i.note, i.payee_vpa, i.payee_name, i.payee_mcc, i.created_at, i.expires_at,
                m.disabled_at is not null as merchant_disabled
           from payment_intents i
           join merchants m on m.mid = i.mid
          where i.order_id = $1`,
        [orderId],
      )
      const [row] = rows
      return row && toOpenPayment(row)
    },
  }
}

export type Intents = ReturnType<typeof createIntents>

type OpenPaymentRow = {
  order_id: string
  amount: number
  note: string
  payee_vpa: string
  payee_name: string
  payee_mcc: string
  created_at: Date
  expires_at: Date
  merchant_disabled: boolean
}

function toOpenPayment(row: OpenPaymentRow): OpenPayment {
  return {
    orderId: row.order_id,
    amount: row.amount,
    note: row.note,
    payee: { vpa: row.payee_vpa, name: row.payee_name, mcc: row.payee_mcc },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    merchantDisabled: row.merchant_disabled,
  }
}
