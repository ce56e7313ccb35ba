import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { createAddressJudge } from '../../src/platform/outbound/addresses.ts'
import { type CallKind, createOutboundClient, urlError } from '../../src/platform/outbound/http-client.ts'
import type { Resolve } from '../../src/platform/outbound/resolve.ts'
import { listen, respondOk } from '../support/listener.ts'
import { freePort } from '../support/processes.ts'

type Options = { allowedNetworks?: string[]; resolve?: Resolve; kind?: CallKind }

/**
 * A return-URL callback, which allows http, so that only the address can be rejected. The listener's port replaces PORT
 * in the URL.
 */
function callUrl(url: string, port: number, { allowedNetworks = [], kind = 'return call', ...options }: Options = {}) {
  const limits = { ...LIMITS.outbound, merchantMs: 3_000 }
  const { request: call } = createOutboundClient({
    allowedNetworks: { webhook: [], 'return call': [], [kind]: allowedNetworks },
    limits,
    now: () => new Date(),
    ...options,
  })
  return call({ kind, url: url.replace('PORT', `${port}`) })
}

/** Counts the connections that this process opens, to any address: most private addresses do not exist here. */
function countAttempts(): { attempts: number } {
  const count = { attempts: 0 }
  const add = () => {
    count.attempts += 1
  }
  subscribe('net.client.socket', add)
  onTestFinished(() => void unsubscribe('net.client.socket', add))
  return count
}

const resolvesTo =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses

const NAMES_OF = [
  { what: 'loopback', addresses: ['127.0.0.1'] },
  { what: 'another loopback address', addresses: ['127.8.9.10'] },
  { what: 'IPv6 loopback', addresses: ['::1'] },
  { what: 'the metadata service', addresses: ['169.254.169.254'] },
  { what: 'the metadata service of AWS over IPv6', addresses: ['fd00:ec2::254'] },
  { what: 'the metadata service of Alibaba', addresses: ['100.100.100.200'] },
  { what: 'the platform of Azure', addresses: ['168.63.129.16'] },
  { what: '10/8', addresses: ['10.1.2.3'] },
  { what: '172.16/12', addresses: ['172.31.255.254'] },
  { what: '192.168/16', addresses: ['192.168.1.1'] },
  { what: 'carrier NAT', addresses: ['100.64.0.1'] },
  { what: 'unique local', addresses: ['fd12:3456::1'] },
  { what: 'link-local', addresses: ['fe80::1'] },
  { what: 'link-local with its interface', addresses: ['fe80::1%lo'] },
  { what: 'site-local', addresses: ['fec0::1'] },
  { what: 'IPv4-mapped loopback', addresses: ['::ffff:127.0.0.1'] },
  { what: 'IPv4-compatible loopback', addresses: ['::7f00:1'] },
  { what: 'IPv4-translated loopback', addresses: ['::ffff:0:127.0.0.1'] },
  { what: 'NAT64 loopback', addresses: ['64:ff9b::7f00:1'] },
  { what: 'NAT64 private', addresses: ['64:ff9b::a00:1'] },
  { what: 'local NAT64', addresses: ['64:ff9b:1::a00:1'] },
  { what: '6to4 loopback', addresses: ['2002:7f00:1::'] },
  { what: 'Teredo', addresses: ['2001:0:a00:1::1'] },
  { what: 'unspecified', addresses: ['0.0.0.0'] },
  { what: 'unspecified IPv6', addresses: ['::'] },
  { what: 'the current network', addresses: ['0.1.2.3'] },
  { what: 'multicast', addresses: ['224.0.0.1'] },
  { what: 'multicast IPv6', addresses: ['ff02::1'] },
  { what: 'broadcast', addresses: ['255.255.255.255'] },
  { what: 'reserved', addresses: ['240.0.0.1'] },
  { what: 'IETF protocol assignments', addresses: ['192.0.0.192'] },
  { what: 'documentation', addresses: ['203.0.113.7'] },
  { what: 'documentation IPv6', addresses: ['2001:db8::1'] },
  { what: 'benchmarks', addresses: ['198.18.0.1'] },
  { what: 'discard-only', addresses: ['100::1'] },
  { what: 'segment routing', addresses: ['5f00::1'] },
  { what: 'a public and a private address', addresses: ['93.184.216.34', '10.1.2.3'] },
  { what: 'a public and a loopback address', addresses: ['2606:2800:21f::1', '127.0.0.1'] },
  { what: 'text that is not an address', addresses: ['localhost'] },
  { what: 'an octal notation', addresses: ['0177.0.0.1'] },
]

