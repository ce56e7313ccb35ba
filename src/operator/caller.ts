import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Headers = Readonly<Record<string, string | string[] | undefined>>

const INSIDE = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal'])

/** Headers by which proxies name their callers. */
const NAMING = [
  'x-forwarded-for',
  'x-forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
]
/** Those by which a proxy is noticed that may not name its caller. */
const TRACES = ['via', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-server']

/**
 * Whether the other end of the connection, and every proxy and caller that these headers name, is on this machine or in a
 * private network. What cannot be read, or hides who it is, may be anybody.
 */
export function isFromInside(headers: Headers, remoteAddress: string | undefined): boolean {
  const listed = NAMING.flatMap((name) => textOf(headers[name])?.split(',') ?? [])
  const forwarded = textOf(headers.forwarded)
  const nodes = forwarded === undefined ? [] : nodesOf(forwarded)
  if (nodes === undefined) return false
  const named = [...listed, ...nodes]
  const hides = named.length === 0 && TRACES.some((name) => headers[name] !== undefined)
  return !hides && [remoteAddress ?? '', ...named].every(isInside)
}

/** Names that nobody can register, and so point here by the operator's doing only. */
const PRIVATE_NAME = /^[\w-]+$|\.(?:internal|local|localhost|home\.arpa)$/

/**
 * Whether a `Host` is an address, or a name that only the operator can have given. Any other name may belong to somebody whose
 * website made a browser in here believe that we are that website (DNS rebinding).
 */
export function isPrivateName(host: string | undefined): boolean {
  const [, bracketed, name = ''] = /^(?:\[([\da-f:.]+)\]|([^:]+))(?::\d*)?$/i.exec(host ?? '') ?? []
  return bracketed !== undefined ? isIP(bracketed) === 6 : isIP(name) === 4 || PRIVATE_NAME.test(name.toLowerCase())
}

const textOf = (header: string | string[] | undefined) => (Array.isArray(header) ? header.join(',') : header)

const PAIR = /([\w-]+)=(?:"([^"\\]*)"|([^\s;,"]*))/g

/** Who is named by a `Forwarded` (RFC 7239); undefined when it cannot be read or does not say of each hop for whom it was. */
function nodesOf(forwarded: string): string[] | undefined {
  const nodes: string[] = []
  for (const hop of forwarded.split(',')) {
    if (/[^\s;]/.test(hop.replace(PAIR, ''))) return undefined
    const pairs = [...hop.matchAll(PAIR)].map(([, name = '', quoted, plain]) => ({
      name: name.toLowerCase(),
      node: quoted ?? plain ?? '',
    }))
    if (pairs.filter(({ name }) => name === 'for').length !== 1) return undefined
    nodes.push(...pairs.filter(({ name }) => name === 'for' || name === 'by').map(({ node }) => node))
  }
  return nodes
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
