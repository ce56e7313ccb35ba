import { groupBy } from '../../books/ledger/match-deductions.ts'
import { newestOf } from '../../books/ledger/rate-of.ts'
import { type MerchantRate, readRates, saveRates } from '../../books/reports/fees.ts'
import type { DatabaseConfig } from '../../config.ts'
import { accountName, splitAccountName } from '../../gateway/acquirers/accounts.ts'
import type { AcquirerMerchant } from '../../gateway/acquirers/acquirer.ts'
import { ACQUIRER_NAMES } from '../../gateway/acquirers/acquirers.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { createAcquirerAccounts } from '../../gateway/tenants/acquirer-accounts.ts'
import { checkLogo, LOGO_LIMITS, type Logo, LogoError, saveLogo } from '../../gateway/tenants/logo.ts'
import { createMerchants, type Merchant } from '../../gateway/tenants/merchants.ts'
import { ChangedMerchant, NewMerchant } from '../../gateway/tenants/schema.ts'
import {
  CATEGORY_RULE_DATE,
  categoryLimits,
  type MerchantWarning,
  merchantWarnings,
} from '../../gateway/tenants/warnings.ts'
import { listReturnUrlCallbacks, setReturnUrlCallback } from '../../gateway/webhooks/endpoints.ts'
import { LIMITS } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { toIndianDigits, toIndianRupees } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { type Context, change, read } from './command.ts'
import { CommandError, existing, UsageError } from './errors.ts'
import { flag, type InputOf, list, namesOf } from './field.ts'
import { MID } from './fields.ts'
import { readBytes } from './file.ts'
import { document, record, table } from './result.ts'

const { shape } = ChangedMerchant
const SETTINGS = {
  name: flag(shape.name, 'NAME', 'Name that customers see', 'such as "Chai Point"'),
  vpa: flag(shape.vpa, 'VPA', 'UPI address that receives the payments', 'such as shop@bank'),
  mcc: flag(shape.mcc, 'CODE', 'Merchant category code that the bank assigned', 'such as 5814'),
  dynamicQr: flag(shape.dynamicQr, 'link|image', 'Form of dynamicQR', 'a link to an image, or the image itself'),
  acquirer: flag(shape.acquirer, 'ACQUIRER[:ACCOUNT][/MERCHANTID][,FALLBACK]', 'Acquirer', ACQUIRER_NAMES.join(', ')),
  account: flag(shape.account, 'NAME|default', 'Acquirer account', 'default: that of the environment'),
  acquirerMerchantId: flag(shape.acquirerMerchantId, 'ID', 'Identifier of the merchant at the acquirer'),
  input: flag(shape.input, 'strict|shop', 'Accepted requests', 'shop: also what store plugins send'),
  expiryMinutes: flag(shape.expiryMinutes, 'N|default', 'Minutes to pay', '1 to 1440; default: INTENT_EXPIRY_MINUTES'),
  maxExpiryMinutes: flag(shape.maxExpiryMinutes, 'N|default', 'Maximum expiry_minutes', '5 to 43200; default: 1440'),
  returnCall: flag(shape.returnCall, 'on|off', 'Whether the service calls the redirect_url of paid orders'),
  payee: list(shape.payee, 'VPA|PREFIX*@HANDLE|default', 'UPI address that links may name', 'default removes all'),
  maxAmount: flag(
    shape.maxAmount,
    'RUPEES|default',
    'Maximum amount of an order',
    'whole rupees, 1 to 500000; default: 100000',
  ),
  fee: flag(shape.fee, 'PERCENT[,FALLBACK]|none', 'Contract fee in percent', 'such as 1.8, or 1.8,2 with a fallback'),
  tax: flag(shape.tax, 'PERCENT[,FALLBACK]', 'Tax on the fee in percent', 'such as 18'),
  logo: flag(shape.logo, 'FILE|-|none', 'Logo of the pay page', 'PNG of at most 32 KiB and 512 × 512 pixels'),
  colour: flag(shape.colour, 'COLOUR|none', 'Colour of the pay page', "in quotes, such as '#0b6b4f'"),
  website: flag(shape.website, 'URL|none', 'https URL of the merchant’s website', 'shown on the pay page'),
  support: flag(shape.support, 'EMAIL|TELEPHONE|none', 'E-mail address or telephone number', 'on the pay page'),
}

