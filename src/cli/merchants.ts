import * as z from 'zod'
import { acquirerFault } from '../acquirer/acquirers.ts'
import type { DatabaseConfig } from '../config.ts'
import { createMerchants, type Merchant } from '../merchants/merchants.ts'
import { ChangedMerchant, NewMerchant, OneMerchant } from '../merchants/schema.ts'
import { type MerchantWarning, merchantWarnings } from '../merchants/warnings.ts'
import { CommandFault, command, type Output } from './command.ts'
import { record, table } from './output.ts'

const OPTIONAL =
  '[--dynamic-qr link|image] [--acquirer direct|setu] [--acquirer-merchant-id ID] [--input strict|shop] [--expiry-minutes N|default]'

export const merchantCommands = [
  command({
    name: 'merchants add',
    usage: `[--mid M1] --name "Chai Point" --vpa chaipoint@examplebank [--mcc 5814] ${OPTIONAL}`,
    schema: NewMerchant,
    async run(merchant, { config, db, now }) {
      refuseFaultyAcquirer(merchant, config)
      const added = await createMerchants(db).add(merchant, now)
      if (added === undefined) throw new CommandFault(`mid ${merchant.mid} is taken`)
      return showWithAdvice(added)
    },
  }),

  command({
    name: 'merchants list',
    usage: '',
    schema: z.object({}),
    async run(_, { db }) {
      const merchants = (await createMerchants(db).list()).map(withWarnings)
      const columns = [
        'mid',
        'name',
        'vpa',
        'mcc',
        'dynamicQr',
        'acquirer',
        'input',
        'expiryMinutes',
        'createdAt',
        'disabledAt',
        'warnings',
      ] as const
      const rows = merchants.map((merchant) => ({ ...merchant, warnings: merchant.warnings.join(', ') }))
      return { json: merchants, text: table(columns, rows, 'no merchants') }
    },
  }),

  command({
    name: 'merchants update',
    usage: `--mid M1 [--name "Chai Point"] [--vpa chaipoint@examplebank] [--mcc 5814] ${OPTIONAL}`,
    schema: ChangedMerchant.refine(
      ({ mid: _, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'give at least one of --name, --vpa, --mcc, --dynamic-qr, --acquirer, --acquirer-merchant-id, --input, --expiry-minutes',
    ),
    async run({ mid, ...changes }, { config, db }) {
      const merchants = createMerchants(db)
      const merchant = known(mid, await merchants.find(mid))
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      refuseFaultyAcquirer({ ...merchant, ...given }, config)
      return showWithAdvice(known(mid, await merchants.update(mid, changes)))
    },
  }),

  command({
    name: 'merchants disable',
    usage: '--mid M1',
    schema: OneMerchant,
    async run({ mid }, { db, now }) {
      return show(known(mid, await createMerchants(db).disable(mid, now)))
    },
  }),

  command({
    name: 'merchants enable',
    usage: '--mid M1',
    schema: OneMerchant,
    async run({ mid }, { db }) {
      return show(known(mid, await createMerchants(db).enable(mid)))
    },
  }),
]

/** Refuses what would store a merchant that cannot take payments. */
function refuseFaultyAcquirer(
  { acquirer, ...merchant }: Pick<Merchant, 'vpa' | 'acquirer'> & { acquirerMerchantId?: string | null | undefined },
  config: Pick<DatabaseConfig, 'setu'>,
) {
  const fault = acquirerFault(acquirer, merchant, { direct: [], setu: config.setu })
  if (fault !== undefined) throw new CommandFault(fault)
}

function known(mid: string, merchant: Merchant | undefined): Merchant {
  if (merchant === undefined) throw new CommandFault(`mid ${mid} is unknown`)
  return merchant
}

const withWarnings = (merchant: Merchant) => ({ ...merchant, warnings: merchantWarnings(merchant) })

const show = (merchant: Merchant): Output => ({ json: withWarnings(merchant), text: record(merchant) })

/** For commands that can cause a warning: they say what mends it. */
const showWithAdvice = (merchant: Merchant): Output => ({
  ...show(merchant),
  warnings: merchantWarnings(merchant).map((warning) => ADVICE[warning](merchant)),
})

const ADVICE: Record<MerchantWarning, (merchant: Merchant) => string> = {
  'no category': ({ mid, mcc }) =>
    `mcc ${mcc} makes wallets take the payee for a private person, and limit or refuse payments; set the one that the bank gave: ops merchants update --mid ${mid} --mcc 5814`,
  'private address': ({ mid, vpa }) =>
    `${vpa} looks like a private person's address, to which wallets limit or refuse payments; set the one that the bank gave the business: ops merchants update --mid ${mid} --vpa shop@bank`,
}
