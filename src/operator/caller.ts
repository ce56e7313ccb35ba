import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { Config } from '../config.ts'

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']
const LOOPBACK = networksOf(['127.0.0.0/8', '::1/128'])

/**
 * Whether a caller has the password; where none is set, whether he is on this machine or asks by an allowed host. Any other host
 * may be the name of a website that made a browser in here believe that we are that website (DNS rebinding).
 */
export function createCallerCheck({ password, allowedHosts }: Config['opsReaders']) {
  const networks = networksOf(allowedHosts)
  return (headers: IncomingHttpHeaders, remoteAddress: string | undefined): boolean => {
    if (password !== undefined) return timingSafeEqual(digest(sentPassword(headers)), digest(password))
    const host = (headers.host ?? '').toLowerCase().replace(/:\d+$/, '')
    if (allowedHosts.includes(host) || isIn(networks, host.replace(/^\[(.*)\]$/, '$1'))) return true
    return LOCAL_HOSTS.includes(host) && isIn(LOOPBACK, remoteAddress ?? '')
  }
}

/** By Basic authentication, with whatever name. */
function sentPassword({ authorization = '' }: IncomingHttpHeaders): string {
  const [, credentials = ''] = /^Basic +(\S+)$/i.exec(authorization) ?? []
  return Buffer.from(credentials, 'base64')
    .toString()
    .replace(/^[^:]*:/, '')
}

/** Of one length, whatever was sent. */
const digest = (text: string) => hash('sha256', text, 'buffer')

function networksOf(list: readonly string[]): BlockList {
  const networks = new BlockList()
  for (const [address = '', prefix] of list.map((one) => one.split('/'))) {
    if (prefix !== undefined) networks.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return networks
}

const isIn = (networks: BlockList, address: string) =>
  isIP(address) > 0 && networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
