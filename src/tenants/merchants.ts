import type { Queryable } from '../db/pool.ts'

export type Merchant = {
  mid: string
  name: string
  /** The UPI address that is paid. */
  vpa: string
  /** Payees that an acquirer's link may have: UPI addresses, or `prefix*@handle`. Without one it is `vpa`. */
  payees: readonly string[]
  /** Merchant category code, 4 digits. */
  mcc: string
  dynamicQr: 'link' | 'image'
  /** The acquirer through which the money comes: a name of acquirer/acquirers.ts. */
  acquirer: string
  /** The acquirer's own identifier of the merchant, if it has one. */
  acquirerMerchantId: string | null
  /** How its requests spell amounts and telephone numbers: to the letter of the interface, or as shops do. */
  input: 'strict' | 'shop'
  /** How long its intents can be paid; null for the service's own setting. */
  expiryMinutes: number | null
  /** Largest amount of an intent, in whole rupees. */
  maxAmount: number
  createdAt: Date
  disabledAt: Date | null
}

/** The column of a field: `dynamic_qr` of `dynamicQr`. */
const columnOf = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A `Merchant`, selected from `merchants m`. */
export const MERCHANT = `
  m.mid, m.name, m.vpa, m.payees, m.mcc, m.dynamic_qr as "dynamicQr", m.acquirer,
  m.acquirer_merchant_id as "acquirerMerchantId", m.input, m.expiry_minutes as "expiryMinutes",
  m.max_amount as "maxAmount", m.created_at as "createdAt", m.disabled_at as "disabledAt"`

/** What the operator may change. A field that is absent is not changed. */
type MerchantChanges = {
  [K in keyof Omit<Merchant, 'mid' | 'createdAt' | 'disabledAt'>]?: Merchant[K] | undefined
}

/** The merchants. No merchant is ever deleted: its intents and settlements stay, so it is disabled. */
export function createMerchants(db: Queryable) {
  /** The merchant after the change; undefined when the mid is unknown. */
  async function change(mid: string, set: string, values: unknown[] = []): Promise<Merchant | undefined> {
    const { rows } = await db.query<Merchant>(`update merchants m set ${set} where m.mid = $1 returning ${MERCHANT}`, [
      mid,
      ...values,
    ])
    return rows[0]
  }

  return {
    /**
     * Stores a merchant. Its acquirer is `direct` and its input `strict` where nothing else is said. Undefined when the
     * mid is taken.
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

    /** Finds a merchant; undefined when the mid is unknown. */
    async find(mid: string): Promise<Merchant | undefined> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants m where m.mid = $1`, [mid])
      return rows[0]
    },

    /** Every merchant, disabled ones too, oldest first. */
    async list(): Promise<Merchant[]> {
      const { rows } = await db.query<Merchant>(`select ${MERCHANT} from merchants m order by m.created_at, m.mid`)
      return rows
    },

    /** The merchant after the change; undefined when the mid is unknown. */
    update(mid: string, changes: MerchantChanges): Promise<Merchant | undefined> {
      const { columns, values } = given({ mid, ...changes })
      return change(mid, columns.map((column, index) => `${column} = $${index + 1}`).join(', '), values.slice(1))
    },

    /** The acquirers of the merchants that are not disabled, in byte order. */
    async acquirers(): Promise<string[]> {
      const { rows } = await db.query<{ acquirer: string }>(
        'select distinct acquirer from merchants where disabled_at is null order by 1',
      )
      return rows.map(({ acquirer }) => acquirer)
    },

    /** Stops a merchant taking payments. A repeat keeps the first moment. Undefined when the mid is unknown. */
    disable: (mid: string, now: Date) => change(mid, 'disabled_at = coalesce(m.disabled_at, $2)', [now]),

    /** Lets a merchant take payments again. Undefined when the mid is unknown. */
    enable: (mid: string) => change(mid, 'disabled_at = null'),
  }
}

/** The columns of the fields that are there, with their values. */
function given(fields: Partial<Merchant> | MerchantChanges): { columns: string[]; values: unknown[] } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return { columns: entries.map(([field]) => columnOf(field)), values: entries.map(([, value]) => value) }
}
