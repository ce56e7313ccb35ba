import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'

/** Returns a new secret in the format of Standard Webhooks: `whsec_` followed by 32 random bytes in base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(32).toString('base64')

/**
 * Headers with which a receiver verifies a webhook (Standard Webhooks 1.0.0). During a rotation, the service signs with
 * the old and the new secret, and the receiver accepts the webhook if one signature is valid.
 */
export function signatureHeaders(webhook: { id: string; sentAt: Date; body: string; secrets: readonly string[] }) {
  const timestamp = Math.floor(webhook.sentAt.getTime() / 1000).toString()
  const signed = `${webhook.id}.${timestamp}.${webhook.body}`
  const signatures = webhook.secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
  })
  return { 'webhook-id': webhook.id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
