import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { readDatabaseConfig } from '../config.ts'
import { newSigningSecret } from '../gateway/webhooks/signature.ts'
import { contextOf, decryptSecret, type EncryptionKeys, encryptSecret } from '../platform/encryption.ts'
import { MID, makeForDemo } from './demo.ts'

/** Port and signing secret of the program that receives the demo merchant's webhooks on this machine. */
export type DemoWebhook = { port: number; secret: string }

const ENDPOINT = 'ep_demo'

/**
 * Sets the variables that webhooks need, unless they are already set: an encryption key, stored in `directory`, and
 * this machine as an allowed network. The service and `npm run ops` both call this function, so that both programs use
 * the same key.
 */
export function useWebhookSettings(directory: string): void {
  if (!process.env.WEBHOOK_SEALING_KEY_FILE) process.env.WEBHOOK_SEALING_KEY ||= storedKey(directory)
  process.env.WEBHOOK_ALLOWED_NETWORKS ||= '127.0.0.1/32'
}

function storedKey(directory: string): string {
  const file = join(directory, 'webhook-sealing-key')
  try {
    // The flag `wx` never overwrites a file. If two programs start concurrently, the second program reads the key that
    // the first one wrote.
    writeFileSync(file, randomBytes(32).toString('base64'), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return readFileSync(file, 'utf8')
}

/**
 * Creates the demo merchant's webhook endpoint if it is missing, and enables it unless an operator has disabled it. The
 * endpoint retains its secret as long as the encryption key can decrypt the secret. The receiver's port is the
 * service's port plus 3, so that two demos on one machine do not receive each other's webhooks.
 */
export async function ensureDemoWebhook(databaseUrl: string, now: Date): Promise<DemoWebhook> {
  const { encryptionKeys } = readDatabaseConfig(process.env).webhooks
  const port = (Number(process.env.PORT) || 3000) + 3
  return makeForDemo(databaseUrl, async (client) => {
    const secret = (await findSecret(client, encryptionKeys)) ?? newSigningSecret()
    await client.query(
      `insert into webhook_endpoints as e (mid, endpoint_id, kind, url, label, secret, created_at)
       values ($1, $2, 'webhook', $3, 'demo', $4, $5)
       on conflict (mid, endpoint_id) do update
         set url = excluded.url, secret = excluded.secret, failing_since = null,
             disabled_at = case when e.disabled_reason = 'operator' then e.disabled_at end,
             disabled_reason = case when e.disabled_reason = 'operator' then e.disabled_reason end`,
      [MID, ENDPOINT, `http://127.0.0.1:${port}/webhooks`, encryptSecret(encryptionKeys, secret, OWNER), now],
    )
    return { port, secret }
  })
}

const OWNER = contextOf({ mid: MID, endpointId: ENDPOINT })

async function findSecret(client: pg.Client, encryptionKeys: EncryptionKeys): Promise<string | undefined> {
  const { rows } = await client.query<{ secret: Buffer }>(
    'select secret from webhook_endpoints where mid = $1 and endpoint_id = $2',
    [MID, ENDPOINT],
  )
  try {
    return rows[0] && decryptSecret(encryptionKeys, rows[0].secret, OWNER)
  } catch {
    // Another key encrypted the secret, for example before a key was set in `.env`, so the secret cannot be read.
    return undefined
  }
}
