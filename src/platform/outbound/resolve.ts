import { Resolver } from 'node:dns/promises'

/**
 * Longest wait for a name server before the next server is tried. Each round of all servers takes twice as long as the
 * previous round. The time is so short that a call to an acquirer, which resolves names for at most 500 ms, reaches the
 * second server if the first server does not respond.
 */
const TRY_MS = 200
const TRIES = 4

/**
 * Resolves to the addresses of a name, or rejects with an error with a `code`, such as ENOTFOUND. Aborting `signal`
 * stops the look-up with the addresses that have arrived.
 */
export type Resolve = (name: string, signal: AbortSignal) => Promise<string[]>

/**
 * Queries the DNS directly, without /etc/hosts and search domains. getaddrinfo has two threads for the whole process:
 * two names with unresponsive name servers would block every other look-up, such as the look-up of the database's name.
 */
export const resolve: Resolve = async (name, signal) => {
  // localhost is not looked up (RFC 6761). A call to localhost is sent only if both addresses are allowed.
  if (/(^|\.)localhost\.?$/.test(name)) return ['127.0.0.1', '::1']
  // Each look-up gets its own resolver, which can be cancelled without the other look-ups. Creating a resolver is
  // cheap.
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES })
  signal.addEventListener('abort', () => resolver.cancel())
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const addresses = [ipv4, ipv6].flatMap((found) => (found.status === 'fulfilled' ? found.value : []))
  if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
  return addresses
}
