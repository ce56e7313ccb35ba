import * as z from 'zod'
import { AcquirerError } from '../../errors.ts'
import { accountName } from '../../gateway/acquirers/accounts.ts'
import { LINKING_NAMES } from '../../gateway/acquirers/acquirers.ts'
import { type OpeningConfig, openAccount, ownerOfAccount } from '../../gateway/acquirers/stored-accounts.ts'
import { createAcquirerAccounts, type StoredAccount } from '../../gateway/tenants/acquirer-accounts.ts'
import { createEndpoints } from '../../gateway/webhooks/endpoints.ts'
import { SealError, seal, unseal } from '../../platform/encryption.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { counted } from '../../platform/money.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { atomicCommand, changingCommand, command } from './command.ts'
import { document, type RecordData, record, table } from './data.ts'
import { CommandError } from './errors.ts'
import { FILE, readText } from './file.ts'
import { requireKeys } from './sealing-keys.ts'

const Which = z.object({
  account: identifier.refine((account) => account !== 'default', 'default is the account of the environment'),
  acquirer: z.enum(LINKING_NAMES, errorText(`must be one of ${LINKING_NAMES.join(', ')}`)),
})
const WHICH = `--account acme --acquirer ${LINKING_NAMES.join('|')}`
const FROM = '[--from FILE]   (NAME=value lines, as in the environment; by default from standard input)'
const WithSecrets = Which.extend({ from: FILE.default('-') })

export const accountCommands = [
  changingCommand('accounts add', 'Add a merchant’s own account at an acquirer', {
    usage: `${WHICH} ${FROM}`,
    schema: WithSecrets,
    async run({ account, acquirer, from }, { config, now, terminal, change }) {
      const name = accountName(acquirer, account)
      const sealed = seal(requireKeys(config), await readText(from, terminal), ownerOfAccount(name))
      return change(async (client) => {
        const added = await createAcquirerAccounts(client).add(name, sealed, now)
        if (added === undefined) throw new CommandError(`${name}: the account exists: ops accounts rotate`)
        return showAccepted(added, config)
      })
    },
  }),

  command('accounts list', 'List accounts at acquirers and their state', {
    async run(_, { config, db }) {
      const rows = (await createAcquirerAccounts(db).list()).map((account) => toShown(account, config))
      const empty = 'no accounts but those of the environment'
      return table('name, state, createdAt, disabledAt, fault', rows, empty)
    },
  }),

  changingCommand('accounts rotate', 'Replace the secrets of an account', {
    usage: `${WHICH} [--finish | --back] ${FROM}`,
    schema: WithSecrets.extend({ finish: z.boolean().default(false), back: z.boolean().default(false) }).refine(
      ({ finish, back }) => !(finish && back),
      'give --finish or --back, not both',
    ),
    async run({ account, acquirer, from, finish, back }, { config, terminal, change }) {
      const name = accountName(acquirer, account)
      const isNew = !finish && !back
      const sealed = isNew && seal(requireKeys(config), await readText(from, terminal), ownerOfAccount(name))
      return change(async (client) => {
        const accounts = createAcquirerAccounts(client)
        if (finish) return show(name, await accounts.finishRotation(name), config)
        const rotated = sealed ? await accounts.rotate(name, sealed) : await accounts.rotateBack(name)
        if (rotated) return showAccepted(rotated, config)
        const isKnown = (await accounts.list()).some((one) => one.name === name)
        throw new CommandError(`${name}: ${isKnown ? (back ? NOTHING_EARLIER : NOT_FINISHED) : UNKNOWN}`)
      })
    },
  }),

  command('accounts check', 'Ask whether an account’s secrets are accepted', {
    usage: `--acquirer ${LINKING_NAMES.join('|')} [--account acme]`,
    schema: z.object({ account: identifier.optional(), acquirer: Which.shape.acquirer }),
    async run({ account, acquirer }, context) {
      const name = accountName(acquirer, account)
      const { accounts, clientOf } = reachAccounts(context)
      const [advice, client] = [await accounts.adviceOn(name), await clientOf(name)]
      if (advice !== undefined || !client) throw new CommandError(`the account ${name} cannot be used: ${advice}`)
      await client.check().catch((error: unknown) => {
        if (!(error instanceof AcquirerError)) throw error
        const { status, code } = error.facts
        throw new CommandError([error.message, status, code].filter((part) => part !== undefined).join(' '))
      })
      return document({ name, accepted: true }, `${acquirer} accepts the secrets of ${name}`)
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    atomicCommand(`accounts ${verb}`, `Let an account make payment links ${verb === 'enable' ? 'again' : 'no more'}`, {
      usage: WHICH,
      schema: Which,
      async run({ account, acquirer }, { client, config, now }) {
        const name = accountName(acquirer, account)
        return show(name, await createAcquirerAccounts(client)[verb](name, now), config)
      },
    }),
  ),

  atomicCommand('accounts reseal', 'Seal the secrets of accounts and webhooks anew', {
    async run(_, { config, client }) {
      const keys = requireKeys(config)
      let unopened = 0
      const again = (sealed: Buffer, owner: string) => {
        try {
          return seal(keys, unseal(keys, sealed, owner), owner)
        } catch (error) {
          if (!(error instanceof SealError)) throw error
          unopened += 1
          return sealed
        }
      }
      const accounts = await createAcquirerAccounts(client).resealSecrets((sealed, name) =>
        again(sealed, ownerOfAccount(name)),
      )
      const webhooks = await createEndpoints(client).resealSecrets(again)
      const counts = { accounts, webhooks, unopened }
      const resealed = `resealed: ${counted(accounts, 'account')}, ${counted(webhooks, 'webhook')}`
      const message = `${resealed}; ${counted(unopened, 'secret does', 'secrets do')} not open`
      return { data: document(counts, message), made: counts }
    },
  }),
]

const UNKNOWN = 'there is no such account: ops accounts list'
const NOT_FINISHED =
  'its last rotation is not finished: add --finish to drop the earlier secrets, or --back to use them again'
const NOTHING_EARLIER = 'it has no earlier secrets: it was never rotated, or --finish has dropped them'

/** The account as the service will load it. Throws if the service rejects it: the change must not be stored. */
function showAccepted(account: StoredAccount, config: OpeningConfig): RecordData {
  const { fault, ...accepted } = toShown(account, config)
  if (fault !== null) throw new CommandError(fault)
  return record(accepted)
}

function show(name: string, account: StoredAccount | undefined, config: OpeningConfig): RecordData {
  if (account === undefined) throw new CommandError(`${name}: ${UNKNOWN}`)
  return record(toShown(account, config))
}

function toShown(account: StoredAccount, config: OpeningConfig) {
  const { name, earlierSecrets, createdAt, disabledAt } = account
  const { fault = null } = openAccount(account, config)
  const state = disabledAt ? 'off' : fault ? 'rejected' : earlierSecrets ? 'rotating' : 'on'
  return { name, state, createdAt, disabledAt, fault }
}
