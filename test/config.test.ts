import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { readConfig, readConsoleConfig, readDatabaseConfig } from '../src/config.ts'
import { runOps } from './support/ops.ts'

const DATABASE_URL = 'postgres://user:password@localhost:5432/upi'

describe('the configuration', () => {
  it('the configuration has a default for every setting except DATABASE_URL', () => {
    expect(readConfig({ DATABASE_URL })).toMatchObject({
      host: '127.0.0.1',
      port: 3000,
      publicUrl: 'http://localhost:3000',
      databaseMigrateUrl: DATABASE_URL,
      preparedStatements: true,
      intentExpiryMinutes: 15,
      logLevel: 'info',
      // Metrics are for the operator, so by default they are not reachable from other machines.
      opsHost: '127.0.0.1',
      warnings: [],
    })
  })

  it('the setting DATABASE_PREPARED_STATEMENTS accepts on and off, for the service and for ops', () => {
    const off = { DATABASE_URL, DATABASE_PREPARED_STATEMENTS: 'off' }
    expect([readConfig(off), readDatabaseConfig(off)].map((one) => one.preparedStatements)).toEqual([false, false])
    expect(() => readDatabaseConfig({ DATABASE_URL, DATABASE_PREPARED_STATEMENTS: 'no' })).toThrow(
      'DATABASE_PREPARED_STATEMENTS must be on or off',
    )
  })

  it('the service reports every invalid setting at startup in one error without the invalid values', () => {
    const read = () => readConfig({ PORT: 'SENT', INTENT_EXPIRY_MINUTES: '0', DATABASE_URL: 'mysql://SENT' })
    expect(read).toThrow(
      'DATABASE_URL must be a PostgreSQL URL, such as postgres://user:password@host:5432/name. In user and password, write # / ? @ percent-encoded: %23 %2F %3F %40; PORT must be a whole number from 0 to 65535; INTENT_EXPIRY_MINUTES must be a whole number from 1 to 1440',
    )
    expect(read).not.toThrow('SENT')
  })

  it('the service does not start without DATABASE_URL, or in production without PUBLIC_URL', () => {
    expect(() => readConfig({ NODE_ENV: 'production', PUBLIC_URL: 'https://pay.example.in' })).toThrow(
      'DATABASE_URL is required',
    )
    expect(() => readConfig({ NODE_ENV: 'production', DATABASE_URL })).toThrow('PUBLIC_URL is required in production')
    expect(() => readDatabaseConfig({})).toThrow('DATABASE_URL is required')
    expect(() => readDatabaseConfig({ DATABASE_URL: '' })).toThrow('DATABASE_URL is required')
  })

  it('the service warns if PUBLIC_URL is plain http in production', () => {
    const plain = { DATABASE_URL, PUBLIC_URL: 'http://pay.example.in', ACQUIRER_SECRETS: 'a-secret-of-sixteen' }
    expect(readConfig({ ...plain, NODE_ENV: 'production' }).warnings).toEqual([
      expect.stringContaining('PUBLIC_URL is plain http'),
    ])
    expect(readConfig(plain).warnings).toEqual([])
  })

  it('the setting RATE_LIMIT_PER_SECOND defaults to 1,000', () => {
    expect(readConfig({ DATABASE_URL }).rateLimitPerSecond).toBe(1_000)
    expect(readConfig({ DATABASE_URL, RATE_LIMIT_PER_SECOND: '50' }).rateLimitPerSecond).toBe(50)
  })

  it('the service starts with SANDBOX=on outside production but not in production', () => {
    // HOST and PUBLIC_URL have the values that docker-compose.yml passes.
    const compose = { DATABASE_URL, HOST: '0.0.0.0', PUBLIC_URL: 'http://localhost:3000' }
    const sandbox = (NODE_ENV: string, SANDBOX: string) => readConfig({ ...compose, NODE_ENV, SANDBOX }).sandbox
    expect(sandbox('development', 'on')).toBe(true)
    expect([sandbox('development', ''), sandbox('production', '')]).toEqual([false, false])
    for (const word of ['on', 'ON', 'off', '0']) expect(() => sandbox('production', word)).toThrow(/\bSANDBOX must\b/)
    expect(() => sandbox('production', 'on')).toThrow('also set NODE_ENV=development')
    expect(() => sandbox('development', 'yes')).toThrow('SANDBOX must be on, or not be set')
  })

  it('the service rejects an unknown NODE_ENV, so that a typing error does not disable production mode', () => {
    const read = (NODE_ENV: string) =>
      readConfig({ DATABASE_URL, PUBLIC_URL: 'https://pay.example.in', NODE_ENV }).production
    expect(['production', 'development', 'test', ''].map(read)).toEqual([true, false, false, false])
    for (const wrong of ['Production', 'PRODUCTION', 'production ', 'prod', 'staging']) {
      expect(() => read(wrong)).toThrow('NODE_ENV must be production, development or test')
    }
  })

  it.each([
    ['Cashfree', 'CASHFREE_API_URL', 'https://sandbox.cashfree.com/pg'],
    ['PhonePe', 'PHONEPE_API_URL', 'https://api-preprod.phonepe.com/apis/pg-sandbox'],
    ['Setu', 'SETU_API_URL', 'https://umap-uat-core.setu.co'],
  ])(
    'the service does not start with the sandbox host of %s in production, however the host is written',
    (_name, variable, url) => {
      const account = {
        ...{ CASHFREE_CLIENT_ID: 'client', CASHFREE_CLIENT_SECRET: 'secret' },
        ...{ PHONEPE_CLIENT_ID: 'client', PHONEPE_CLIENT_VERSION: '1', PHONEPE_CLIENT_SECRET: 'secret' },
        PHONEPE_WEBHOOK_PASSWORD: 'secret',
        ...{
          SETU_CLIENT_ID: 'client',
          SETU_CLIENT_SECRET: 'secret',
          SETU_NOTIFICATION_SECRETS: 'twentyLettersAndDigits',
        },
      }
      const service = { DATABASE_URL, PUBLIC_URL: 'https://pay.example.in', ...account }
      const { host } = new URL(url)
      for (const written of [host, `${host}.`, `${host}:443`, host.toUpperCase(), `${host.toUpperCase()}.:8443`]) {
        const settings = { ...service, [variable]: url.replace(host, written) }
        expect(() => readConfig({ ...settings, NODE_ENV: 'development' }), written).not.toThrow()
        expect(() => readConfig({ ...settings, NODE_ENV: 'production' }), written).toThrow(
          `${variable} must not be the sandbox`,
        )
      }
      expect(() => readConfig({ ...service, NODE_ENV: 'production' })).not.toThrow()
    },
  )

  it('the service does not start with Cashfree’s sandbox in production', () => {
    const account = { CASHFREE_CLIENT_ID: 'client', CASHFREE_CLIENT_SECRET: 'secret' }
    const service = { DATABASE_URL, PUBLIC_URL: 'https://pay.example.in', ...account }
    const apiUrl = (NODE_ENV: string, CASHFREE_API_URL: string) =>
      readConfig({ ...service, NODE_ENV, CASHFREE_API_URL }).acquirers.cashfree?.apiUrl
    expect(apiUrl('development', 'https://sandbox.cashfree.com/pg/')).toBe('https://sandbox.cashfree.com/pg')
    expect(apiUrl('production', '')).toBe('https://api.cashfree.com/pg')
    expect(() => apiUrl('production', 'https://sandbox.cashfree.com/pg')).toThrow(
      /^CASHFREE_API_URL must not be .* set NODE_ENV=development/,
    )
    // Paths are appended to this URL.
    expect(() => apiUrl('production', 'https://api.cashfree.com/pg?a=b')).toThrow(/^CASHFREE_API_URL must be .* query$/)
  })

  it('the service accepts PhonePe settings with or without a webhook user, and rejects PhonePe’s sandbox in production', () => {
    const account = {
      PHONEPE_CLIENT_ID: 'client',
      PHONEPE_CLIENT_VERSION: '2',
      PHONEPE_CLIENT_SECRET: 'secret',
      PHONEPE_WEBHOOK_PASSWORD: 'new, old',
    }
    const read = (changes: object) =>
      readConfig({ DATABASE_URL, PUBLIC_URL: 'https://pay.example.in', ...account, ...changes }).acquirers.phonepe
    expect(read({ NODE_ENV: 'production' })).toEqual({
      apiUrl: 'https://api.phonepe.com/apis/pg',
      loginUrl: 'https://api.phonepe.com/apis/identity-manager/v1/oauth/token',
      isSandbox: false,
      clientId: 'client',
      clientVersion: '2',
      clientSecret: 'secret',
      notificationSecrets: ['new', 'old'],
    })
    const sandbox = {
      PHONEPE_API_URL: 'https://api-preprod.phonepe.com/apis/pg-sandbox',
      PHONEPE_WEBHOOK_USER: 'user_1',
    }
    expect(read(sandbox)).toMatchObject({
      isSandbox: true,
      notificationSecrets: ['user_1:new', 'user_1:old'],
    })
    expect(() => read({ ...sandbox, NODE_ENV: 'production' })).toThrow(/^PHONEPE_API_URL must not be the sandbox/)
    expect(() => read({ PHONEPE_WEBHOOK_PASSWORD: '' })).toThrow(
      'To accept payments through PhonePe, also set PHONEPE_WEBHOOK_PASSWORD',
    )
    expect(() => read({ PHONEPE_CLIENT_VERSION: 'v1' })).toThrow('PHONEPE_CLIENT_VERSION must be a whole number')
    expect(() => read({ PHONEPE_WEBHOOK_USER: 'me' })).toThrow('PHONEPE_WEBHOOK_USER must be')
  })

  it('the service rejects a CASHFREE_CLIENT_ID that is not valid in an HTTP header', () => {
    const read = (id: string) =>
      readConfig({ DATABASE_URL, CASHFREE_CLIENT_ID: id, CASHFREE_CLIENT_SECRET: 'new, old' }).acquirers.cashfree
    expect(read('client')).toMatchObject({
      clientId: 'client',
      clientSecret: 'new',
      notificationSecrets: ['new', 'old'],
    })
    for (const id of ['cli\nent', 'cli ent', 'ग्राहक']) expect(() => read(id)).toThrow(/^CASHFREE_CLIENT_ID must be/)
  })

  it('docker-compose.yml starts the service in production by default, and as a sandbox with SANDBOX=on and NODE_ENV=development', () => {
    const compose = readFileSync(join(import.meta.dirname, '../docker-compose.yml'), 'utf8')
    const api = /^ {2}api:\n[\s\S]*?(?=^ {2}\w+:\n)/m.exec(compose)?.[0] ?? ''
    expect(api).toMatch(/ NODE_ENV: \$\{NODE_ENV:-production\}\n/)
    expect(api).toMatch(/ SANDBOX: \$\{SANDBOX:-\}\n/)
  })

  it('the service rejects equal values of PORT and OPS_PORT and names the variable to change', () => {
    expect(() => readConfig({ DATABASE_URL, PORT: '3001' })).toThrow(
      'PORT and OPS_PORT are both 3001. Set OPS_PORT to another port.',
    )
  })

  it('OPS_HOST defaults to 127.0.0.1 even if HOST is 0.0.0.0', () => {
    expect(readConfig({ DATABASE_URL, HOST: '0.0.0.0' }).opsHost).toBe('127.0.0.1')
    expect(readConfig({ DATABASE_URL, OPS_HOST: '10.0.0.11' }).opsHost).toBe('10.0.0.11')
  })

  it('TRUST_PROXY accepts complete addresses and networks, and rejects abbreviated or malformed addresses and networks', () => {
    const trustProxy = (TRUST_PROXY: string) => readConfig({ DATABASE_URL, TRUST_PROXY }).trustProxy
    expect(trustProxy('10.0.0.1, 10.1.0.0/16,2001:db8::/32')).toEqual(['10.0.0.1', '10.1.0.0/16', '2001:db8::/32'])
    for (const wrong of ['10.1', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '2001:db8::/129', '1', ',', '10.0.0.1,']) {
      expect(() => trustProxy(wrong)).toThrow(
        'TRUST_PROXY must be addresses or networks of proxies, separated by commas',
      )
    }
  })

  it.each([
    ['SETU_NOTIFICATION_SECRETS', 'must be one or more secrets of 20 to 50 letters and digits'],
    ['CASHFREE_CLIENT_SECRET', 'must be one or more secrets without spaces'],
    ['PHONEPE_WEBHOOK_PASSWORD', 'must be one or more passwords without spaces'],
  ])('the error for %s states once that commas separate the values', (name, rule) => {
    expect(() => readConfig({ DATABASE_URL, [name]: 'first,two words' })).toThrow(
      new RegExp(`^${name} ${rule}, separated by commas$`, 'm'),
    )
  })

  it('WEBHOOK_SEALING_KEY accepts one or two keys of 32 bytes in base64, for the service and for ops', () => {
    const key = randomBytes(32).toString('base64')
    for (const read of [readConfig, readDatabaseConfig]) {
      expect(read({ DATABASE_URL }).webhooks.encryptionKeys).toEqual([])
      const { encryptionKeys } = read({ DATABASE_URL, WEBHOOK_SEALING_KEY: key }).webhooks
      expect(encryptionKeys.map((one) => one.export().toString('base64'))).toEqual([key])
      expect(read({ DATABASE_URL, WEBHOOK_SEALING_KEY: `${key}, ${key}` }).webhooks.encryptionKeys).toHaveLength(2)
      expect(() => read({ DATABASE_URL, WEBHOOK_SEALING_KEY: `${key},${key},${key}` })).toThrow('at most two keys')
      // Printing the configuration, for example in a log, must not reveal the key.
      const printed = inspect(encryptionKeys, { depth: 9, showHidden: true }) + JSON.stringify(encryptionKeys)
      expect(printed).not.toContain(key.slice(0, 10))
      expect(printed).not.toContain(Buffer.from(key, 'base64').toString('hex'))
    }
    const folder = mkdtempSync(join(tmpdir(), 'config-'))
    const WEBHOOK_SEALING_KEY_FILE = join(folder, 'key')
    writeFileSync(WEBHOOK_SEALING_KEY_FILE, `${key}\n`)
    expect(readConfig({ DATABASE_URL, WEBHOOK_SEALING_KEY_FILE }).webhooks.encryptionKeys[0]?.symmetricKeySize).toBe(32)
    rmSync(folder, { recursive: true })
    const hex = randomBytes(32).toString('hex')
    for (const wrong of [
      hex,
      key.slice(1),
      `${key},`,
      `${key}A`,
      `${key}\n!`,
      'a'.repeat(32),
      randomBytes(31).toString('base64'),
    ]) {
      const read = () => readConfig({ DATABASE_URL, WEBHOOK_SEALING_KEY: wrong })
      expect(read).toThrow(
        /^WEBHOOK_SEALING_KEY must be one or two keys of 32 bytes in base64, as `openssl rand -base64 32` prints them, separated by commas$/,
      )
    }
  })

  it.each([
    ['WEBHOOK_ALLOWED_NETWORKS', 'webhook', 'return call'],
    ['RETURN_CALL_ALLOWED_NETWORKS', 'return call', 'webhook'],
  ] as const)(
    '%s accepts networks, and rejects a network whose address has bits beyond the prefix',
    (name, kind, other) => {
      const allowed = (list: string) => {
        const networks = readConfig({ DATABASE_URL, [name]: list }).webhooks.allowedNetworks
        expect(networks[other]).toEqual([])
        return networks[kind]
      }
      expect(allowed('')).toEqual([])
      expect(allowed('127.0.0.1/32, 10.1.0.0/16,fd00::/8')).toEqual(['127.0.0.1/32', '10.1.0.0/16', 'fd00::/8'])
      const wrong = '10.1.0.0 10.1.2.3/8 10.1/16 10.0.0.0/33 10.0.0.0/ 010.0.0.0/8 fd00::1/8 fe80::%lo/10 localhost * ,'
      for (const list of wrong.split(' ')) {
        expect(() => allowed(list), list).toThrow(
          `${name} must be networks such as 10.1.0.0/16, or 10.1.2.3/32 for one address, separated by commas`,
        )
      }
    },
  )

  it('the configuration accepts a path in PUBLIC_URL and removes the trailing slash', () => {
    const publicUrl = (PUBLIC_URL: string) => readConfig({ DATABASE_URL, PUBLIC_URL }).publicUrl
    expect(publicUrl('https://pay.example.in/upi/')).toBe('https://pay.example.in/upi')
    expect(publicUrl('https://pay.example.in')).toBe('https://pay.example.in')
    expect(() => publicUrl('pay.example.in')).toThrow('PUBLIC_URL must be')
  })

  it('the configuration reads a secret from the file in NAME_FILE, and treats an empty variable as unset', () => {
    const folder = mkdtempSync(join(tmpdir(), 'config-'))
    writeFileSync(join(folder, 'url'), `${DATABASE_URL}\n`)
    const DATABASE_URL_FILE = join(folder, 'url')
    expect(readConfig({ DATABASE_URL_FILE, DATABASE_URL: '', PORT: '' })).toMatchObject({
      databaseUrl: DATABASE_URL,
      port: 3000,
    })
    expect(() => readConfig({ DATABASE_URL_FILE, DATABASE_URL })).toThrow(
      'DATABASE_URL and DATABASE_URL_FILE are both set',
    )
    rmSync(folder, { recursive: true })
    expect(() => readConfig({ DATABASE_URL_FILE })).toThrow(
      'DATABASE_URL_FILE names a file that cannot be read. Check its path and permissions.',
    )
  })
})

