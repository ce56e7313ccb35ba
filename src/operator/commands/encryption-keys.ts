import type { DatabaseConfig } from '../../config.ts'
import type { EncryptionKeys } from '../../platform/encryption.ts'
import { CommandError } from './errors.ts'

/** Returns the secret encryption keys. Throws if WEBHOOK_SEALING_KEY is not set. */
export function requireKeys({ webhooks: { encryptionKeys } }: Pick<DatabaseConfig, 'webhooks'>): EncryptionKeys {
  if (encryptionKeys.length > 0) return encryptionKeys
  throw new CommandError(
    'set WEBHOOK_SEALING_KEY for ops and for the service: it encrypts secrets at rest; create a key with "openssl rand -base64 32"',
  )
}
