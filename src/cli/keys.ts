import * as z from 'zod'
import { FOREIGN_KEY_VIOLATION, hasState } from '../db/outage.ts'
import { errorText, identifier, text } from '../fields.ts'
import { type AccessKeyListing, createAccessKeys } from '../tenants/access-keys.ts'
import { hashSecret, mintKeyPair } from '../tenants/credentials.ts'
import { changingCommand, command } from './command.ts'
import { CommandError } from './errors.ts'
import { listed, record, shown } from './output.ts'

/** A secret key that was pasted by mistake must not get into the audit. */
const PUBLIC_KEY_RULE = 'must be the public key, pk_…'

const OneKey = z.object({
  publicKey: z.string(errorText(PUBLIC_KEY_RULE)).regex(/^pk_[\w-]{1,64}$/, PUBLIC_KEY_RULE),
})
const Owner = z.object({ mid: identifier.optional(), pid: identifier.optional() })

export const keyCommands = [
  changingCommand('keys create', 'Make a key, whose secret is shown once', {
    usage: '(--mid M1 [--may-refund] | --pid P1) [--label text]',
    schema: Owner.extend({ mayRefund: z.boolean().optional(), label: text(100).optional() })
      .refine(({ mid, pid }) => (mid === undefined) !== (pid === undefined), 'give one of --mid and --pid')
      .refine(({ mid, mayRefund }) => mid !== undefined || !mayRefund, '--may-refund is for a key of a merchant'),
    async run({ mid, pid, mayRefund, label = null }, { change, now }) {
      const { publicKey, secretKey } = mintKeyPair()
      const owner = mid === undefined ? { pid: pid as string } : { mid }
      const newKey = { publicKey, secretHash: hashSecret(secretKey), owner, label, mayRefund, now }
      return change(async (client) => {
        const added = await createAccessKeys(client)
          .add(newKey)
          .catch((error: unknown) => {
            if (!hasState(error, FOREIGN_KEY_VIOLATION)) throw error
            throw new CommandError(`${Object.entries(owner).flat().join(' ')} is unknown`)
          })
        return shownOnce(added, secretKey)
      })
    },
  }),

  changingCommand('keys rotate', 'Make a new key in place of one, which counts on', {
    usage: '--public-key pk_… [--label text]',
    schema: OneKey.extend({ label: text(100).optional() }),
    run: ({ publicKey: old, label }, { change, now }) =>
      change(async (client) => {
        const keys = createAccessKeys(client)
        const found = (await keys.list()).find((one) => one.publicKey === old && one.revokedAt === null)
        if (found === undefined) throw new CommandError('that public key is unknown or revoked: see ops keys list')
        const { publicKey, secretKey } = mintKeyPair()
        const owner = found.mid === null ? { pid: found.pid as string } : { mid: found.mid }
        const kept = { owner, label: label ?? found.label, mayRefund: found.mayRefund, now }
        const added = await keys.add({ publicKey, secretHash: hashSecret(secretKey), ...kept })
        return shownOnce(added, secretKey, `\nThe old key counts until: ops keys revoke --public-key ${old}`)
      }),
  }),

  command('keys list', 'List keys, and the day on which each was last used', {
    usage: '[--mid M1 | --pid P1]',
    schema: Owner.refine(({ mid, pid }) => mid === undefined || pid === undefined, 'give --mid or --pid, not both'),
    run: async (owner, { db }) =>
      listed(
        'publicKey, mid, pid, label, mayRefund, createdAt, lastUsedOn, revokedAt',
        await createAccessKeys(db).list(owner),
        'no keys',
      ),
  }),

  changingCommand('keys revoke', 'End a key for good', {
    usage: '--public-key pk_…',
    schema: OneKey,
    run: ({ publicKey }, { change, now }) =>
      change(async (client) => {
        const revoked = await createAccessKeys(client).revoke(publicKey, now)
        if (revoked === undefined) throw new CommandError('that public key is unknown')
        return shown(revoked)
      }),
  }),
]

const SHOWN_ONCE = 'Keep the secret key now: it is shown this once, and only its hash is stored.'

function shownOnce({ lastUsedOn: _, revokedAt: __, ...added }: AccessKeyListing, secretKey: string, next = '') {
  const { publicKey, mid, pid, ...rest } = added
  return {
    json: { publicKey, secretKey, mid, pid, ...rest },
    text: `${record({ publicKey, secretKey, ...(mid === null ? { pid } : { mid }), ...rest })}\n${SHOWN_ONCE}${next}`,
    made: { publicKey },
  }
}
