import * as z from 'zod'
import { createAccessKeys, type NewAccessKey, USUAL_RIGHTS } from '../../gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../gateway/tenants/credentials.ts'
import { FOREIGN_KEY_VIOLATION, hasState } from '../../platform/db/outage.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { identifier, matching, text } from '../../platform/fields.ts'
import { RIGHTS } from '../../platform/rights.ts'
import { dayText, toIstDay } from '../../platform/time.ts'
import { atomicCommand, command } from './command.ts'
import { record, table } from './data.ts'
import { CommandError } from './errors.ts'

const OneKey = z.object({
  /**
   * Accepts only the form of a public key, so that the audit does not store a secret key that the operator pasted by
   * mistake.
   */
  publicKey: matching(/^pk_[\w-]{1,64}$/, 'must be a public key, pk_…'),
})
const Owner = z.object({ mid: identifier.optional(), pid: identifier.optional() })
const RIGHTS_RULE = `must be a comma-separated list of ${RIGHTS.join(', ')}`
const rightsText = z
  .string()
  .transform((list) => list.split(',').map((name) => name.trim()))
  .refine((list) => list.every((name) => RIGHTS.some((right) => right === name)), RIGHTS_RULE)
  .transform((list) => RIGHTS.filter((right) => list.includes(right)))

export const keyCommands = [
  atomicCommand('keys create', 'Create an API key; its secret is shown once', {
    usage: '(--mid MID [--rights LIST] [--may-refund] | --pid PID) [--expires-on DAY] [--label TEXT]',
    schema: Owner.extend({
      rights: rightsText.optional(),
      mayRefund: z.boolean().optional(),
      expiresOn: dayText.optional(),
      label: text(100).optional(),
    })
      .refine(({ mid, pid }) => (mid === undefined) !== (pid === undefined), 'give either --mid or --pid')
      .refine(
        ({ pid, rights = [], mayRefund }) => pid === undefined || (rights.every((one) => one === 'list') && !mayRefund),
        'the key of a partner has only the right list: omit --rights and --may-refund',
      ),
    run({ mid, pid, rights, mayRefund, expiresOn, label = null }, { client, now }) {
      const key = { label, expiresOn, now }
      if (mid === undefined) return addKey(client, { ...key, owner: { pid: pid as string }, rights: ['list'] })
      const given = new Set([...(rights ?? USUAL_RIGHTS), ...(mayRefund ? (['refund'] as const) : [])])
      return addKey(client, { ...key, owner: { mid }, rights: [...given] })
    },
  }),

  atomicCommand('keys rotate', 'Create a replacement for an API key', {
    usage: '--public-key KEY [--expires-on DAY] [--label TEXT]',
    note: 'The new key has the rights of the old key, but not its expiry. The old key remains valid until it expires or you revoke it.',
    schema: OneKey.extend({ expiresOn: dayText.optional(), label: text(100).optional() }),
    async run({ publicKey: old, expiresOn, label }, { client, now }) {
      const found = (await createAccessKeys(client).list()).find((one) => one.publicKey === old)
      if (!found || found.revokedAt !== null || (found.expiresOn !== null && found.expiresOn < toIstDay(now))) {
        throw new CommandError('the public key does not exist, is revoked or has expired: see ops keys list')
      }
      const { mid, pid, rights } = found
      const owner = mid === null ? { pid: pid as string } : { mid }
      const expiry = found.expiresOn === null ? '' : `the end of ${found.expiresOn} (IST) or until `
      const revoking = `The old key remains valid until ${expiry}you revoke it: ops keys revoke --public-key ${old}`
      return addKey(client, { owner, label: label ?? found.label, rights, expiresOn, now }, revoking)
    },
  }),

  command('keys list', 'List API keys and when each was last used', {
    usage: '[--mid MID | --pid PID]',
    schema: Owner.refine(({ mid, pid }) => mid === undefined || pid === undefined, 'give either --mid or --pid'),
    async run(owner, { db }) {
      const columns = 'publicKey, mid, pid, label, rights, expiresOn, createdAt, lastUsedOn, revokedAt'
      return table(columns, await createAccessKeys(db).list(owner), 'No API keys.')
    },
  }),

  atomicCommand('keys revoke', 'Revoke an API key permanently', {
    usage: '--public-key KEY',
    schema: OneKey,
    async run({ publicKey }, { client, now }) {
      const revoked = await createAccessKeys(client).revoke(publicKey, now)
      if (revoked === undefined) throw new CommandError('the public key does not exist: see ops keys list')
      return record(revoked, `Key ${publicKey} revoked.`)
    },
  }),
]

async function addKey(client: Queryable, key: Omit<NewAccessKey, 'publicKey' | 'secretHash'>, ...advice: string[]) {
  if (key.expiresOn !== undefined && key.expiresOn < toIstDay(key.now)) {
    throw new CommandError('--expires-on is in the past: give the last day (IST) on which the key is valid')
  }
  const { publicKey, secretKey } = mintKeyPair()
  const added = await createAccessKeys(client)
    .add({ publicKey, secretHash: hashSecret(secretKey), ...key })
    .catch((error: unknown) => {
      if (!hasState(error, FOREIGN_KEY_VIOLATION)) throw error
      const list = 'mid' in key.owner ? 'ops merchants list' : 'ops partners list'
      throw new CommandError(`${Object.entries(key.owner).flat().join(' ')} does not exist: see ${list}`)
    })
  const { mid, pid, label, rights, expiresOn, createdAt } = added
  const fields = { publicKey, secretKey, mid, pid, label, rights, expiresOn, createdAt }
  const notes = ['Store the secret key now. It is not shown again; the service stores only its hash.', ...advice]
  return { data: record(fields, notes.join('\n')), created: { publicKey } }
}
