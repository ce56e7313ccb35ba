import { createAcquirers } from '../../gateway/acquirers/acquirers.ts'
import { openAccounts } from '../../gateway/acquirers/stored-accounts.ts'
import { LIMITS } from '../../limits.ts'
import { createOutboundClient } from '../../platform/outbound/http-client.ts'
import type { Context } from './command.ts'

/** Disables log and metrics, because a command makes one call to the acquirer and prints its error to the operator. */
const OPTIONS = {
  log: { warn: () => undefined, error: () => undefined },
  onCall: () => undefined,
  limits: LIMITS.acquirers,
  elapsedMs: () => performance.now(),
}

/**
 * Loads the acquirer accounts for a command. `clientOf` returns the client for an acquirer that creates links through
 * its API.
 */
export function reachAccounts({ config, db, now }: Pick<Context, 'config' | 'db' | 'now'>) {
  const accounts = openAccounts(db, config, LIMITS.lookUps)
  const { allowedNetworks } = config.webhooks
  const http = createOutboundClient({ allowedNetworks, limits: LIMITS.outbound, now: () => now })
  return { accounts, http, clientOf: createAcquirers(accounts, http, OPTIONS).clientOf }
}
