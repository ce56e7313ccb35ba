import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { escapeJson } from '../../platform/printable.ts'
import type { Values } from '../commands/field.ts'
import type { UploadedFile } from './uploads.ts'

/** A change that an operator must confirm. */
export type PendingChange = {
  /** The command, such as `refunds create`, and its values. */
  command: string
  values: Values
  /** The uploaded file that the command reads. */
  file?: UploadedFile | undefined
  /** What the page has shown: the figures of the change. */
  confirmed: string
  /** The page that follows the change, relative to the page of the form. */
  back: string
  publicKey: string
  /** The moment at which the form was shown, in milliseconds since 1970. */
  shownAt: number
  /** The audit's unique identifier of the change, so that a change is made at most once. */
  nonce: string
}

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
      const pending: PendingChange = JSON.parse(change)
      const isCurrent = now.getTime() - pending.shownAt <= validMs
      return isCurrent && pending.publicKey === publicKey ? pending : undefined
    },
  }
}
