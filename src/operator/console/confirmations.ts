import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { escapeJson } from '../cli/harmless.ts'

const Change = z.object({
  /** The command, such as `refunds create`, and its arguments as on the command line. */
  command: z.string(),
  args: z.array(z.string()),
  /** SHA-256 of the uploaded file that the command reads, in hex. */
  sha256: z.string().optional(),
  /** The page that follows the change, relative to the page of the form. */
  back: z.string(),
  publicKey: z.string(),
  /** The moment at which the form was shown, in milliseconds since 1970. */
  shownAt: z.number(),
  /** The audit's unique identifier of the change, so that a change is made at most once. */
  nonce: z.string(),
})

/** A change that an operator must confirm. */
export type PendingChange = z.output<typeof Change>

/**
 * Signs the changes that forms show, so that the console runs exactly the change that the operator has seen, for as
 * long as `validMs` after the form was shown. The key is random: a restart invalidates every open form.
 */
export function createConfirmations(validMs: number) {
  const key = randomBytes(32)
  const macOf = (change: string) => createHmac('sha256', key).update(change).digest()
  return {
    /** Returns the hidden fields of the form. */
    sign(pending: PendingChange): { change: string; mac: string } {
      const change = escapeJson(JSON.stringify(pending))
      return { change, mac: macOf(change).toString('hex') }
    },

    /** Returns the change of a valid form; undefined if the form is altered, too old or another operator's. */
    verify({ change, mac }: { change: string; mac: string }, publicKey: string, now: Date): PendingChange | undefined {
      const [sent, expected] = [Buffer.from(mac, 'hex'), macOf(change)]
      if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) return undefined
      const pending = Change.parse(JSON.parse(change))
      const isCurrent = now.getTime() - pending.shownAt <= validMs
      return isCurrent && pending.publicKey === publicKey ? pending : undefined
    },
  }
}
