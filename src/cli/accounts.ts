import * as z from 'zod'
import { accountName, readAccount } from '../acquirer/accounts.ts'
import { LINKING_NAMES } from '../acquirer/acquirers.ts'
import { openAccounts, ownerOfAccount } from '../acquirer/stored-accounts.ts'
import { AcquirerError } from '../errors.ts'
import { errorText, identifier } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { counted } from '../money.ts'
import { SealError, type SealingKeys, seal, unseal } from '../sealing.ts'
import { createAcquirerAccounts, type StoredAccount } from '../tenants/acquirer-accounts.ts'
import { createEndpoints } from '../webhooks/endpoints.ts'
import { reachAccounts } from './acquirer-calls.ts'
import { atomicCommand, changingCommand, command } from './command.ts'
import { CommandError } from './errors.ts'
import { FILE, readText } from './file.ts'
import { listed, type Output, shown } from './output.ts'
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
      const sealed = sealText(name, await readText(from, terminal), requireKeys(config))
      return change(async (client) =>
        show(
          name,
          await createAcquirerAccounts(client).add(name, sealed, now),
          'the account exists: ops accounts rotate',
        ),
      )
    },
  }),

  command('accounts list', 'List accounts at acquirers and their state', {
    async run(_, { config, db }) {
      const opened = openAccounts(db, config, LIMITS.lookUps)
      const rows = []
      for (const account of await createAcquirerAccounts(db).list()) {
        rows.push({ ...toShown(account), fault: (await opened.find(account.name))?.fault ?? null })
      }
      return listed('name, state, createdAt, disabledAt, fault', rows, 'no accounts but those of the environment')
    },
  }),

  changingCommand('accounts rotate', 'Replace the secrets of an account', {
    usage: `${WHICH} [--finish] ${FROM}`,
    schema: WithSecrets.extend({ finish: z.boolean().default(false) }),
    async run({ account, acquirer, from, finish }, { config, terminal, change }) {
      const name = accountName(acquirer, account)
      const sealed = finish ? undefined : sealText(name, await readText(from, terminal), requireKeys(config))
      return change(async (client) => {
        const accounts = createAcquirerAccounts(client)
        const rotated = sealed ? await accounts.rotate(name, sealed) : await accounts.finishRotation(name)
        return show(name, rotated, 'no such account, or its last rotation is not finished: ops accounts list')
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
      return { json: { name, accepted: true }, text: `${acquirer} accepts the secrets of ${name}` }
    },
  }),

  ...(['disable', 'enable'] as const).map((verb) =>
    atomicCommand(`accounts ${verb}`, `Let an account make payment links ${verb === 'enable' ? 'again' : 'no more'}`, {
      usage: WHICH,
      schema: Which,
      async run({ account, acquirer }, { client, now }) {
        const name = accountName(acquirer, account)
        return show(name, await createAcquirerAccounts(client)[verb](name, now), 'no such account: ops accounts list')
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
      return {
        json: counts,
        text: `resealed: ${counted(accounts, 'account')}, ${counted(webhooks, 'webhook')}; ${counted(unopened, 'secret does', 'secrets do')} not open`,
        made: counts,
      }
    },
  }),
]

/** Seals the lines of an account's secrets. Throws a CommandError that repeats no value unless they make an account. */
function sealText(name: string, text: string, keys: SealingKeys): Buffer {
  try {
    readAccount(name, text)
  } catch (error) {
    throw new CommandError((error as Error).message)
  }
  return seal(keys, text, ownerOfAccount(name))
}

function show(name: string, account: StoredAccount | undefined, refusal: string): Output {
  if (account === undefined) throw new CommandError(`${name}: ${refusal}`)
  return shown(toShown(account))
}

const toShown = ({ name, earlierSecrets, createdAt, disabledAt }: StoredAccount) => ({
  name,
  state: disabledAt ? 'off' : earlierSecrets ? 'rotating' : 'on',
  createdAt,
  disabledAt,
})
