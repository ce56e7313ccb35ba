import * as z from 'zod'
import { createAccessKeys, type NewAccessKey, USUAL_RIGHTS } from '../../gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../gateway/tenants/credentials.ts'
import { FOREIGN_KEY_VIOLATION, hasState } from '../../platform/db/outage.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { identifier, matching, personName, text } from '../../platform/fields.ts'
import { RIGHTS } from '../../platform/rights.ts'
import { dayText, toIstDay } from '../../platform/time.ts'
import { CONSOLE_RIGHTS, createOperatorKeys, type NewOperatorKey } from '../console/operator-keys.ts'
import { atomicCommand, command } from './command.ts'
import { CommandError } from './errors.ts'
import { record, table } from './result.ts'

const OneKey = z.object({
  /**
   * Accepts only the form of a public key, so that the audit does not store a secret key that the operator pasted by
   * mistake.
   */
  publicKey: matching(/^pk_[\w-]{1,64}$/, 'must be a public key, pk_…'),
})
const Owner = z.object({ mid: identifier.optional(), pid: identifier.optional(), operator: personName.optional() })
const ownersIn = ({ mid, pid, operator }: z.output<typeof Owner>) =>
  [mid, pid, operator].filter((given) => given !== undefined).length
const rightsText = z.string().transform((list) => list.split(',').map((name) => name.trim()))
const areOf = (known: readonly string[], rights: readonly string[] = []) => rights.every((one) => known.includes(one))

export const keyCommands = [
  atomicCommand('keys create', 'Create an API key; its secret is shown once', {
    usage:
      '(--mid MID [--rights LIST] [--may-refund] | --pid PID | --operator NAME --rights read[,act]) [--expires-on DAY] [--label TEXT]',
    note: 'With --operator, the key is for the operator console only.',
    schema: Owner.extend({
      rights: rightsText.optional(),
      mayRefund: z.boolean().optional(),
      expiresOn: dayText.optional(),
      label: text(100).optional(),
    })
      .refine((input) => ownersIn(input) === 1, 'give one of --mid, --pid and --operator')
      .refine(
        ({ pid, rights, mayRefund }) => pid === undefined || (areOf(['list'], rights) && !mayRefund),
        'the key of a partner has only the right list: omit --rights and --may-refund',
      )
      .refine(
        ({ mid, rights }) => mid === undefined || areOf(RIGHTS, rights),
        `--rights must be a comma-separated list of ${RIGHTS.join(', ')}`,
      )
      .refine(
        ({ operator, rights, mayRefund }) =>
          operator === undefined || (rights?.includes('read') && areOf(CONSOLE_RIGHTS, rights) && !mayRefund),
        'the key of an operator needs --rights read or --rights read,act, without --may-refund',
      ),
    run({ mid, pid, operator, rights = USUAL_RIGHTS, mayRefund, expiresOn, label = null }, { client, now }) {
      const key = { label, expiresOn, now }
      if (operator !== undefined) {
        return addKey(client, { ...key, operator, rights: CONSOLE_RIGHTS.filter((right) => rights.includes(right)) })
      }
      if (mid === undefined) return addKey(client, { ...key, owner: { pid: pid as string }, rights: ['list'] })
      const given = RIGHTS.filter((right) => rights.includes(right) || (mayRefund && right === 'refund'))
      return addKey(client, { ...key, owner: { mid }, rights: given })
    },
  }),

  atomicCommand('keys rotate', 'Create a replacement for an API key', {
    usage: '--public-key KEY [--expires-on DAY] [--label TEXT]',
    note: 'The new key has the rights of the old key, but not its expiry. The old key remains valid until it expires or you revoke it.',
    schema: OneKey.extend({ expiresOn: dayText.optional(), label: text(100).optional() }),
    async run({ publicKey: old, expiresOn, label }, { client, now }) {
      const found = (await listKeys(client, {})).find((one) => one.publicKey === old)
      if (!found || found.revokedAt !== null || (found.expiresOn !== null && found.expiresOn < toIstDay(now))) {
        throw new CommandError('the public key does not exist, is revoked or has expired: see ops keys list')
      }
      const expiry = found.expiresOn === null ? '' : `the end of ${found.expiresOn} (IST) or until `
      const revoking = `The old key remains valid until ${expiry}you revoke it: ops keys revoke --public-key ${old}`
      const key = { label: label ?? found.label, expiresOn, now }
      if (found.operator !== null)
        return addKey(client, { ...key, operator: found.operator, rights: found.rights }, revoking)
      const owner = found.mid === null ? { pid: found.pid as string } : { mid: found.mid }
      return addKey(client, { ...key, owner, rights: found.rights }, revoking)
    },
  }),

  command('keys list', 'List API keys and when each was last used', {
    usage: '[--mid MID | --pid PID | --operator NAME]',
    schema: Owner.refine((owner) => ownersIn(owner) <= 1, 'give one of --mid, --pid and --operator'),
    async run(owner, { db }) {
      const columns = 'publicKey, mid, pid, operator, label, rights, expiresOn, createdAt, lastUsedOn, revokedAt'
      return table(columns, await listKeys(db, owner), 'No keys.')
    },
  }),

  atomicCommand('keys revoke', 'Revoke an API key permanently', {
    usage: '--public-key KEY',
    schema: OneKey,
    async run({ publicKey }, { client, now }) {
      const revoked =
        (await createAccessKeys(client).revoke(publicKey, now)) ??
        (await createOperatorKeys(client).revoke(publicKey, now))
      if (revoked === undefined) throw new CommandError('the public key does not exist: see ops keys list')
      return record(revoked, `Key ${publicKey} revoked.`)
    },
  }),
]