export const listMerchants = read('merchants list', 'List merchants, their settings and warnings', {
  title: 'Merchants',
  async run(_, { db, now }) {
    const more = await readMore(db, now)
    const merchants = (await createMerchants(db).list()).map((merchant) => withMore(merchant, more))
    const columns =
      'mid, name, vpa, payees, mcc, dynamicQr, acquirer, nextAcquirer, input, expiryMinutes, maxExpiryMinutes, maxAmount, fees, returnCall, logo, colour, website, support, createdAt, disabledAt, warnings'
    return table(columns, merchants, {
      empty: 'No merchants.',
      cells: (one) => ({ ...cellsOf(one), warnings: one.warnings.join(', ') }),
    })
  },
})

export const merchantCommands = [
  change('merchants add', 'Add a merchant', {
    fields: {
      mid: flag(NewMerchant.shape.mid, 'MID', 'Identifier of the merchant', 'default: assigned by the service'),
      ...SETTINGS,
      name: { ...SETTINGS.name, schema: NewMerchant.shape.name },
      vpa: { ...SETTINGS.vpa, schema: NewMerchant.shape.vpa },
      mcc: { ...SETTINGS.mcc, schema: NewMerchant.shape.mcc },
      dynamicQr: { ...SETTINGS.dynamicQr, schema: NewMerchant.shape.dynamicQr },
      acquirer: { ...SETTINGS.acquirer, schema: NewMerchant.shape.acquirer },
    },
    async run({ returnCall, payee: payees, account, fee, tax, logo: file, ...given }, context) {
      const { config, client, now } = context
      const logo = await readLogo(file, context)
      const merchant = { ...given, ...toColumns(given.acquirer, account) }
      await rejectInvalidAcquirers(merchant, config, client)
      const added = await createMerchants(client).add({ ...merchant, payees, logo: logo?.sha256 }, now)
      if (added === undefined) throw new CommandError(`mid ${merchant.mid} already exists: choose another`)
      const { created, ...output } = await saveMore(added, { returnCall, fee, tax, logo }, context)
      return { ...output, created: { mid: merchant.mid, ...created } }
    },
  }),

  listMerchants,

  change('merchants update', 'Change the settings of a merchant', {
    fields: { mid: MID, ...SETTINGS },
    check: ({ mid: _, ...changes }) =>
      Object.values(changes).every((value) => value === undefined)
        ? `give at least one of ${namesOf(Object.keys(SETTINGS)).join(', ')}`
        : undefined,
    async run({ mid, returnCall, payee: payees, account, fee, tax, logo: file, ...typed }, context) {
      const { config, client } = context
      const logo = await readLogo(file, context)
      const merchants = createMerchants(client)
      const before = known(mid, await merchants.find(mid))
      const { acquirer, ...others } = typed
      const moved = acquirer ? toColumns(acquirer, account) : { acquirer: withAccount(before.acquirer, account) }
      const changes = { ...others, ...moved, logo: logo === null ? null : logo?.sha256 }
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      await rejectInvalidAcquirers({ ...before, ...given }, config, client)
      const changed = known(mid, await merchants.update(mid, { ...changes, payees }))
      return saveMore(changed, { returnCall, fee, tax, logo }, context)
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    change(`merchants ${verb}`, `${verb === 'enable' ? 'Resume' : 'Stop'} accepting payments for a merchant`, {
      fields: { mid: MID },
      run: async ({ mid }, { client, now }) =>
        show(known(mid, await createMerchants(client)[verb](mid, now)), { client, now }),
    }),
  ),
]

type Changing = { client: Queryable; now: Date }

type Served = AcquirerMerchant &
  Pick<Merchant, 'acquirer'> &
  Partial<Pick<Merchant, 'fallbackAcquirer' | 'fallbackAcquirerMerchantId'>>

/** Converts `--acquirer` to table columns. `--account` overrides the account of the first acquirer. */
function toColumns({ first, next }: NonNullable<InputOf<typeof SETTINGS>['acquirer']>, account?: string) {
  return {
    acquirer: withAccount(first.name, account),
    ...(first.id !== undefined && { acquirerMerchantId: first.id }),
    fallbackAcquirer: next?.name ?? null,
    fallbackAcquirerMerchantId: next?.id ?? null,
  }
}

const withAccount = (acquirer: string, account: string | undefined) =>
  account === undefined ? acquirer : accountName(splitAccountName(acquirer).acquirer, account)

/**
 * Throws if one of the merchant's acquirers cannot serve the merchant, because the merchant could then not accept
 * payments.
 */
async function rejectInvalidAcquirers(merchant: Served, config: DatabaseConfig, db: Queryable) {
  const { acquirer, fallbackAcquirer, fallbackAcquirerMerchantId } = merchant
  await createAcquirerAccounts(db).lock([acquirer, fallbackAcquirer])
  const accounts = openAccounts(db, config, LIMITS.lookUps)
  if (acquirer === fallbackAcquirer) throw new CommandError('--acquirer must name two different accounts')
  const next = fallbackAcquirer && { ...merchant, acquirerMerchantId: fallbackAcquirerMerchantId }
  const error =
    (await accounts.errorOf(acquirer, merchant)) ??
    (next && (await accounts.errorOf(fallbackAcquirer, next))) ??
    (await accounts.expiryErrorOf(next ? [acquirer, fallbackAcquirer] : [acquirer], merchant))
  if (error) throw new CommandError(error)
  if (next && [acquirer, fallbackAcquirer].includes('direct'))
    throw new CommandError('direct cannot be combined with a fallback acquirer: it always creates a link')
}

/** The logo of `--logo`: null for `none`, undefined without the flag. */
async function readLogo(file: string | undefined, context: Context): Promise<Logo | null | undefined> {
  if (file === undefined) return undefined
  if (file === 'none') return null
  const bytes = await readBytes(file, context, LOGO_LIMITS.bytes)
  try {
    return checkLogo(bytes)
  } catch (error) {
    throw error instanceof LogoError ? new CommandError(`--logo ${file} ${error.message}`) : error
  }
}

type More = Pick<InputOf<typeof SETTINGS>, 'returnCall' | 'fee' | 'tax'> & { logo: Logo | null | undefined }

/**
 * Stores the settings that other tables store. Returns the merchant with a warning for each questionable setting, which
 * contains the command that fixes it.
 */
async function saveMore(merchant: Merchant, { returnCall, fee, tax, logo }: More, { client, now }: Changing) {
  const { mid } = merchant
  if (returnCall) await setReturnUrlCallback(client, { mid, isOn: returnCall === 'on', now })
  if (logo !== undefined) await saveLogo(client, mid, logo)
  await saveRates(client, toRates(merchant, { fee, tax }, now))
  const warnings = merchantWarnings(merchant).map((warning) => ADVICE[warning](merchant))
  // The audit contains the path of the logo as typed, and its hash, because the file may change later.
  return { data: await show(merchant, { client, now }), warnings, created: logo ? { logo: logo.sha256 } : {} }
}

const known = (mid: string, merchant: Merchant | undefined) => existing(merchant, `mid ${mid}`, 'merchants list')

/** Throws a CommandError if the merchant does not exist. */
export async function requireMerchant(db: Queryable, mid: string | undefined): Promise<void> {
  if (mid !== undefined) known(mid, await createMerchants(db).find(mid))
}

/**
 * Converts `--fee` and `--tax` to rates from today on. Each flag has one value for all acquirers of the merchant, or one value per
 * acquirer.
 */
function toRates({ mid, acquirer, fallbackAcquirer }: Merchant, { fee, tax }: Pick<More, 'fee' | 'tax'>, now: Date) {
  if (fee === undefined && tax === undefined) return []
  const names = [acquirer, ...(fallbackAcquirer === null ? [] : [fallbackAcquirer])]
  const acquirers = [...new Set(names.map((name) => splitAccountName(name).acquirer))]
  const ends = fee?.length === 0 && !tax?.length
  const fit = ends || [fee, tax].every((given) => given?.length === 1 || given?.length === acquirers.length)
  if (!fit)
    throw new UsageError(
      `give --fee and --tax together, each with one value or one for each of ${acquirers.join(', ')}`,
    )
  const at = (given: string[] | undefined, index: number) => given?.[index] ?? given?.[0] ?? null
  const rate = { mid, instrument: null, above: 0, since: toIstDay(now), flat: ends ? null : 0 }
  return acquirers.map((one, index) => ({ ...rate, acquirer: one, percent: at(fee, index), tax: at(tax, index) }))
}

export const rateTable = (rates: readonly MerchantRate[], empty = 'No rates.') =>
  table('mid, acquirer, instrument, ₹above, since, percent, ₹flat, tax', rates, empty)

/** Formats a rate, such as `setu credit card 1.80 % and 18.00 % tax since 2026-11-01`. */
function formatRate({ acquirer, instrument, above, since, percent, flat, tax }: MerchantRate): string {
  const name = [acquirer, instrument, above > 0 && `above ${toIndianRupees(above)}`].filter(Boolean).join(' ')
  return `${name} ${percent} %${flat ? ` plus ${toIndianRupees(flat)}` : ''} and ${tax} % tax since ${since}`
}

/** Reads the merchant settings that other tables store. */
const readMore = async (db: Queryable, now: Date) => ({
  returnCalls: new Set((await listReturnUrlCallbacks(db, {})).map(({ mid }) => mid)),
  rates: groupBy(await readRates(db, { until: toIstDay(now) }), ({ mid }) => mid),
})

/** Returns the merchant under the field names of the output. */
function withMore(stored: Merchant, { returnCalls, rates }: Awaited<ReturnType<typeof readMore>>) {
  const { fallbackAcquirer: nextAcquirer, fallbackAcquirerMerchantId: nextAcquirerMerchantId, ...merchant } = stored
  return {
    ...{ ...merchant, nextAcquirer, nextAcquirerMerchantId },
    fees: rateTable(newestOf(rates.get(merchant.mid) ?? [])),
    ...{ returnCall: returnCalls.has(merchant.mid) ? 'on' : 'off', warnings: merchantWarnings(merchant) },
  }
}

async function show(merchant: Merchant, { client, now }: Changing) {
  const shown = withMore(merchant, await readMore(client, now))
  const { warnings: _, ...fields } = cellsOf(shown)
  return document(shown, record(fields))
}

const cellsOf = (merchant: ReturnType<typeof withMore>) => ({
  ...merchant,
  maxAmount: toIndianDigits(merchant.maxAmount),
  // The JSON output has the whole hash.
  logo: merchant.logo?.slice(0, 8) ?? null,
  fees: Array.from(merchant.fees.rows as MerchantRate[], formatRate).join(', '),
})

const ADVICE: Record<MerchantWarning, (merchant: Merchant) => string> = {
  'no category': ({ mid, mcc }) =>
    `mcc ${mcc} makes UPI apps treat the payee as a private person and limit or reject payments; set the category that the bank assigned: ops merchants update --mid ${mid} --mcc 5814`,
  'private address': ({ mid, vpa }) =>
    `${vpa} looks like a private person's address, for which UPI apps limit or reject payments; set the address that the bank assigned to the business: ops merchants update --mid ${mid} --vpa shop@bank`,
  'QR-only address': ({ mid, vpa }) =>
    `${vpa} is the address of a small store, which accepts payments by QR only: UPI apps reject links to it; request the address of an online merchant from the bank: ops merchants update --mid ${mid} --vpa shop@bank`,
  'high max amount': ({ mid, mcc, maxAmount }) => {
    const { maxRupees, dayRupees } = categoryLimits(mcc)
    const allowed = `${toIndianDigits(maxRupees)} rupees that NPCI allows mcc ${mcc} since ${CATEGORY_RULE_DATE}`
    const ofDay = dayRupees === undefined ? '' : ` (${toIndianDigits(dayRupees)} from one customer in 24 hours)`
    return `the max amount ${toIndianDigits(maxAmount)} exceeds the ${allowed}${ofDay}, and UPI apps reject larger payments; unless the bank confirmed a higher limit: ops merchants update --mid ${mid} --max-amount ${maxRupees}`
  },
}
