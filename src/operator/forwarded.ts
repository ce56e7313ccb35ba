import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Headers = Readonly<Record<string, string | string[] | undefined>>

const INSIDE = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal'])

/**
 * Whether every proxy and caller that these headers name is on this machine or in a private network. What cannot be read, or
 * hides who it is, may be anybody.
 */
export function isFromInside(headers: Headers): boolean {
  const lists = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => textOf(headers[name])?.split(',') ?? [])
  const forwarded = textOf(headers.forwarded)
  const nodes = forwarded === undefined ? [] : nodesOf(forwarded)
  return nodes !== undefined && [...lists, ...nodes].every(isInside)
}

const textOf = (header: string | string[] | undefined) => (Array.isArray(header) ? header.join(',') : header)

const PAIR = /([\w-]+)=(?:"([^"\\]*)"|([^\s;,"]*))/g

/** Who is named by a `Forwarded` (RFC 7239); undefined when it cannot be read or does not say for whom it was forwarded. */
function nodesOf(forwarded: string): string[] | undefined {
  if (/[^\s;,]/.test(forwarded.replace(PAIR, ''))) return undefined
  const pairs = [...forwarded.matchAll(PAIR)].map(([, name = '', quoted, plain]) => ({
    name: name.toLowerCase(),
    node: quoted ?? plain ?? '',
  }))
  const hops = forwarded.split(',').length
  if (pairs.filter(({ name }) => name === 'for').length !== hops) return undefined
  return pairs.filter(({ name }) => name === 'for' || name === 'by').map(({ node }) => node)
}

/** An address may have a port; one of IPv6 then stands in brackets. */
const NODE = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5}|(.+))$/

function isInside(node: string): boolean {
  const [, bracketed, beforePort, bare = ''] = NODE.exec(node.trim()) ?? []
  const text = bracketed ?? beforePort ?? bare
  if (isIP(text) === 0) return false
  // An IPv4 address inside an IPv6 one is judged by itself.
  return INSIDE.has(ipaddr.process(text).range())
}
