import * as z from 'zod'
import type { DatabaseConfig } from '../../config.ts'
import { AcquirerError } from '../../errors.ts'
import { accountName } from '../../gateway/acquirers/accounts.ts'
import { LINKING_NAMES } from '../../gateway/acquirers/acquirers.ts'
import {
  contextOfAccount,
  type OpeningConfig,
  openAccount,
  openAccounts,
} from '../../gateway/acquirers/stored-accounts.ts'
import { createAcquirerAccounts, type StoredAccount } from '../../gateway/tenants/acquirer-accounts.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import { reencryptSecrets } from '../../gateway/webhooks/endpoints.ts'
import { LIMITS } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { decryptSecret, EncryptionError, encryptSecret } from '../../platform/encryption.ts'
import { errorText, identifier } from '../../platform/fields.ts'
import { counted } from '../../platform/money.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { change, changeInSteps, read } from './command.ts'
import { requireKeys } from './encryption-keys.ts'
import { CommandError, existing } from './errors.ts'
import { flag, oneOf, toggle } from './field.ts'
import { ANY_ACCOUNT } from './fields.ts'
import { path, readText } from './file.ts'
import { document, type RecordData, record, table } from './result.ts'

const NOT_DEFAULT = 'must not be default: that account is set by the environment'
const named = identifier.refine((name) => name !== 'default', NOT_DEFAULT)
const account = flag(named, 'NAME', 'Acquirer account')
const NAMES = LINKING_NAMES.join(', ')
const acquirer = flag(z.enum(LINKING_NAMES, errorText(`must be one of ${NAMES}`)), 'ACQUIRER', 'Acquirer', NAMES)
const from = flag(path.default('-'), 'FILE|-', 'File of NAME=value as in the environment', 'default: standard input')
const finish = toggle('Delete the earlier secrets and end the rotation')
const back = toggle('Restore the earlier secrets')