it('the console has no URL but that of its own role', () => {
  const own = 'postgres://upi_console:secret@db/upi'
  const others = { DATABASE_URL, DATABASE_MIGRATE_URL: 'postgres://upi_owner@db/upi', DATABASE_READ_URL: DATABASE_URL }
  const config = readConsoleConfig({ ...others, CONSOLE_DATABASE_URL: own })
  const urls = Object.values(config).filter((value) => String(value).startsWith('postgres:'))
  expect(new Set(urls)).toEqual(new Set([own]))
})

describe('the URL of a database', () => {
  const SETTINGS = ['DATABASE_URL', 'DATABASE_MIGRATE_URL', 'DATABASE_READ_URL', 'CONSOLE_DATABASE_URL'] as const
  const toSettings = (name: (typeof SETTINGS)[number], url: string) => ({ DATABASE_URL, [name]: url })
  const errorOf = (read: () => unknown): string | undefined => {
    try {
      read()
    } catch (error) {
      return (error as Error).message
    }
    return undefined
  }
  const RULE =
    'must be a PostgreSQL URL, such as postgres://user:password@host:5432/name. In user and password, write # / ? @ percent-encoded: %23 %2F %3F %40'

  it.each([
    'postgres://upi:SECRET#word@db.example:5432/upi',
    'postgres://upi:SECRET/word@db.example:5432/upi',
    'postgres://upi:SECRET?word@db.example:5432/upi',
    // The driver would connect to the host upi.
    'postgres://upi:54321#SECRET@db.example/upi',
    'postgres://upi:54321/SECRET@db.example/upi',
    'postgres://upi:54321?SECRET@db.example/upi',
    'postgres://upi:54321?user=SECRET@db.example/upi',
    'postgres://upi:#SECRET@db.example/upi',
    // The driver would connect to the host SECRET.
    'postgres://upi:1@SECRET#2@db.example/upi',
    'postgres://upi:1@SECRET/2@db.example/upi',
    'postgres://upi:1@SECRET/2@db.example',
    'postgres://upi:1@SECRET?2@db.example/upi',
    'postgres://upi:1@/SECRET@db.example/upi',
    'postgres://SECRET/upi:word@db.example/upi',
    'postgres://upi:SECRET%E0@db.example/upi',
    'postgres://upi:SECRET',
  ])('is rejected with the name of the setting, and without a part of the URL: %s', async (url) => {
    const folder = mkdtempSync(join(tmpdir(), 'config-'))
    const path = join(folder, 'url')
    writeFileSync(path, `${url}\n`)
    for (const name of SETTINGS) {
      expect(errorOf(() => readConfig(toSettings(name, url)))).toBe(`${name} ${RULE}`)
      const { [name]: _, ...others } = { DATABASE_URL } as Record<string, string>
      expect(errorOf(() => readDatabaseConfig({ ...others, [`${name}_FILE`]: path }))).toBe(`${name} ${RULE}`)
    }
    expect(await runOps(url, ['merchants', 'list'])).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: `ops: DATABASE_URL ${RULE}\n`,
    })
    rmSync(folder, { recursive: true })
  })

  it.each([
    'postgres://upi:p@ss@db.example/upi',
    'postgres://upi:p%23%2F%3F%40%25@db.example:5432/upi?sslmode=disable&application_name=a%40b',
    'postgres://upi:100%@db.example/upi',
    'postgresql://upi@db.example',
    'postgres://localhost:5432',
    'postgres://upi:word@%2Fvar%2Frun%2Fpostgresql/upi',
    'postgres://upi:word@/upi?host=/var/run/postgresql',
    'postgres:///upi?host=/var/run/postgresql&user=upi',
    'postgres://upi:word@[2001:db8::1]:5432/upi',
    'postgres://upi:word@db1.example,db2.example/upi',
    'postgres://upi:word@/upi?host=db1.example,db2.example&port=5432,5433',
    // The file is missing, which the connection reports.
    'postgres://upi:word@db.example/upi?sslmode=verify-full&sslrootcert=/nowhere/ca.pem',
  ])('is accepted: %s', (url) => {
    for (const name of SETTINGS) expect(errorOf(() => readConfig(toSettings(name, url)))).toBeUndefined()
  })

  it('is rejected, or read by the driver with the host, user and database that are meant, whatever the password is', () => {
    const password = fc.string({ unit: fc.constantFrom(...'aZ19#/?@:&=[]%\\ .,;'), minLength: 1, maxLength: 8 })
    const read = (url: string) => {
      const { host, user, database, password } = new pg.Client({ connectionString: url })
      return { host, user, database, password }
    }
    const meant = { host: 'db.example', user: 'upi', database: 'orders' }
    const seen = { accepted: 0, rejected: 0 }
    fc.assert(
      fc.property(password, (word) => {
        const written = `postgres://upi:${word}@db.example/orders`
        const error = errorOf(() => readDatabaseConfig({ DATABASE_URL: written }))
        seen[error === undefined ? 'accepted' : 'rejected']++
        if (error === undefined) expect(read(written)).toMatchObject(meant)
        else expect(error).toBe(`DATABASE_URL ${RULE}`)
        const encoded = `postgres://upi:${encodeURIComponent(word)}@db.example/orders`
        expect(errorOf(() => readDatabaseConfig({ DATABASE_URL: encoded }))).toBeUndefined()
        expect(read(encoded)).toEqual({ ...meant, password: word })
      }),
      { numRuns: 2_000 },
    )
    expect(Math.min(seen.accepted, seen.rejected)).toBeGreaterThan(100)
  })
})
