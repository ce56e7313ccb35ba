import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'

/** A new secret in the form of Standard Webhooks' libraries: `whsec_` and 32 random bytes in base64. */
export const newSigningSecret = (): string => PREFIX + randomBytes(32).toString('base64')

/**
 * Headers by which a receiver verifies a webhook (Standard Webhooks 1.0.0). While a secret is being changed, the old and the
 * new secret sign: the receiver accepts the webhook if one signature is good.
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
