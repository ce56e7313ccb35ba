import type * as z from 'zod'
import type { DatabaseConfig } from '../../config.ts'
import { accountName, splitAccountName } from '../../gateway/acquirers/accounts.ts'
import type { AcquirerMerchant } from '../../gateway/acquirers/acquirer.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { checkLogo, LOGO_LIMITS, type Logo, LogoError } from '../../gateway/tenants/logo.ts'
import { saveLogo } from '../../gateway/tenants/logos.ts'
import { type MerchantFee, newestFees, saveFees } from '../../gateway/tenants/merchant-fees.ts'
import { createMerchants, type Merchant } from '../../gateway/tenants/merchants.ts'
import { ChangedMerchant, NewMerchant, OneMerchant } from '../../gateway/tenants/schema.ts'
import {
  CATEGORY_RULE_DATE,
  categoryLimits,
  type MerchantWarning,
  merchantWarnings,
} from '../../gateway/tenants/warnings.ts'
import { createEndpoints } from '../../gateway/webhooks/endpoints.ts'
import { LIMITS } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { toIndianDigits } from '../../platform/money.ts'
import { readBytes } from '../terminal/file.ts'
import type { Output, Terminal } from '../terminal/print.ts'
import { atomicCommand, command } from './command.ts'
import { CommandError, UsageError } from './errors.ts'
import { document, type RecordData, record, table } from './result.ts'

const OPTIONAL =
  '[--dynamic-qr link|image] [--acquirer ACQUIRER[:ACCOUNT][/MERCHANTID][,FALLBACK]] [--account NAME|default] [--acquirer-merchant-id ID] [--input strict|shop] [--expiry-minutes N|default] [--max-expiry-minutes N|default] [--return-call on|off] [--payee VPA|PREFIX*@HANDLE|default] … [--max-amount RUPEES|default] [--fee PERCENT[,FALLBACK] --tax PERCENT[,FALLBACK] | --fee none] [--logo FILE|none] [--colour COLOUR|none] [--website URL|none] [--support EMAIL|TELEPHONE|none]'

