import { createSecretKey } from 'node:crypto'
import { addEndpoint } from '../../src/gateway/webhooks/endpoints.ts'
import { newSigningSecret } from '../../src/gateway/webhooks/signature.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { contextOf, type EncryptionKeys, encryptSecret } from '../../src/platform/encryption.ts'
import { unique } from './tenants.ts'

/** Default keys that encrypt webhook secrets in tests. */
export const ENCRYPTION_KEYS: EncryptionKeys = [createSecretKey(Buffer.alloc(32, 7))]

/** Allows these networks for webhooks and return-URL callbacks. */
export const allow = (...networks: string[]) => ({ webhook: networks, 'return call': networks })

/** Creates a webhook endpoint of the merchant, which signs with `secret`. */
export async function newWebhook(
  db: Database,
  { mid, url, endpointId = unique('ep'), encryptionKeys = ENCRYPTION_KEYS }: NewWebhook,
  now: Date,
): Promise<{ mid: string; endpointId: string; secret: string }> {
  const secret = newSigningSecret()
  const encrypted = encryptSecret(encryptionKeys, secret, contextOf({ mid, endpointId }))
  const added = await addEndpoint(db, { mid, endpointId, url, secret: encrypted, now })
  if (added.length === 0) throw new Error(`there is no merchant ${mid}`)
  return { mid, endpointId, secret }
}

type NewWebhook = { mid: string; url: string; endpointId?: string; encryptionKeys?: EncryptionKeys }