const WRITTEN_OUT = [
  'http://127.0.0.1:PORT/',
  'http://127.0.0.1.:PORT/',
  'http://2130706433:PORT/',
  'http://0177.0.0.1:PORT/',
  'http://0x7f.1:PORT/',
  'http://127.1:PORT/',
  'http://0:PORT/',
  'http://0.0.0.0:PORT/',
  'http://[::]:PORT/',
  'http://[::1]:PORT/',
  'http://[0:0:0:0:0:0:0:1]:PORT/',
  'http://[::ffff:127.0.0.1]:PORT/',
  'http://[::ffff:7f00:1]:PORT/',
  'http://[64:ff9b::7f00:1]:PORT/',
  'http://[2002:7f00:1::]:PORT/',
  'http://１２７.０.０.１:PORT/',
  'http://①②⑦.⓪.⓪.①:PORT/',
  'http://127。0。0。1:PORT/',
  'http://%31%32%37.0.0.1:PORT/',
  'http:127.0.0.1:PORT/',
  'http:\\\\127.0.0.1:PORT\\',
  ' http://127.0.0.1\t:PORT/',
  'http://localhost:PORT/',
  'http://LOCALHOST:PORT/',
  'http://localhost.:PORT/',
  'http://shop.localhost:PORT/',
  'http://ⓛocalhost:PORT/',
  'https://127.0.0.1:PORT/',
]

const REJECTED = { failure: 'not allowed', text: 'The address is neither public nor in RETURN_CALL_ALLOWED_NETWORKS' }

describe('addresses that no outbound call reaches', () => {
  it.each(NAMES_OF)(
    'an outbound call does not connect to a host name that resolves to $what: $addresses',
    async ({ addresses }) => {
      const inside = await listen(respondOk, '::')
      const count = countAttempts()
      const outcome = await callUrl('http://shop.example:PORT/', inside.port, { resolve: resolvesTo(...addresses) })
      expect({ outcome, ...count, connections: inside.connections }).toEqual({
        outcome: REJECTED,
        attempts: 0,
        connections: 0,
      })
    },
  )

  it.each(WRITTEN_OUT)('an outbound call does not connect to %s', async (url) => {
    const inside = await listen(respondOk, '::')
    const count = countAttempts()
    const outcome = await callUrl(url, inside.port)
    expect({ outcome, ...count, connections: inside.connections }).toEqual({
      outcome: REJECTED,
      attempts: 0,
      connections: 0,
    })
  })

  it.each([
    ['http://user:password@127.0.0.1:PORT/', 'The URL must not contain a user name or password'],
    ['http://user@127.0.0.1:PORT/', 'The URL must not contain a user name or password'],
    ['http://shop.example@127.0.0.1:PORT/', 'The URL must not contain a user name or password'],
    ['ftp://127.0.0.1:PORT/', 'The URL must be an https URL'],
    ['file:///etc/passwd', 'The URL must be an https URL'],
    ['unix:/run/postgresql', 'The URL must be an https URL'],
    ['//127.0.0.1:PORT/', 'The URL must be a URL, such as https://shop.example/webhooks'],
    ['http://[fe80::1%25lo]:PORT/', 'The URL must be a URL, such as https://shop.example/webhooks'],
    ['http://127.0.0.256:PORT/', 'The URL must be a URL, such as https://shop.example/webhooks'],
  ])('an outbound call does not connect to %s, even if the network of the address is allowed', async (url, text) => {
    const inside = await listen(respondOk)
    const count = countAttempts()
    const outcome = await callUrl(url, inside.port, { allowedNetworks: ['0.0.0.0/0'] })
    expect({ outcome, ...count }).toEqual({ outcome: { failure: 'not allowed', text }, attempts: 0 })
  })

  it('an outbound call connects to the checked address, even if the host name then resolves to another address', async () => {
    const judged = await listen(respondOk, '127.0.0.2')
    const inside = await listen(respondOk, '127.0.0.1', judged.port)
    const responses = ['127.0.0.2', '127.0.0.1', '127.0.0.2']
    const options = { allowedNetworks: ['127.0.0.2/32'], resolve: async () => [responses.shift() ?? ''] }
    expect(await callUrl('http://shop.example:PORT/', judged.port, options)).toMatchObject({ status: 200 })
    expect([responses.length, judged.connections]).toEqual([2, 1])
    expect(await callUrl('http://shop.example:PORT/', judged.port, options)).toEqual(REJECTED)
    expect([responses.length, judged.connections, inside.connections]).toEqual([1, 1, 0])
  })

  it.each([301, 302, 303, 307, 308])(
    'an outbound call does not follow a redirect with the status %i',
    async (status) => {
      const inside = await listen(respondOk)
      const outside = await listen(
        (socket) =>
          socket.end(`HTTP/1.1 ${status} x\r\nlocation: http://127.0.0.1:${inside.port}/\r\ncontent-length: 0\r\n\r\n`),
        '127.0.0.2',
      )
      // Even if its target would be allowed.
      const outcome = await callUrl('http://127.0.0.2:PORT/', outside.port, { allowedNetworks: ['127.0.0.0/8'] })
      expect([outcome, inside.connections]).toEqual([{ status, retryAfterSeconds: undefined, text: '' }, 0])
    },
  )
})