export const merchantCommands = [
  atomicCommand('merchants add', 'Add a merchant', {
    usage: `[--mid MID] --name NAME --vpa VPA [--mcc CODE] ${OPTIONAL}`,
    schema: NewMerchant,
    async run(
      { returnCall, payee: payees, account, fee, tax, logo: file, ...given },
      { config, client, now, terminal },
    ) {
      const logo = await readLogo(file, terminal)
      const merchant = { ...given, ...toColumns(given.acquirer, account) }
      await rejectInvalidAcquirers(merchant, config, client)
      const added = await createMerchants(client).add({ ...merchant, payees, logo: logo?.sha256 }, now)
      if (added === undefined) throw new CommandError(`mid ${merchant.mid} already exists: choose another`)
      if (logo) await saveLogo(client, merchant.mid, logo)
      await saveFees(client, merchant.mid, toFees(added, fee, tax), now)
      if (returnCall) await createEndpoints(client).setReturnUrlCallback(merchant.mid, returnCall === 'on', now)
      return { ...(await showWithAdvice(added, client)), created: { mid: merchant.mid, ...toDetail(logo) } }
    },
  }),

  command('merchants list', 'List merchants, their settings and warnings', {
    console: 'read',
    async run(_, { db }) {
      const more = await readMore(db)
      const merchants = (await createMerchants(db).list()).map((merchant) => withMore(merchant, more))
      const columns =
        'mid, name, vpa, payees, mcc, dynamicQr, acquirer, nextAcquirer, input, expiryMinutes, maxExpiryMinutes, maxAmount, fees, returnCall, logo, colour, website, support, createdAt, disabledAt, warnings'
      return table(columns, merchants, {
        empty: 'No merchants.',
        cells: (one) => ({ ...cellsOf(one), warnings: one.warnings.join(', ') }),
      })
    },
  }),

  atomicCommand('merchants update', 'Change the settings of a merchant', {
    usage: `--mid MID [--name NAME] [--vpa VPA] [--mcc CODE] ${OPTIONAL}`,
    schema: ChangedMerchant.refine(
      ({ mid: _, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'give at least one of --name, --vpa, --mcc, --dynamic-qr, --acquirer, --account, --acquirer-merchant-id, --input, --expiry-minutes, --max-expiry-minutes, --return-call, --payee, --max-amount, --fee, --logo, --colour, --website, --support',
    ),
    async run(
      { mid, returnCall, payee: payees, account, fee, tax, logo: file, ...typed },
      { config, client, now, terminal },
    ) {
      const logo = await readLogo(file, terminal)
      const merchants = createMerchants(client)
      const before = known(mid, await merchants.find(mid))
      const { acquirer, ...others } = typed
      const moved = acquirer ? toColumns(acquirer, account) : { acquirer: withAccount(before.acquirer, account) }
      const changes = { ...others, ...moved, logo: logo === null ? null : logo?.sha256 }
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      await rejectInvalidAcquirers({ ...before, ...given }, config, client)
      if (returnCall) await createEndpoints(client).setReturnUrlCallback(mid, returnCall === 'on', now)
      const changed = known(mid, await merchants.update(mid, { ...changes, payees }))
      if (logo !== undefined) await saveLogo(client, mid, logo)
      await saveFees(client, mid, toFees(changed, fee, tax), now)
      return { ...(await showWithAdvice(changed, client)), created: toDetail(logo) }
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    atomicCommand(`merchants ${verb}`, `${verb === 'enable' ? 'Resume' : 'Stop'} accepting payments for a merchant`, {
      usage: '--mid MID',
      schema: OneMerchant,
      run: async ({ mid }, { client, now }) => show(known(mid, await createMerchants(client)[verb](mid, now)), client),
    }),
  ),
]

type Served = AcquirerMerchant &
  Pick<Merchant, 'acquirer'> &
  Partial<Pick<Merchant, 'fallbackAcquirer' | 'fallbackAcquirerMerchantId'>>

/** Converts `--acquirer` to table columns. `--account` overrides the account of the first acquirer. */
function toColumns({ first, next }: NonNullable<z.output<typeof ChangedMerchant>['acquirer']>, account?: string) {
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
  const accounts = openAccounts(db, config, LIMITS.lookUps)
  const { acquirer, fallbackAcquirer, fallbackAcquirerMerchantId } = merchant
  if (acquirer === fallbackAcquirer) throw new CommandError('--acquirer must name two different accounts')
  const next = fallbackAcquirer && { ...merchant, acquirerMerchantId: fallbackAcquirerMerchantId }
  const error =
    (await accounts.errorOf(acquirer, merchant)) ??
    (next && (await accounts.errorOf(fallbackAcquirer, next))) ??
    undefined
  if (error) throw new CommandError(error)
  if (next && [acquirer, fallbackAcquirer].includes('direct')) {
    throw new CommandError('direct cannot be combined with a fallback acquirer: it always creates a link')
  }
}

/** The logo of `--logo`: null for `none`, undefined without the flag. */
async function readLogo(file: string | undefined, terminal: Terminal): Promise<Logo | null | undefined> {
  if (file === undefined) return undefined
  if (file === 'none') return null
  const bytes = await readBytes(file, terminal, LOGO_LIMITS.bytes)
  try {
    return checkLogo(bytes)
  } catch (error) {
    throw error instanceof LogoError ? new CommandError(`--logo ${file} ${error.message}`) : error
  }
}

/** The audit contains the path of the logo as typed, and its hash, because the file may change later. */
const toDetail = (logo: Logo | null | undefined) => (logo ? { logo: logo.sha256 } : {})

function known(mid: string, merchant: Merchant | undefined): Merchant {
  if (merchant === undefined) throw new CommandError(`mid ${mid} does not exist: see ops merchants list`)
  return merchant
}

/**
 * Converts `--fee` and `--tax` to fees. Each flag has one value for all acquirers of the merchant, or one value per
 * acquirer.
 */
function toFees(
  { acquirer, fallbackAcquirer }: Merchant,
  fee?: string[],
  tax?: string[],
): Omit<MerchantFee, 'since'>[] {
  if (fee === undefined && tax === undefined) return []
  const names = [acquirer, ...(fallbackAcquirer === null ? [] : [fallbackAcquirer])]
  const acquirers = [...new Set(names.map((name) => splitAccountName(name).acquirer))]
  if (fee?.length === 0 && !tax?.length) return acquirers.map((one) => ({ acquirer: one, fee: null, tax: null }))
  const fit = [fee, tax].every((given) => given?.length === 1 || given?.length === acquirers.length)
  if (!fit)
    throw new UsageError(
      `give --fee and --tax together, each with one value or one for each of ${acquirers.join(', ')}`,
    )
  const at = (given: string[] | undefined, index: number) => given?.[index] ?? given?.[0] ?? null
  return acquirers.map((one, index) => ({ acquirer: one, fee: at(fee, index), tax: at(tax, index) }))
}

/** Formats fees for text output, such as `setu 1.80 % and 18.00 % tax since 2026-11-01`. */
const formatFees = (fees: readonly MerchantFee[]) =>
  fees.map(({ acquirer, fee, tax, since }) => `${acquirer} ${fee} % and ${tax} % tax since ${since}`).join(', ')

/** Reads the merchant settings that other tables store. */
const readMore = async (db: Queryable) => ({
  returnCalls: await createEndpoints(db).returnUrlCallbacks(),
  fees: await newestFees(db),
})

/** Returns the merchant under the field names of the output. */
function withMore(
  { fallbackAcquirer: nextAcquirer, fallbackAcquirerMerchantId: nextAcquirerMerchantId, ...merchant }: Merchant,
  { returnCalls, fees }: Awaited<ReturnType<typeof readMore>>,
) {
  return {
    ...{ ...merchant, nextAcquirer, nextAcquirerMerchantId, fees: fees.get(merchant.mid) ?? [] },
    ...{ returnCall: returnCalls.has(merchant.mid) ? 'on' : 'off', warnings: merchantWarnings(merchant) },
  }
}

async function show(merchant: Merchant, db: Queryable): Promise<RecordData> {
  const shown = withMore(merchant, await readMore(db))
  const { warnings: _, ...fields } = cellsOf(shown)
  return document(shown, record(fields))
}

const cellsOf = (merchant: ReturnType<typeof withMore>) => ({
  ...merchant,
  maxAmount: toIndianDigits(merchant.maxAmount),
  // The JSON output has the whole hash.
  logo: merchant.logo?.slice(0, 8) ?? null,
  fees: formatFees(merchant.fees),
})

/**
 * Returns the merchant with a warning for each questionable setting. Each warning contains the command that fixes the
 * setting.
 */
async function showWithAdvice(merchant: Merchant, db: Queryable): Promise<Output> {
  const warnings = merchantWarnings(merchant).map((warning) => ADVICE[warning](merchant))
  return { data: await show(merchant, db), warnings }
}

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
