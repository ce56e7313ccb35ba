import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { LONGEST_EXPIRY_MINUTES } from '../payments/order-lifetime.ts'

/** A merchant's brand on its pay pages. Each part is null until the operator sets it. */
export type Brand = {
  /** `#rrggbb` in lower case, with a contrast of at least 3:1 against white. */
  colour: string | null
  /** An https URL. */
  website: string | null
  /** An e-mail address or a telephone number. */
  support: string | null
  /** SHA-256 of the stored PNG, 64 hex digits. */
  logo: string | null
}

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
  m.mid, m.name, m.vpa, m.payees, m.mcc, m.dynamic_qr, m.acquirer, m.acquirer_merchant_id, m.fallback_acquirer,
  m.fallback_acquirer_merchant_id, m.input, m.expiry_minutes, m.max_expiry_minutes, m.max_amount_paise / 100 as max_amount,
  m.brand_colour as colour, m.brand_website as website, m.brand_support as support, m.brand_logo as logo, m.created_at,
  m.disabled_at`

/** Fields that the operator may change; an absent field stays unchanged. */
type MerchantChanges = {
  [K in keyof Omit<Merchant, 'mid' | 'createdAt' | 'disabledAt'>]?: Merchant[K] | undefined
}

const FIND = query<Merchant, { mid: string }>(`select ${MERCHANT} from merchants m where m.mid = :mid`)

const LIST = query<Merchant, object>(`select ${MERCHANT} from merchants m order by m.created_at, m.mid`)

const NAMES = plannedQuery<Pick<Merchant, 'mid' | 'name'>, { mids: readonly string[] }>(
  'select mid, name from merchants where mid = any (:mids)',
)

const ACQUIRERS = query<{ acquirer: string; longestOrder: number }, object>(`
  select a.acquirer,
         max(greatest(coalesce(m.expiry_minutes, ${LONGEST_EXPIRY_MINUTES}), m.max_expiry_minutes)) as longest_order
    from merchants m
   cross join unnest(array[m.acquirer, m.fallback_acquirer]) as a (acquirer)
   where m.disabled_at is null and a.acquirer is not null
   group by 1
   order by 1`)

/** The merchants. A merchant is disabled, never deleted, because its intents and settlements remain. */
export function createMerchants(db: Queryable) {
  /** Returns the merchant after the change; undefined if the mid is unknown. */
  async function change(mid: string, set: string, values: object = {}): Promise<Merchant | undefined> {
    const update = plannedQuery<Merchant, object>(
      `update merchants m set ${set} where m.mid = :mid returning ${MERCHANT}`,
    )
    return (await update(db, { ...values, mid }))[0]
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
      const { fields, values } = given({ ...merchant, createdAt: now })
      const insert = plannedQuery<Merchant, object>(`
        insert into merchants as m (${fields.map(columnOf)})
        values (${fields.map((field) => `:${field}`)})
            on conflict (mid) do nothing
        returning ${MERCHANT}`)
      return (await insert(db, values))[0]
    },

    /** Returns the merchant; undefined if the mid is unknown. */
    find: async (mid: string): Promise<Merchant | undefined> => (await FIND(db, { mid }))[0],

    /** Returns all merchants, including disabled merchants, oldest first. */
    list: () => LIST(db, {}),

    /** Returns the names of merchants by MID. */
    namesOf: async (mids: readonly string[]): Promise<ReadonlyMap<string, string>> =>
      new Map((await NAMES(db, { mids })).map(({ mid, name }) => [mid, name])),

    /** Returns the merchant after the change; undefined if the mid is unknown. */
    update(mid: string, changes: MerchantChanges): Promise<Merchant | undefined> {
      const { fields, values } = given(changes)
      return change(mid, fields.map((field) => `${columnOf(field)} = :${field}`).join(), values)
    },

    /**
     * Returns the acquirers, including fallback acquirers, of merchants that are not disabled, in byte order, with the
     * minutes of the longest order that one of these merchants can have.
     */
    acquirers: () => ACQUIRERS(db, {}),

    /**
     * Prevents a merchant from accepting payments. A repeat does not change the stored time. Returns undefined if the
     * mid is unknown.
     */
    disable: (mid: string, now: Date) => change(mid, 'disabled_at = coalesce(m.disabled_at, :now)', { now }),

    /** Lets a merchant accept payments again. Returns undefined if the mid is unknown. */
    enable: (mid: string) => change(mid, 'disabled_at = null'),
  }
}

/** Returns the names of the fields that are not undefined, and the values to store. */
function given(changes: Partial<Merchant> | MerchantChanges): { fields: string[]; values: object } {
  const values = { ...changes, maxAmount: changes.maxAmount && changes.maxAmount * 100 }
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return { fields: given.map(([field]) => field), values }
}