/** Lists the keys of merchants and partners, then the keys of operators. */
export async function listKeys(db: Queryable, owner: z.output<typeof Owner>) {
  const { mid, pid, operator } = owner
  const accessKeys = operator === undefined ? await createAccessKeys(db).list({ mid, pid }) : []
  const operatorKeys = (mid ?? pid) === undefined ? await createOperatorKeys(db).list({ operator }) : []
  return [
    ...accessKeys.map((key) => ({ ...key, operator: null })),
    ...operatorKeys.map((key) => ({ ...key, mid: null, pid: null, lastUsedOn: null })),
  ]
}

type NewKey = NewAccessKey | NewOperatorKey
type Unminted<Key> = Key extends NewKey ? Omit<Key, 'publicKey' | 'secretHash'> : never

async function addKey(client: Queryable, key: Unminted<NewKey>, ...advice: string[]) {
  if (key.expiresOn !== undefined && key.expiresOn < toIstDay(key.now)) {
    throw new CommandError('--expires-on is in the past: give the last day (IST) on which the key is valid')
  }
  const { publicKey, secretKey } = mintKeyPair()
  const added = await storeKey(client, { ...key, publicKey, secretHash: hashSecret(secretKey) })
  const { publicKey: _, lastUsedOn: __, revokedAt: ___, ...stored } = { lastUsedOn: null, ...added }
  const notes = ['Store the secret key now. It is not shown again; the service stores only its hash.', ...advice]
  return { data: record({ publicKey, secretKey, ...stored }, notes.join('\n')), created: { publicKey } }
}

async function storeKey(client: Queryable, key: NewKey) {
  if ('operator' in key) return createOperatorKeys(client).add(key)
  return createAccessKeys(client)
    .add(key)
    .catch((error: unknown) => {
      if (!hasState(error, FOREIGN_KEY_VIOLATION)) throw error
      const list = 'mid' in key.owner ? 'ops merchants list' : 'ops partners list'
      throw new CommandError(`${Object.entries(key.owner).flat().join(' ')} does not exist: see ${list}`)
    })
}
