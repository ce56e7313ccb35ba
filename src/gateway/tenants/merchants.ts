import type { Queryable } from '../../platform/db/pool.ts'
import { LONGEST_EXPIRY_MINUTES } from '../payments/order-lifetime.ts'
import type { Brand } from './brand.ts'

export type Merchant = Brand & {
  mid: string
  name: string
  /** The UPI address that customers pay. */
  vpa: string
  /**
   * The payees that an acquirer's link may have: UPI addresses, or patterns such as `prefix*@handle`. An empty list
   * means that only `vpa` is allowed.
   */
  payees: readonly string[]
  /** Merchant category code, 4 digits. */
  mcc: string
  dynamicQr: 'link' | 'image'
  /** Name of an acquirer in acquirers/acquirers.ts, such as `setu`, or of an acquirer account, such as `setu:acme`. */
  acquirer: string
  /** The merchant's identifier at the acquirer; null if none is set. */
  acquirerMerchantId: string | null
  /** The account from which a link is requested if `acquirer` has certainly created no link. */
  fallbackAcquirer: string | null
  /** The merchant's identifier at the fallback acquirer; null if none is set. */
  fallbackAcquirerMerchantId: string | null
  /**
   * Format of amounts and telephone numbers in requests: `strict` means the format that the interface defines, and
   * `shop` also accepts the formats that store plugins send.
   */
  input: 'strict' | 'shop'
  /** Minutes in which an intent can be paid; null means the service's own setting. */
  expiryMinutes: number | null
  /** Largest `expiry_minutes` of a request. */
  maxExpiryMinutes: number
  /** Largest amount of an intent, in whole rupees. */
  maxAmount: number
  createdAt: Date
  disabledAt: Date | null
}

const COLUMNS: Readonly<Record<string, string>> = {
  maxAmount: 'max_amount_paise',
  colour: 'brand_colour',
  website: 'brand_website',
  support: 'brand_support',
  logo: 'brand_logo',
}

const columnOf = (field: string) => COLUMNS[field] ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The SQL columns of a `Merchant`, selected from `merchants m`. */
export const MERCHANT = `
  m.mid, m.name, m.vpa, m.payees, m.mcc, m.dynamic_qr as "dynamicQr", m.acquirer,
  m.acquirer_merchant_id as "acquirerMerchantId", m.fallback_acquirer as "fallbackAcquirer",
  m.fallback_acquirer_merchant_id as "fallbackAcquirerMerchantId", m.input, m.expiry_minutes as "expiryMinutes",
  m.max_expiry_minutes as "maxExpiryMinutes", m.max_amount_paise / 100 as "maxAmount", m.brand_colour as colour,
  m.brand_website as website, m.brand_support as support, m.brand_logo as logo, m.created_at as "createdAt",
  m.disabled_at as "disabledAt"`

/** Fields that the operator may change; an absent field stays unchanged. */
type MerchantChanges = {
  [K in keyof Omit<Merchant, 'mid' | 'createdAt' | 'disabledAt'>]?: Merchant[K] | undefined
}

/** The merchants. A merchant is disabled, never deleted, because its intents and settlements remain. */
export function createMerchants(db: Queryable) {
  /** Returns the merchant after the change; undefined if the mid is unknown. */
  async function change(mid: string, set: string, values: unknown[] = []): Promise<Merchant | undefined> {
    const { rows } = await db.query<Merchant>(`update merchants m set ${set} where m.mid = $1 returning ${MERCHANT}`, [
      mid,
      ...values,
    ])
    return rows[0]
  }

  return {
    /**
     * Stores a merchant. The defaults are the acquirer `direct` and the input setting `strict`. Returns undefined if
     * the mid is already used.
     */
    async add(
      merchant: MerchantChanges & Pick<Merchant, 'mid' | 'name' | 'vpa' | 'mcc' | 'dynamicQr'>,
      now: Date,
    ): Promise<Merchant | undefined> {
      const { columns, values } = given({ ...merchant, createdAt: now })
      const { rows } = await db.query<Merchant>(
        `insert into merchants as m (${columns.join(', ')})
         values (${columns.map((_, index) => `$${index + 1}`).join(', ')})
         on conflict (mid) do nothing
         returning ${MERCHANT}`,
        values,
      )
      return rows[0]
    },

    /** Returns the merchant; undefined if the mid is unknown. */
    async find(mid: string): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants m where m.mid = $1`, [mid])
      return rows[0]
    },

    /** Returns all merchants, including disabled merchants, oldest first. */
    async list(): Promise<Merchant[]> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants m order by m.created_at, m.mid`)
      return rows
    },

    /** Returns the names of merchants by MID. */
    async namesOf(mids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const { rows } = await db.query<Pick<Merchant, 'mid' | 'name'>>(
        'select mid, name from merchants where mid = any ($1)',
        [mids],
      )
      return new Map(rows.map(({ mid, name }) => [mid, name]))
    },

    /** Returns the merchant after the change; undefined if the mid is unknown. */
    update(mid: string, changes: MerchantChanges): Promise<Merchant | undefined> {
      const { columns, values } = given({ mid, ...changes })
      return change(mid, columns.map((column, index) => `${column} = $${index + 1}`).join(', '), values.slice(1))
    },

    /**
     * Returns the acquirers, including fallback acquirers, of merchants that are not disabled, in byte order, with the
     * minutes of the longest order that one of these merchants can have.
     */
    async acquirers(): Promise<{ acquirer: string; longestOrder: number }[]> {
      const { rows } = await db.query<{ acquirer: string; longestOrder: number }>(
        `select a.acquirer,
                max(greatest(coalesce(m.expiry_minutes, ${LONGEST_EXPIRY_MINUTES}), m.max_expiry_minutes)) as "longestOrder"
           from merchants m
          cross join unnest(array[m.acquirer, m.fallback_acquirer]) as a (acquirer)
          where m.disabled_at is null and a.acquirer is not null
          group by 1
          order by 1`,
      )
      return rows
    },

    /**
     * Prevents a merchant from accepting payments. A repeat does not change the stored time. Returns undefined if the
     * mid is unknown.
     */
    disable: (mid: string, now: Date) => change(mid, 'disabled_at = coalesce(m.disabled_at, $2)', [now]),

    /** Lets a merchant accept payments again. Returns undefined if the mid is unknown. */
    enable: (mid: string) => change(mid, 'disabled_at = null'),
  }
}

/** Returns the columns and values of the fields that are not undefined. */
function given(fields: Partial<Merchant> | MerchantChanges): { columns: string[]; values: unknown[] } {
  const inPaise = { ...fields, maxAmount: fields.maxAmount && fields.maxAmount * 100 }
  const entries = Object.entries(inPaise).filter(([, value]) => value !== undefined)
  return { columns: entries.map(([field]) => columnOf(field)), values: entries.map(([, value]) => value) }
}
