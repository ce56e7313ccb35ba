import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { Config } from '../../config.ts'
import { hashSecret, secretMatches } from '../../gateway/tenants/credentials.ts'

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']
const LOOPBACK = networksOf(['127.0.0.0/8', '::1/128'])

/**
 * Headers that a proxy adds to a forwarded request. Behind a proxy, every caller appears to have the proxy's address.
 */
const FORWARDING = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/

/**
 * Returns a check for callers. If a password is set, the caller must send the password. Otherwise, no proxy may have
 * forwarded the request, and `createHostCheck` must accept its host.
 */
export function createCallerCheck({ password, allowedHosts }: Config['opsReaders']) {
  const passwordHash = password === undefined ? undefined : hashSecret(password)
  const isHostAllowed = createHostCheck(allowedHosts)
  return (headers: IncomingHttpHeaders, remoteAddress: string | undefined): boolean => {
    if (passwordHash !== undefined) return secretMatches(sentPassword(headers), passwordHash)
    return !Object.keys(headers).some((name) => FORWARDING.test(name)) && isHostAllowed(headers, remoteAddress)
  }
}

/**
 * Returns a check of a request's host: it must be allowed, or be a local name such as localhost in a request from this
 * machine. Any other host name may belong to an attacker's website, which points the name at this address to read the
 * page through a visitor's browser (DNS rebinding).
 */
export function createHostCheck(allowedHosts: readonly string[]) {
  const networks = networksOf(allowedHosts)
  return (headers: IncomingHttpHeaders, remoteAddress: string | undefined): boolean => {
    const host = (headers.host ?? '').toLowerCase().replace(/:\d+$/, '')
    if (allowedHosts.includes(host) || isIn(networks, host.replace(/^\[(.*)\]$/, '$1'))) return true
    return LOCAL_HOSTS.includes(host) && isIn(LOOPBACK, remoteAddress ?? '')
  }
}

/** Returns the password from Basic authentication. Ignores the user name. */
function sentPassword({ authorization = '' }: IncomingHttpHeaders): string {
  const [, credentials = ''] = /^Basic +(\S+)$/i.exec(authorization) ?? []
  return String(Buffer.from(credentials, 'base64')).replace(/^[^:]*:/, '')
}

function networksOf(list: readonly string[]): BlockList {
  const networks = new BlockList()
  for (const [address = '', prefix] of list.map((one) => one.split('/'))) {
    if (prefix !== undefined) networks.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return networks
}

const isIn = (networks: BlockList, address: string) =>
  isIP(address) > 0 && networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