describe('listeners in an allowed network', () => {
  it.each([
    ['http://127.0.0.1:PORT/', '127.0.0.0/8'],
    ['http://[::1]:PORT/', '::1/128'],
    ['http://[::ffff:127.0.0.1]:PORT/', '127.0.0.1/32'],
    ['http://[::ffff:127.0.0.1]:PORT/', '::ffff:127.0.0.1/128'],
    ['http://2130706433:PORT/', '127.0.0.1/32'],
    ['http://１２７.０.０.１:PORT/', '127.0.0.1/32'],
    ['http://0.0.0.0:PORT/', '0.0.0.0/32'],
  ])('an outbound call reaches %s over http if the network %s is allowed', async (url, network) => {
    const inside = await listen(respondOk, '::')
    const outcome = await callUrl(url, inside.port, { allowedNetworks: [network], kind: 'webhook' as const })
    expect([outcome, inside.connections]).toEqual([{ status: 200, retryAfterSeconds: undefined, text: 'ok' }, 1])
  })

  it('an outbound call reaches localhost if both addresses are allowed, whichever address the receiver listens on', async () => {
    for (const host of ['127.0.0.1', '::1']) {
      // No server listens at the other address.
      const inside = await listen(respondOk, host, await freePort())
      const options = { allowedNetworks: ['127.0.0.1/32', '::1/128'], kind: 'webhook' as const }
      expect(await callUrl('http://localhost:PORT/', inside.port, options)).toMatchObject({ status: 200 })
    }
  })

  it('an outbound call sends the host name in the Host header', async () => {
    const inside = await listen(respondOk)
    const options = { allowedNetworks: ['127.0.0.1/32'], resolve: resolvesTo('127.0.0.1') }
    expect(await callUrl('http://shop.example:PORT/a?b=c', inside.port, options)).toMatchObject({ status: 200 })
    expect(inside.received).toContain(`GET /a?b=c HTTP/1.1\r\n`)
    expect(inside.received.toLowerCase()).toContain(`\r\nhost: shop.example:${inside.port}\r\n`)
  })
})

describe('http URLs', () => {
  it('an outbound call does not use http for a webhook to a public address', async () => {
    const count = countAttempts()
    const resolve = resolvesTo('93.184.216.34', '10.0.0.1')
    const outcome = await callUrl('http://shop.example/', 0, {
      allowedNetworks: ['10.0.0.0/8'],
      kind: 'webhook' as const,
      resolve,
    })
    expect({ outcome, ...count }).toEqual({
      outcome: {
        failure: 'not allowed',
        text: 'The URL must be https: http is allowed only in WEBHOOK_ALLOWED_NETWORKS',
      },
      attempts: 0,
    })
  })
})

describe('classification of addresses', () => {
  it.each([
    '1.1.1.1',
    '93.184.216.34',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '100.128.0.1',
    '169.253.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2400:cb00::1',
    '2001:4860:4860::8888',
    '::ffff:1.1.1.1',
    '64:ff9b::101:101',
  ])('treats the address %s as public', (address) => {
    expect(createAddressJudge([])(address)).toBe('public')
  })

  it('allows an address in a network that the operator allows, even a public address', () => {
    const judge = createAddressJudge(['93.184.216.0/24', '2606:4700::/32', '10.0.0.0/8'])
    expect(['93.184.216.34', '2606:4700::1', '10.1.2.3', '64:ff9b::a01:203'].map(judge)).toEqual(
      Array(4).fill('allowed'),
    )
    expect(['93.184.217.34', '2606:4701::1'].map(judge)).toEqual(['public', 'public'])
    expect(['11.0.0.1', 'fd00::1'].map(judge)).toEqual(['public', 'refused'])
  })
})

it('urlError accepts http and https URLs, and names the error in a malformed URL', () => {
  expect(['https://shop.example/hook?a=b#c', 'http://10.0.0.1/', 'https://shop.example:8443'].map(urlError)).toEqual(
    Array(3).fill(undefined),
  )
  expect(urlError('shop.example')).toBe('must be a URL, such as https://shop.example/webhooks')
})

it('urlError accepts a URL with a letter such as ü, even after 20,000 other URLs', () => {
  const faults = Array.from({ length: 20_000 }, () => urlError('https://bücher.example/?order=1'))
  expect(new Set(faults)).toEqual(new Set([undefined]))
})
