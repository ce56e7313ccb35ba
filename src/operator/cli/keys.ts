import * as z from 'zod'
import { createAccessKeys, type NewAccessKey } from '../../gateway/tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../../gateway/tenants/credentials.ts'
import { FOREIGN_KEY_VIOLATION, hasState } from '../../platform/db/outage.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { identifier, matching, text } from '../../platform/fields.ts'
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

export const keyCommands = [
  atomicCommand('keys create', 'Create an API key; its secret is shown once', {
    usage: '(--mid MID [--may-refund] | --pid PID) [--label TEXT]',
    schema: Owner.extend({ mayRefund: z.boolean().optional(), label: text(100).optional() })
      .refine(({ mid, pid }) => (mid === undefined) !== (pid === undefined), 'give either --mid or --pid')
      .refine(
        ({ mid, mayRefund }) => mid !== undefined || !mayRefund,
        '--may-refund requires --mid: only merchants refund payments',
      ),
    run: ({ mid, pid, mayRefund, label = null }, { client, now }) =>
      addKey(client, { owner: mid === undefined ? { pid: pid as string } : { mid }, label, mayRefund, now }),
  }),

  atomicCommand('keys rotate', 'Create a replacement for an API key', {
    usage: '--public-key KEY [--label TEXT]',
    note: 'The old key remains valid until you revoke it with ops keys revoke.',
    schema: OneKey.extend({ label: text(100).optional() }),
    async run({ publicKey: old, label }, { client, now }) {
      const found = (await createAccessKeys(client).list()).find((one) => one.publicKey === old)
      if (!found || found.revokedAt !== null) {
        throw new CommandError('the public key does not exist or is revoked: see ops keys list')
      }
      const { mid, pid, mayRefund } = found
      const owner = mid === null ? { pid: pid as string } : { mid }
      const revoking = `The old key remains valid until you revoke it: ops keys revoke --public-key ${old}`
      return addKey(client, { owner, label: label ?? found.label, mayRefund, now }, revoking)
    },
  }),

  command('keys list', 'List API keys and when each was last used', {
    usage: '[--mid MID | --pid PID]',
    schema: Owner.refine(({ mid, pid }) => mid === undefined || pid === undefined, 'give either --mid or --pid'),
    async run(owner, { db }) {
      const columns = 'publicKey, mid, pid, label, mayRefund, createdAt, lastUsedOn, revokedAt'
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
  const { publicKey, secretKey } = mintKeyPair()
  const added = await createAccessKeys(client)
    .add({ publicKey, secretHash: hashSecret(secretKey), ...key })
    .catch((error: unknown) => {
      if (!hasState(error, FOREIGN_KEY_VIOLATION)) throw error
      const list = 'mid' in key.owner ? 'ops merchants list' : 'ops partners list'
      throw new CommandError(`${Object.entries(key.owner).flat().join(' ')} does not exist: see ${list}`)
    })
  const { mid, pid, label, mayRefund, createdAt } = added
  const fields = { publicKey, secretKey, mid, pid, label, mayRefund, createdAt }
  const notes = ['Store the secret key now. It is not shown again; the service stores only its hash.', ...advice]
  return { data: record(fields, notes.join('\n')), created: { publicKey } }
}
