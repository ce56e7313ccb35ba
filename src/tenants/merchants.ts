import type { Queryable } from '../db/pool.ts'

export type Merchant = {
  mid: string
  name: string
  /** The UPI address that is paid. */
  vpa: string
  /** Merchant category code, 4 digits. */
  mcc: string
  dynamicQr: 'link' | 'image'
  /** Through whom the money comes: a name of acquirer/acquirers.ts. */
  acquirer: string
  /** Its own identifier of the merchant, where it has one. */
  acquirerMerchantId: string | null
  /** How its requests spell amounts and telephone numbers: to the letter of the interface, or as shops do. */
  input: 'strict' | 'shop'
  /** How long its intents can be paid; null for the service's own setting. */
  expiryMinutes: number | null
  createdAt: Date
  disabledAt: Date | null
}

export type MerchantFields = Pick<Merchant, 'name' | 'vpa' | 'mcc' | 'dynamicQr'> & {
  acquirer?: string | undefined
  acquirerMerchantId?: string | undefined
  input?: Merchant['input'] | undefined
  expiryMinutes?: number | null | undefined
}

/** A field that is absent is not changed. */
export type MerchantChanges = { [K in keyof MerchantFields]?: MerchantFields[K] | undefined }

const MERCHANT = `
  mid, name, vpa, mcc, dynamic_qr as "dynamicQr", acquirer, acquirer_merchant_id as "acquirerMerchantId",
  input, expiry_minutes as "expiryMinutes", created_at as "createdAt", disabled_at as "disabledAt"`

/** The merchants. No merchant is ever deleted: its intents and settlements stay, so it is disabled. */
export function createMerchants(db: Queryable) {
  return {
    /**
     * Stores a merchant. Its acquirer is `direct` and its input `strict` where nothing else is said. Undefined when the
     * mid is taken.
     */
    async add(merchant: MerchantFields & { mid: string }, now: Date): Promise<Merchant | undefined> {
      const { mid, name, vpa, mcc, dynamicQr, acquirer, acquirerMerchantId, input, expiryMinutes } = merchant
      const { rows } = await db.query<Merchant>(
        `insert into merchants
           (mid, name, vpa, mcc, dynamic_qr, acquirer, acquirer_merchant_id, input, expiry_minutes, created_at)
         values ($1, $2, $3, $4, $5, coalesce($6, 'direct'), $7, coalesce($8, 'strict'), $9, $10)
         on conflict (mid) do nothing
         returning ${MERCHANT}`,
        [mid, name, vpa, mcc, dynamicQr, acquirer, acquirerMerchantId, input, expiryMinutes, now],
      )
      return rows[0]
    },

    /** Undefined when the mid is unknown. */
    async find(mid: string): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants where mid = $1`, [mid])
      return rows[0]
    },

    /** Every merchant, disabled ones too, oldest first. */
    async list(): Promise<Merchant[]> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants order by created_at, mid`)
      return rows
    },

    /** The merchant after the change; undefined when the mid is unknown. */
    async update(mid: string, changes: MerchantChanges): Promise<Merchant | undefined> {
      const { name, vpa, mcc, dynamicQr, acquirer, acquirerMerchantId, input, expiryMinutes } = changes
      const { rows } = await db.query<Merchant>(
        `update merchants
            set name = coalesce($2, name), vpa = coalesce($3, vpa), mcc = coalesce($4, mcc),
                dynamic_qr = coalesce($5, dynamic_qr), acquirer = coalesce($6, acquirer),
                acquirer_merchant_id = coalesce($7, acquirer_merchant_id), input = coalesce($8, input),
                expiry_minutes = case when $9 then $10 else expiry_minutes end
          where mid = $1
         returning ${MERCHANT}`,
        [
          ...[mid, name, vpa, mcc, dynamicQr, acquirer, acquirerMerchantId, input],
          ...[expiryMinutes !== undefined, expiryMinutes],
        ],
      )
      return rows[0]
    },

    /** The acquirers of the merchants that are not disabled, in byte order. */
    async acquirers(): Promise<string[]> {
      const { rows } = await db.query<{ acquirer: string }>(
        'select distinct acquirer from merchants where disabled_at is null order by 1',
      )
      return rows.map(({ acquirer }) => acquirer)
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
