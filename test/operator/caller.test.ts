import { describe, expect, it } from 'vitest'
import { isFromInside, isPrivateName } from '../../src/operator/caller.ts'

describe('a page for insiders is shown', () => {
  it.each([
    ['without a proxy', {}],
    ['behind one on this machine', { 'x-forwarded-for': '127.0.0.1' }],
    ['in private networks', { 'x-forwarded-for': '10.1.2.3, 172.31.0.1,192.168.0.9' }],
    ['with ports', { 'x-forwarded-for': '10.1.2.3:5000, [fd00::1]:443' }],
    ['by IPv6', { 'x-forwarded-for': '::1, fe80::1, fd12:3456::1' }],
    ['by IPv4 inside IPv6', { 'x-forwarded-for': '::ffff:10.0.0.1' }],
    ['by RFC 7239', { forwarded: 'for=10.0.0.1;proto=https;by=127.0.0.1, for="[fd00::1]:4711"' }],
    ['by another header of nginx', { 'x-real-ip': '10.0.0.1' }],
    ['by a proxy that names itself and its caller', { via: '1.1 proxy', 'x-forwarded-for': '10.0.0.1' }],
  ])('%s', (_name, headers) => {
    expect(isFromInside(headers, '127.0.0.1')).toBe(true)
  })
})

describe('and to nobody else', () => {
  it.each([
    ['a public address', { 'x-forwarded-for': '203.0.113.9' }],
    ['a public address anywhere', { 'x-forwarded-for': '10.0.0.1, 8.8.8.8, 127.0.0.1' }],
    ['a public address in one of several headers', { 'x-forwarded-for': ['10.0.0.1', '8.8.8.8'] }],
    ['a public address of IPv6', { 'x-forwarded-for': '2a00:1450::1' }],
    ['a public IPv4 address inside IPv6', { 'x-forwarded-for': '::ffff:8.8.8.8' }],
    ['the address of a cloud’s neighbour', { 'x-forwarded-for': '100.64.0.1' }],
    ['no address', { 'x-forwarded-for': '' }],
    ['a gap', { 'x-forwarded-for': '10.0.0.1,,10.0.0.2' }],
    ['a name', { 'x-forwarded-for': 'localhost' }],
    ['a number that browsers take for an address', { 'x-forwarded-for': '2130706433' }],
    ['an address in octal', { 'x-forwarded-for': '012.0.0.1' }],
    ['an address with a tail', { 'x-forwarded-for': '10.0.0.1.example' }],
    ['by RFC 7239: a public address', { forwarded: 'for=8.8.8.8' }],
    ['by RFC 7239: a public address in quotes', { forwarded: 'for="[2a00:1450::1]:4711"' }],
    ['by RFC 7239: a proxy with a public address', { forwarded: 'for=10.0.0.1;by=8.8.8.8' }],
    ['by RFC 7239: a second hop', { forwarded: 'for=10.0.0.1, for=8.8.8.8' }],
    ['by RFC 7239: whoever hides', { forwarded: 'for=_hidden' }],
    ['by RFC 7239: unknown', { forwarded: 'for=unknown' }],
    ['by RFC 7239: for whom is not said', { forwarded: 'proto=https;host=example' }],
    ['by RFC 7239: of one hop it is not said', { forwarded: 'for=10.0.0.1, proto=https' }],
    ['by RFC 7239: unreadable', { forwarded: 'for=10.0.0.1 8.8.8.8' }],
    ['by RFC 7239: an open quote', { forwarded: 'for="10.0.0.1' }],
    ['by RFC 7239: nothing', { forwarded: '' }],
    ['by RFC 7239: two callers of one hop', { forwarded: 'for=10.0.0.1;for=10.0.0.2' }],
    ['by RFC 7239: two of one hop and none of the next', { forwarded: 'for=10.0.0.1;for=10.0.0.2, proto=http' }],
    ['by another header of nginx', { 'x-real-ip': '8.8.8.8' }],
    ['by Cloudflare’s header', { 'cf-connecting-ip': '8.8.8.8' }],
    ['by Akamai’s header', { 'true-client-ip': '8.8.8.8' }],
    ['by Fastly’s header', { 'fastly-client-ip': '8.8.8.8' }],
    ['by headers of other proxies', { 'x-client-ip': '8.8.8.8' }],
    ['by headers of clusters', { 'x-cluster-client-ip': '8.8.8.8' }],
    ['by an old header', { 'x-forwarded': '8.8.8.8' }],
    ['by a proxy that does not say for whom', { via: '1.1 proxy', 'x-forwarded-host': 'pay.example' }],
    ['by one that says the protocol only', { 'x-forwarded-proto': 'https' }],
  ])('%s', (_name, headers) => {
    expect(isFromInside(headers, '127.0.0.1')).toBe(false)
  })
})

describe('and only over a connection from inside', () => {
  it.each([
    ['127.0.0.1', true],
    ['::1', true],
    // The gateway of Docker's network.
    ['::ffff:172.18.0.1', true],
    ['203.0.113.9', false],
    ['::ffff:203.0.113.9', false],
    ['2a00:1450::1', false],
    [undefined, false],
  ])('%s: %s', (remoteAddress, expected) => {
    expect(isFromInside({}, remoteAddress)).toBe(expected)
    expect(isFromInside({ 'x-forwarded-for': '10.0.0.1' }, remoteAddress)).toBe(expected)
  })
})

describe('a name that only the operator can have given', () => {
  it.each([
    'localhost',
    'LocalHost:3001',
    '127.0.0.1:3001',
    '203.0.113.9',
    '[::1]:3001',
    'pay-1:3001',
    'pay.internal',
    'pay.local:3001',
    'pay.localhost',
    'pay.home.arpa:3001',
  ])('%s', (host) => {
    expect(isPrivateName(host)).toBe(true)
  })

  it.each([
    undefined,
    '',
    'rebind.evil.example:3001',
    'localhost.evil.example',
    'evil.example.',
    'internal.example',
    'notinternal.example:3001',
    'pay.notinternal',
    '127.0.0.1.evil.example',
    '1.2.3',
    '[::1].evil.example',
    '[evil.example]',
    'evil.example:80:80',
  ])('is not %s', (host) => {
    expect(isPrivateName(host)).toBe(false)
  })
})
