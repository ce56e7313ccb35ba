import * as z from 'zod'
import { createAccessKeys, type NewAccessKey, USUAL_RIGHTS } from '../../gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../gateway/tenants/credentials.ts'
import { FOREIGN_KEY_VIOLATION, hasState } from '../../platform/db/outage.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { matching, personName } from '../../platform/fields.ts'
import { RIGHTS } from '../../platform/rights.ts'
import { dayText, toIstDay } from '../../platform/time.ts'
import { CONSOLE_RIGHTS, createOperatorKeys, type NewOperatorKey } from '../console/operator-keys.ts'
import { change, read } from './command.ts'
import { CommandError, existing } from './errors.ts'
import { flag, oneOf, optional, toggle } from './field.ts'
import { LABEL, MID, PID } from './fields.ts'
import { record, table } from './result.ts'

/** Accepts only the form of a public key, so that the audit stores no secret key that the operator pasted by mistake. */
const publicKey = flag(matching(/^pk_[\w-]{1,64}$/, 'must be a public key, pk_…'), 'KEY', 'Public key', 'such as pk_…')
const operator = flag(personName, 'NAME', 'Operator', 'who signs in to the console')
const expiresOn = optional(flag(dayText, 'DAY', 'Last valid day', 'IST; default: the key does not expire'))
const rightsText = z.string().transform((list) => list.split(',').map((name) => name.trim()))
const RIGHTS_HINT = `of ${RIGHTS.join(', ')}; default: all except refund; for an operator read or read,act`
const rights = optional(flag(rightsText, 'LIST', 'Rights of the key', RIGHTS_HINT))
const mayRefund = optional(toggle('Add the right refund'))

export const keyCommands = [
  change('keys create', 'Create an API key; its secret is shown once', {
    note: 'With --operator, the key is for the operator console only.',
    fields: {
      owner: oneOf(
        [
          { mid: { ...MID, label: 'Create a key for this merchant' }, rights, mayRefund },
          { pid: { ...PID, label: 'Create a key for this partner' }, rights },
          { operator, rights },
        ],
        rightsError,
      ),
      ...{ expiresOn, label: LABEL },
    },
    run({ owner: { mid, pid, operator, rights = USUAL_RIGHTS, mayRefund }, expiresOn, label = null }, { client, now }) {
      const key = { label, expiresOn, now }
      if (operator !== undefined)
        return addKey(client, { ...key, operator, rights: CONSOLE_RIGHTS.filter((right) => rights.includes(right)) })
      if (mid === undefined) return addKey(client, { ...key, owner: { pid: pid as string }, rights: ['list'] })
      const given = RIGHTS.filter((right) => rights.includes(right) || (mayRefund && right === 'refund'))
      return addKey(client, { ...key, owner: { mid }, rights: given })
    },
  }),

  change('keys rotate', 'Create a replacement for an API key', {
    note: 'The new key has the rights of the old key, but not its expiry. The old key remains valid until it expires or you revoke it.',
    fields: { publicKey, expiresOn, label: { ...LABEL, hint: 'for operators; default: that of the old key' } },
    async run({ publicKey: old, expiresOn, label }, { client, now }) {
      const found = (await listKeys(client, {})).find((one) => one.publicKey === old)
      if (!found || found.revokedAt !== null || (found.expiresOn !== null && found.expiresOn < toIstDay(now)))
        throw new CommandError('the public key does not exist, is revoked or has expired: see ops keys list')
      const expiry = found.expiresOn === null ? '' : `the end of ${found.expiresOn} (IST) or until `
      const revoking = `The old key remains valid until ${expiry}you revoke it: ops keys revoke --public-key ${old}`
      const key = { label: label ?? found.label, expiresOn, now }
      if (found.operator !== null)
        return addKey(client, { ...key, operator: found.operator, rights: found.rights }, revoking)
      const owner = found.mid === null ? { pid: found.pid as string } : { mid: found.mid }
      return addKey(client, { ...key, owner, rights: found.rights }, revoking)
    },
  }),

  read('keys list', 'List API keys and when each was last used', {
    fields: { owner: oneOf([{}, { mid: MID }, { pid: PID }, { operator }]) },
    async run({ owner }, { db }) {
      const columns = 'publicKey, mid, pid, operator, label, rights, expiresOn, createdAt, lastUsedOn, revokedAt'
      return table(columns, await listKeys(db, owner), 'No keys.')
    },
  }),

  change('keys revoke', 'Revoke an API key permanently', {
    fields: { publicKey },
    async run({ publicKey }, { client, now }) {
      const revoked =
        (await createAccessKeys(client).revoke(publicKey, now)) ??
        (await createOperatorKeys(client).revoke(publicKey, now))
      return record(existing(revoked, 'the public key', 'keys list'), `Key ${publicKey} revoked.`)
    },
  }),
]

type Owner = Partial<Record<'mid' | 'pid' | 'operator', string | undefined>>

/** Lists the keys of merchants and partners, then the keys of operators. */
export async function listKeys(db: Queryable, { mid, pid, operator }: Owner) {
  const accessKeys = operator === undefined ? await createAccessKeys(db).list({ mid, pid }) : []
  const operatorKeys = (mid ?? pid) === undefined ? await createOperatorKeys(db).list({ operator }) : []
  return [
    ...accessKeys.map((key) => ({ ...key, operator: null })),
    ...operatorKeys.map((key) => ({ ...key, mid: null, pid: null, lastUsedOn: null })),
  ]
}

function rightsError({ mid, pid, rights = [] }: Owner & { rights?: string[] | undefined }): string | undefined {
  const areOf = (known: readonly string[]) => rights.every((one) => known.includes(one))
  if (mid !== undefined && !areOf(RIGHTS)) return `--rights must be a comma-separated list of ${RIGHTS.join(', ')}`
  if (pid !== undefined && !areOf(['list'])) return 'the key of a partner has only the right list: omit --rights'
  const isOfOperator = (mid ?? pid) === undefined
  return isOfOperator && !(rights.includes('read') && areOf(CONSOLE_RIGHTS))
    ? 'the key of an operator needs --rights read or --rights read,act'
    : undefined
}

type NewKey = NewAccessKey | NewOperatorKey
type Unminted<Key> = Key extends NewKey ? Omit<Key, 'publicKey' | 'secretHash'> : never

async function addKey(client: Queryable, key: Unminted<NewKey>, ...advice: string[]) {
  if (key.expiresOn !== undefined && key.expiresOn < toIstDay(key.now))
    throw new CommandError('--expires-on is in the past: give the last day (IST) on which the key is valid')
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
