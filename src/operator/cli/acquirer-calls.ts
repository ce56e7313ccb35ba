import { type Accounts, createAcquirers } from '../../gateway/acquirers/acquirers.ts'
import type { AcquirerClient } from '../../gateway/acquirers/client.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { LIMITS } from '../../limits.ts'
import { createOutboundClient, type HttpClient } from '../../platform/outbound/http-client.ts'
import type { Context } from './command.ts'

/** No log and no metrics: a command makes one call to the acquirer, and shows the call's error to the operator. */
const OPTIONS = {
  log: { warn: () => undefined, error: () => undefined },
  onCall: () => undefined,
  limits: LIMITS.acquirers,
  elapsedMs: () => performance.now(),
}

/** The accounts at acquirers as a command reaches them: over `http`, or by a client that makes its own links. */
export function reachAccounts({ config, db, now }: Pick<Context, 'config' | 'db' | 'now'>): {
  accounts: Accounts
  http: HttpClient
  clientOf: (account: string) => Promise<AcquirerClient | undefined>
} {
  const accounts = openAccounts(db, config, LIMITS.lookUps)
  const { allowedNetworks } = config.webhooks
  const http = createOutboundClient({ allowedNetworks, limits: LIMITS.outbound, now: () => now })
  return { accounts, http, clientOf: createAcquirers(accounts, http, OPTIONS).clientOf }
}
