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
  /** Only text in the form of a public key, so that a secret key pasted by mistake does not get into the audit. */
  publicKey: matching(/^pk_[\w-]{1,64}$/, 'must be the public key, pk_…'),
})
const Owner = z.object({ mid: identifier.optional(), pid: identifier.optional() })

export const keyCommands = [
  atomicCommand('keys create', 'Make a key, whose secret is shown once', {
    usage: '(--mid M1 [--may-refund] | --pid P1) [--label text]',
    schema: Owner.extend({ mayRefund: z.boolean().optional(), label: text(100).optional() })
      .refine(({ mid, pid }) => (mid === undefined) !== (pid === undefined), 'give one of --mid and --pid')
      .refine(({ mid, mayRefund }) => mid !== undefined || !mayRefund, '--may-refund is for a key of a merchant'),
    run: ({ mid, pid, mayRefund, label = null }, { client, now }) =>
      addKey(client, { owner: mid === undefined ? { pid: pid as string } : { mid }, label, mayRefund, now }),
  }),

  atomicCommand('keys rotate', 'Make a new key in place of one, which counts on', {
    usage: '--public-key pk_… [--label text]',
    schema: OneKey.extend({ label: text(100).optional() }),
    async run({ publicKey: old, label }, { client, now }) {
      const found = (await createAccessKeys(client).list()).find((one) => one.publicKey === old)
      if (!found || found.revokedAt !== null) {
        throw new CommandError('that public key is unknown or revoked: see ops keys list')
      }
      const { mid, pid, mayRefund } = found
      const owner = mid === null ? { pid: pid as string } : { mid }
      const revoking = `The old key counts until: ops keys revoke --public-key ${old}`
      return addKey(client, { owner, label: label ?? found.label, mayRefund, now }, revoking)
    },
  }),

  command('keys list', 'List keys, and the day on which each was last used', {
    usage: '[--mid M1 | --pid P1]',
    schema: Owner.refine(({ mid, pid }) => mid === undefined || pid === undefined, 'give --mid or --pid, not both'),
    async run(owner, { db }) {
      const columns = 'publicKey, mid, pid, label, mayRefund, createdAt, lastUsedOn, revokedAt'
      return table(columns, await createAccessKeys(db).list(owner), 'no keys')
    },
  }),

  atomicCommand('keys revoke', 'End a key for good', {
    usage: '--public-key pk_…',
    schema: OneKey,
    async run({ publicKey }, { client, now }) {
      const revoked = await createAccessKeys(client).revoke(publicKey, now)
      if (revoked === undefined) throw new CommandError('that public key is unknown')
      return record(revoked)
    },
  }),
]

async function addKey(client: Queryable, key: Omit<NewAccessKey, 'publicKey' | 'secretHash'>, ...advice: string[]) {
  const { publicKey, secretKey } = mintKeyPair()
  const added = await createAccessKeys(client)
    .add({ publicKey, secretHash: hashSecret(secretKey), ...key })
    .catch((error: unknown) => {
      if (!hasState(error, FOREIGN_KEY_VIOLATION)) throw error
      throw new CommandError(`${Object.entries(key.owner).flat().join(' ')} is unknown`)
    })
  const { mid, pid, label, mayRefund, createdAt } = added
  const fields = { publicKey, secretKey, mid, pid, label, mayRefund, createdAt }
  const notes = ['Keep the secret key now: it is shown this once, and only its hash is stored.', ...advice]
  return { data: record(fields, notes.join('\n')), made: { publicKey } }
}
