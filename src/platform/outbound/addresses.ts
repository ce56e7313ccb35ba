import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * `allowed` means an address in a network on the operator's list, and `public` an address on the internet. Any other
 * address is `refused`.
 */
type AddressVerdict = 'allowed' | 'public' | 'refused'

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')
/**
 * Prefix of IPv6 addresses through which IPv6-only hosts reach IPv4 addresses. The last 32 bits are the IPv4 address
 * (RFC 6052).
 */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
/**
 * Azure serves a machine's settings and secrets at this address. The address is listed here, because no registry lists
 * it as special.
 */
const AZURE_PLATFORM = '168.63.129.16'

/**
 * Classifies IP addresses by IANA's registries of special-purpose addresses and by the operator's list of networks
 * (CIDR).
 */
export function createAddressJudge(allowedNetworks: readonly string[]): (address: string) => AddressVerdict {
  const networks = allowedNetworks.map((network) => ipaddr.parseCIDR(network))
  const isListed = (address: ipaddr.IPv4 | ipaddr.IPv6) =>
    networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))

  return (text) => {
    // Rejects unusual notations, because ipaddr.js also accepts 0177.0.0.1 and 127.1, which no resolver returns.
    if (isIP(text) === 0) return 'refused'
    const written = ipaddr.parse(text)
    const reached = withoutIPv6Around(written)
    if (isListed(written) || isListed(reached)) return 'allowed'
    return isPublic(reached) ? 'public' : 'refused'
  }
}

/** Returns the IPv4 address inside an IPv4-mapped or NAT64 address, otherwise the address itself. */
function withoutIPv6Around(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (!(address instanceof ipaddr.IPv6)) return address
  const wraps = address.isIPv4MappedAddress() || address.match(NAT64)
  return wraps ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  // Rejects special ranges, which include older encodings of IPv4 in IPv6 (6to4, Teredo).
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv4) return address.toString() !== AZURE_PLATFORM
  // Only 2000::/3 is public. ipaddr.js also treats IPv4-compatible (::7f00:1) and unassigned addresses as unicast.
  return address.match(GLOBAL_UNICAST)
}
