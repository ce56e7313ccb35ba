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

/** A `Brand` as JSON in SQL, from `merchants m`. */
export const BRAND = `
  json_build_object('colour', m.brand_colour, 'website', m.brand_website, 'support', m.brand_support,
                    'logo', m.brand_logo)`
