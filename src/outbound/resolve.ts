import { Resolver } from 'node:dns/promises'

/** Longest wait for the name servers at the first try; the second try takes twice as long. */
const TRY_MS = 1_500

/** Resolves to the addresses of a name, or rejects with an error with a `code`, such as ENOTFOUND. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<string[]>

/**
 * Queries the DNS directly; /etc/hosts is not read. getaddrinfo has two threads for the whole process: two names with dead
 * servers would block every other look-up, such as the database's name.
 */
export const resolve: Resolve = async (name, signal) => {
  // localhost is not looked up (RFC 6761). A call is made only when both addresses are allowed.
  if (/(^|\.)localhost\.?$/.test(name)) return ['127.0.0.1', '::1']
  // Each name gets a resolver of its own, which can be cancelled without the others. Making a resolver is cheap.
  const resolver = new Resolver({ timeout: TRY_MS, tries: 2 })
  signal.addEventListener('abort', () => resolver.cancel())
  const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  const addresses = [ipv4, ipv6].flatMap((found) => (found.status === 'fulfilled' ? found.value : []))
  if (addresses.length === 0 && ipv4.status === 'rejected') throw ipv4.reason
  return addresses
}
