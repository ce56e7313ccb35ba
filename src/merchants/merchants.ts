import type { Queryable } from '../db/pool.ts'

export type Merchant = {
  mid: string
  name: string
  /** The UPI address that is paid. */
  vpa: string
  /** Merchant category code, 4 digits. */
  mcc: string
  dynamicQr: 'link' | 'image'
  createdAt: Date
  disabledAt: Date | null
}

export type MerchantFields = Pick<Merchant, 'name' | 'vpa' | 'mcc' | 'dynamicQr'>

/** A field that is absent is not changed. */
export type MerchantChanges = { [K in keyof MerchantFields]?: MerchantFields[K] | undefined }

const MERCHANT = `
  mid, name, vpa, mcc, dynamic_qr as "dynamicQr", created_at as "createdAt", disabled_at as "disabledAt"`

/** The merchants. No merchant is ever deleted: its intents and settlements stay, so it is disabled. */
export function createMerchants(db: Queryable) {
  return {
    /** The stored merchant; undefined when the mid is taken. */
    async add(merchant: MerchantFields & { mid: string }, now: Date): Promise<Merchant | undefined> {
      const { mid, name, vpa, mcc, dynamicQr } = merchant
      const { rows } = await db.query<Merchant>(
        `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (mid) do nothing
         returning ${MERCHANT}`,
        [mid, name, vpa, mcc, dynamicQr, now],
      )
      return rows[0]
    },

    /** Every merchant, disabled ones too, oldest first. */
    async list(): Promise<Merchant[]> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants order by created_at, mid`)
      return rows
    },

    /** The merchant after the change; undefined when the mid is unknown. */
    async update(mid: string, { name, vpa, mcc, dynamicQr }: MerchantChanges): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(
        `update merchants
            set name = coalesce($2, name), vpa = coalesce($3, vpa), mcc = coalesce($4, mcc),
                dynamic_qr = coalesce($5, dynamic_qr)
          where mid = $1
         returning ${MERCHANT}`,
        [mid, name, vpa, mcc, dynamicQr],
      )
      return rows[0]
    },

    /** Stops a merchant taking payments. A repeat keeps the first moment. Undefined when the mid is unknown. */
    async disable(mid: string, now: Date): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(
        `update merchants set disabled_at = coalesce(disabled_at, $2) where mid = $1 returning ${MERCHANT}`,
        [mid, now],
      )
      return rows[0]
    },

    /** Lets a merchant take payments again. Undefined when the mid is unknown. */
    async enable(mid: string): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(
        `update merchants set disabled_at = null where mid = $1 returning ${MERCHANT}`,
        [mid],
      )
      return rows[0]
    },
  }
}

export type Merchants = ReturnType<typeof createMerchants>
