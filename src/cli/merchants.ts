import * as z from 'zod'
import { acquirerFault } from '../acquirer/acquirers.ts'
import type { DatabaseConfig } from '../config.ts'
import { createMerchants, type Merchant } from '../merchants/merchants.ts'
import { ChangedMerchant, NewMerchant, OneMerchant } from '../merchants/schema.ts'
import { CommandFault, command, type Output } from './command.ts'
import { record, table } from './output.ts'

const OPTIONAL = '[--dynamic-qr link|image] [--acquirer direct|setu] [--acquirer-merchant-id ID]'

export const merchantCommands = [
  command({
    name: 'merchants add',
    usage: `[--mid M1] --name "Chai Point" --vpa chaipoint@examplebank [--mcc 5814] ${OPTIONAL}`,
    schema: NewMerchant,
    async run(merchant, { config, db, now }) {
      refuseFaultyAcquirer(merchant, config)
      const added = await createMerchants(db).add(merchant, now)
      if (added === undefined) throw new CommandFault(`mid ${merchant.mid} is taken`)
      return show(added)
    },
  }),

  command({
    name: 'merchants list',
    usage: '',
    schema: z.object({}),
    async run(_, { db }) {
      const merchants = await createMerchants(db).list()
      const columns = ['mid', 'name', 'vpa', 'mcc', 'dynamicQr', 'acquirer', 'createdAt', 'disabledAt'] as const
      return { json: merchants, text: table(columns, merchants, 'no merchants') }
    },
  }),

  command({
    name: 'merchants update',
    usage: `--mid M1 [--name "Chai Point"] [--vpa chaipoint@examplebank] [--mcc 5814] ${OPTIONAL}`,
    schema: ChangedMerchant.refine(
      ({ mid: _, ...changes }) => Object.values(changes).some((value) => value !== undefined),
      'give at least one of --name, --vpa, --mcc, --dynamic-qr, --acquirer, --acquirer-merchant-id',
    ),
    async run({ mid, ...changes }, { config, db }) {
      const merchants = createMerchants(db)
      const merchant = known(mid, await merchants.find(mid))
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      refuseFaultyAcquirer({ ...merchant, ...given }, config)
      return show(known(mid, await merchants.update(mid, changes)))
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
  const fault = acquirerFault(acquirer, merchant, config)
  if (fault !== undefined) throw new CommandFault(fault)
}

function known(mid: string, merchant: Merchant | undefined): Merchant {
  if (merchant === undefined) throw new CommandFault(`mid ${mid} is unknown`)
  return merchant
}

const show = (merchant: Merchant): Output => ({ json: merchant, text: record(merchant) })