export const accountCommands = [
  changeInSteps('accounts add', 'Add an acquirer account', {
    fields: { account, acquirer, from },
    async run({ account, acquirer, from }, context) {
      const { config, now, change } = context
      const name = accountName(acquirer, account)
      const encrypted = encryptSecret(requireKeys(config), await readText(from, context), contextOfAccount(name))
      return change(async (client) => {
        const added = await createAcquirerAccounts(client).add(name, encrypted, now)
        if (added === undefined)
          throw new CommandError(`account ${name} already exists: replace its secrets with ops accounts rotate`)
        return showAccepted(added, config)
      })
    },
  }),

  read('accounts list', 'List acquirer accounts and their state', {
    async run(_, { config, db }) {
      const rows = (await createAcquirerAccounts(db).list()).map((account) => toShown(account, config))
      const empty = 'No acquirer accounts besides those of the environment.'
      return table('name, state, createdAt, disabledAt, fault', rows, empty)
    },
  }),

  changeInSteps('accounts rotate', 'Replace the secrets of an acquirer account', {
    fields: {
      ...{ account, acquirer },
      step: oneOf([{ from }, { finish }, { back }]),
    },
    async run({ account, acquirer, step: { from, finish, back } }, context) {
      const { config, change } = context
      const name = accountName(acquirer, account)
      const encrypted =
        from !== undefined && encryptSecret(requireKeys(config), await readText(from, context), contextOfAccount(name))
      return change(async (client) => {
        const accounts = createAcquirerAccounts(client)
        if (finish) return show(name, await accounts.finishRotation(name), config)
        const rotated = encrypted ? await accounts.rotate(name, encrypted) : await accounts.rotateBack(name)
        if (rotated) {
          const accepted = showAccepted(rotated, config)
          await rejectLongerOrders(name, config, client)
          return accepted
        }
        const known = (await accounts.list()).find((one) => one.name === name)
        existing(known, `account ${name}`, 'accounts list')
        throw new CommandError(`account ${name} ${back ? NOTHING_EARLIER : NOT_FINISHED}`)
      })
    },
  }),

  read('accounts check', 'Check an acquirer account’s secrets', {
    fields: { acquirer, account: ANY_ACCOUNT },
    async run({ account, acquirer }, context) {
      const name = accountName(acquirer, account)
      const { accounts, clientOf } = reachAccounts(context)
      const [advice, client] = [await accounts.adviceOn(name), await clientOf(name)]
      if (advice !== undefined || !client) throw new CommandError(`account ${name} cannot be used: ${advice}`)
      await client.check().catch((error: unknown) => {
        if (!(error instanceof AcquirerError)) throw error
        const { status, code } = error.facts
        throw new CommandError([error.message, status, code].filter((part) => part !== undefined).join(' '))
      })
      return document({ name, accepted: true }, `${acquirer} accepts the secrets of account ${name}.`)
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    change(`accounts ${verb}`, `${verb === 'enable' ? 'Resume' : 'Stop'} creating links with an account`, {
      fields: { account, acquirer },
      async run({ account, acquirer }, { client, config, now }) {
        const name = accountName(acquirer, account)
        return show(name, await createAcquirerAccounts(client)[verb](name, now), config)
      },
    }),
  ),

  change('accounts reseal', 'Re-encrypt secrets of accounts and webhooks', {
    async run(_, { config, client }) {
      const keys = requireKeys(config)
      let unopened = 0
      const again = (encrypted: Buffer, owner: string) => {
        try {
          return encryptSecret(keys, decryptSecret(keys, encrypted, owner), owner)
        } catch (error) {
          if (!(error instanceof EncryptionError)) throw error
          unopened += 1
          return encrypted
        }
      }
      const ofAccount = (encrypted: Buffer, name: string) => again(encrypted, contextOfAccount(name))
      const accounts = await createAcquirerAccounts(client).reencryptSecrets(ofAccount)
      const webhooks = await reencryptSecrets(client, again)
      const counts = { accounts, webhooks, unopened }
      const reencrypted = `Secrets re-encrypted: ${counted(accounts, 'account')}, ${counted(webhooks, 'webhook')}`
      const message = `${reencrypted}; ${counted(unopened, 'secret', 'secrets')} could not be decrypted.`
      return { data: document(counts, message), created: counts }
    },
  }),
]

const NOT_FINISHED = 'has an unfinished rotation: add --finish to delete the earlier secrets, or --back to restore them'
const NOTHING_EARLIER = 'has no earlier secrets: it was never rotated, or --finish deleted them'

/**
 * Returns the account as the service would load it. Throws a CommandError if the service would reject the account, so
 * that the change is rolled back.
 */
function showAccepted(account: StoredAccount, config: OpeningConfig): RecordData {
  const { fault: problem, ...accepted } = toShown(account, config)
  if (problem !== null) throw new CommandError(problem)
  return record(accepted)
}

/** Throws if a merchant's settings allow longer orders than the account, which has been changed, allows. */
async function rejectLongerOrders(name: string, config: DatabaseConfig, db: Queryable) {
  const accounts = openAccounts(db, config, LIMITS.lookUps)
  const ofAccount = (await createMerchants(db).list()).filter((one) =>
    [one.acquirer, one.fallbackAcquirer].includes(name),
  )
  const found = await Promise.all(
    ofAccount.map(async (one) => ({ mid: one.mid, error: await accounts.expiryErrorOf([name], one) })),
  )
  const longer = found.filter(({ error }) => error !== undefined)
  const mids = longer.slice(0, 20).map(({ mid }) => mid)
  const more = longer.length > mids.length ? ` and ${longer.length - mids.length} more` : ''
  if (longer[0])
    throw new CommandError(
      `${longer[0].error} with ops merchants update first, for the merchants ${mids.join(', ')}${more}`,
    )
}

const show = (name: string, account: StoredAccount | undefined, config: OpeningConfig) =>
  record(toShown(existing(account, `account ${name}`, 'accounts list'), config))

function toShown(account: StoredAccount, config: OpeningConfig) {
  const { name, earlierSecrets, createdAt, disabledAt } = account
  const { error: problem = null } = openAccount(account, config)
  const state = disabledAt ? 'off' : problem ? 'rejected' : earlierSecrets ? 'rotating' : 'on'
  return { name, state, createdAt, disabledAt, fault: problem }
}
