import { describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { createCallerCheck } from '../../src/operator/console/caller.ts'

const readersOf = (settings: Record<string, string>) =>
  readConfig({ DATABASE_URL: 'postgres://localhost/any', ...settings }).opsReaders

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`

describe('the operator’s port without a password', () => {
  const isOperator = createCallerCheck(readersOf({}))

  it.each(['localhost', 'LocalHost:3001', '127.0.0.1:3001', '[::1]:3001'])(
    'the operator’s port accepts the Host %s only from the same machine',
    (host) => {
      for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(isOperator({ host }, address)).toBe(true)
      for (const address of ['172.18.0.1', '::ffff:10.0.0.7', '203.0.113.9', 'fd00::1', undefined]) {
        expect(isOperator({ host }, address)).toBe(false)
      }
    },
  )

  it.each([
    undefined,
    '',
    'api:3001',
    '127.0.0.2',
    'localhost.evil.example',
    'rebind.evil.example:3001',
    '127.0.0.1.evil.example',
    'localhost:80:80',
    'localhost.',
    '::1',
  ])('the operator’s port rejects the Host %s', (host) => {
    expect(isOperator({ host, authorization: basic('ops:') }, '127.0.0.1')).toBe(false)
  })
})

describe('a request that a proxy has forwarded', () => {
  const PASSWORD = 'correct:horse:battery'

  it.each(['forwarded', 'via', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'])(
    'the operator’s port rejects a request with the header %s without a password, and accepts the request with the password',
    (name) => {
      const headers = { host: 'localhost', [name]: '203.0.113.9' }
      for (const settings of [{}, { OPS_ALLOWED_HOSTS: 'localhost' }]) {
        expect(createCallerCheck(readersOf(settings))(headers, '127.0.0.1')).toBe(false)
      }
      const authorization = basic(`ops:${PASSWORD}`)
      const isOperator = createCallerCheck(readersOf({ OPS_PASSWORD: PASSWORD }))
      expect(isOperator({ ...headers, authorization }, '127.0.0.1')).toBe(true)
    },
  )
})

describe('hosts of OPS_ALLOWED_HOSTS', () => {
  const isOperator = createCallerCheck(readersOf({ OPS_ALLOWED_HOSTS: 'Api, [fd00::7],fd12::/16,172.16.0.0/12' }))

  it.each(['api:3001', '172.18.0.5:3001', '[fd00::7]:3001', '[fd12:34::1]'])(
    'the operator’s port accepts the Host %s that OPS_ALLOWED_HOSTS allows',
    (host) => {
      expect(isOperator({ host }, '172.18.0.9')).toBe(true)
    },
  )

  it.each(['172.32.0.1', '[fd00::8]', 'api.evil.example', '172.18.0.5.evil.example', 'xapi'])(
    'the operator’s port rejects the Host %s that OPS_ALLOWED_HOSTS does not allow',
    (host) => {
      expect(isOperator({ host }, '127.0.0.1')).toBe(false)
    },
  )
})

describe('the password of the operator’s port', () => {
  const PASSWORD = 'correct:horse:battery'
  const isOperator = createCallerCheck(readersOf({ OPS_PASSWORD: PASSWORD, OPS_ALLOWED_HOSTS: 'api' }))

  it('the operator’s port accepts OPS_PASSWORD from any address and with any user name', () => {
    for (const name of ['', 'ops', 'प्रचालक']) {
      expect(isOperator({ host: 'pay.example', authorization: basic(`${name}:${PASSWORD}`) }, '203.0.113.9')).toBe(true)
    }
  })

  it.each([
    undefined,
    'Basic',
    'Basic !',
    `Bearer ${PASSWORD}`,
    basic(PASSWORD),
    basic(`ops:${PASSWORD} `),
    basic(`ops:${PASSWORD}`.toUpperCase()),
    basic('ops:'),
  ])(
    'the operator’s port rejects the Authorization header %s, even from the same machine and allowed hosts',
    (authorization) => {
      for (const host of ['localhost', 'api']) expect(isOperator({ host, authorization }, '127.0.0.1')).toBe(false)
    },
  )
})

it.each([
  [{ OPS_PASSWORD: 'fifteen letters' }, 'OPS_PASSWORD must be at least 16'],
  [{ OPS_ALLOWED_HOSTS: 'api:3001' }, 'OPS_ALLOWED_HOSTS must be host names'],
  [{ OPS_ALLOWED_HOSTS: '*' }, 'OPS_ALLOWED_HOSTS must be host names'],
  [{ OPS_ALLOWED_HOSTS: '10.1.2.3/8' }, 'OPS_ALLOWED_HOSTS must be host names'],
])('the service rejects the setting %j at startup', (settings, fault) => {
  expect(() => readersOf(settings as Record<string, string>)).toThrow(fault)
})
