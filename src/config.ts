import { createSecretKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import * as z from 'zod'
import type { SetuSettings } from './acquirer/setu.ts'
import { readUrl } from './url.ts'

type Environment = Readonly<Record<string, string | undefined>>

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`)

const postgresUrl = z
  .string()
  .regex(/^postgres(ql)?:\/\//, 'must be a PostgreSQL URL, such as postgres://user:password@host:5432/name')

const publicUrl = z
  .string()
  .refine(
    (text) => /^https?:\/\//.test(text) && readUrl(text) !== undefined && !/[?#]/.test(text),
    'must be an http or https URL without query, such as https://pay.example.in',
  )
  .transform((text) => text.replace(/\/+$/, ''))

/** Shorter secrets could be guessed; the acquirer's are shared by two parties and stay for long. */
const SECRET_MIN_CHARACTERS = 16

const secrets = z
  .string()
  .transform((list) => list.split(',').map((secret) => secret.trim()))
  .refine(
    (list) => list.every((secret) => secret.length >= SECRET_MIN_CHARACTERS),
    `must be one or several secrets of at least ${SECRET_MIN_CHARACTERS} characters each, joined by commas`,
  )

/** Whose X-Forwarded-For is believed. */
const proxyAddresses = z
  .string()
  .refine((list) => list.split(',').every(isNetwork), 'must be addresses or networks of proxies, joined by commas')

/** An address, or a network as address/prefix. Fastify would take `10.1` for 10.0.0.1. */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.trim().split('/')
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return bits > 0 && rest.length === 0 && (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits))
}

const SETU_SECRET_RULE = 'must be one or several secrets of 20 to 50 letters and digits each, joined by commas'

const setuSecrets = z
  .string()
  .transform((list) => list.split(',').map((secret) => secret.trim()))
  .refine((list) => list.every((secret) => /^[A-Za-z0-9]{20,50}$/.test(secret)), SETU_SECRET_RULE)

/** Credentials travel there, so only this machine is called without TLS. */
const secureUrl = z
  .string()
  .refine(
    (text) => readUrl(text) !== undefined && /^(https:|http:\/\/(127\.0\.0\.1|localhost)[:/])/.test(text),
    'must be an https URL',
  )
  .transform((text) => text.replace(/\/+$/, ''))

const SEALING_KEY_BYTES = 32

/** Becomes a KeyObject, which no log and no error prints. */
const sealingKey = z
  .string()
  .refine((text) => {
    // Buffer.from drops what is not base64.
    const key = Buffer.from(text, 'base64')
    return key.length === SEALING_KEY_BYTES && key.toString('base64') === text
  }, `must be ${SEALING_KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${SEALING_KEY_BYTES}\` makes them`)
  .transform((text) => createSecretKey(text, 'base64'))

const networks = z
  .string()
  .transform((list) => list.split(',').map((network) => network.trim()))
  .refine(
    (list) => list.every(isWholeNetwork),
    'must be networks such as 10.1.0.0/16, or 10.1.2.3/32 for one address, joined by commas',
  )

/** 10.1.2.3/8 is refused: it may be meant as that one address, and would open all of 10.0.0.0/8. */
function isWholeNetwork(text: string): boolean {
  if (!text.includes('/') || !isNetwork(text) || text.includes('%')) return false
  const [address] = ipaddr.parseCIDR(text)
  const family = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  return family.networkAddressFromCIDR(text).toString() === address.toString()
}

const DatabaseVariables = z.object({
  DATABASE_URL: postgresUrl,
  DATABASE_MIGRATE_URL: postgresUrl.optional(),
  DATABASE_READ_URL: postgresUrl.optional(),
  DATABASE_POOL_SIZE: wholeNumber(1, 1_000).default(6),
  SETU_API_URL: secureUrl.default('https://umap.setu.co'),
  SETU_LOGIN_URL: secureUrl.default('https://accountservice.setu.co/v1/users/login'),
  SETU_CLIENT_ID: z.string().optional(),
  SETU_CLIENT_SECRET: z.string().optional(),
  SETU_NOTIFICATION_SECRETS: setuSecrets.optional(),
  WEBHOOK_SEALING_KEY: sealingKey.optional(),
  WEBHOOK_ALLOWED_NETWORKS: networks.default([]),
  RETURN_CALL_ALLOWED_NETWORKS: networks.default([]),
  OPS_BY: z
    .string()
    .trim()
    .regex(/^[^\p{C}]{1,64}$/u, 'must be 1 to 64 characters, without control characters')
    .optional(),
})

const ServiceVariables = DatabaseVariables.extend({
  NODE_ENV: z.string().default('development'),
  HOST: z.string().default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(3000),
  PUBLIC_URL: publicUrl.optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  INTENT_EXPIRY_MINUTES: wholeNumber(1, 1_440).default(15),
  ACQUIRER_SECRETS: secrets.default([]),
  OPS_HOST: z.string().default('127.0.0.1'),
  OPS_PORT: wholeNumber(0, 65_535).default(3001),
  TRUST_PROXY: proxyAddresses.optional(),
  RATE_LIMIT_PER_SECOND: wholeNumber(1, 1_000_000).optional(),
  RATE_LIMIT_PER_MINUTE: wholeNumber(1, 100_000_000).optional(),
  SHUTDOWN_DRAIN_SECONDS: wholeNumber(0, 600).default(5),
  SANDBOX: z.literal('on', 'must be on, or not be set').optional(),
})

/** Variables that may also come as NAME_FILE: the path of a file that holds the value, as Docker secrets do. */
const SECRET_VARIABLES = [
  'DATABASE_URL',
  'DATABASE_MIGRATE_URL',
  'DATABASE_READ_URL',
  'ACQUIRER_SECRETS',
  'SETU_API_URL',
  'SETU_LOGIN_URL',
  'SETU_CLIENT_ID',
  'SETU_CLIENT_SECRET',
  'SETU_NOTIFICATION_SECRETS',
  'WEBHOOK_SEALING_KEY',
]

/** Such a service takes orders and never learns that one is paid. It may be intended for a trial, but not in production. */
const LEARNS_OF_NO_PAYMENT =
  'No acquirer can tell this service of payments, so that every order stays unpaid: set ACQUIRER_SECRETS or SETU_CLIENT_ID'

/** The earlier setting, which is still read. */
const PER_SECOND =
  'Requests of a key are counted by the second: set RATE_LIMIT_PER_SECOND in place of RATE_LIMIT_PER_MINUTE, which is read as a 60th of it'

export type DatabaseConfig = ReturnType<typeof readDatabaseConfig>
export type Config = ReturnType<typeof readConfig>

/** What the operator's command line needs to know. Throws an Error that names every wrong variable. */
export function readDatabaseConfig(environment: Environment) {
  return databaseConfig(parse(DatabaseVariables, environment))
}

/** What the service needs to know. Throws an Error that names every wrong variable. */
export function readConfig(environment: Environment) {
  const variables = parse(ServiceVariables, environment)
  const production = variables.NODE_ENV === 'production'
  if (production && variables.PUBLIC_URL === undefined) {
    // The caller chooses the Host header, so the links that customers pay by must not be made from it.
    throw new Error('PUBLIC_URL is required in production: the address under which customers reach this service')
  }
  if (production && variables.SANDBOX !== undefined) {
    throw new Error(
      'SANDBOX must not be set in production, where it would let anybody mark an order as paid: to try things out, set NODE_ENV=development as well',
    )
  }
  if (variables.PORT === variables.OPS_PORT && variables.PORT !== 0) {
    throw new Error(`PORT and OPS_PORT are both ${variables.PORT}: give OPS_PORT another one`)
  }
  const database = databaseConfig(variables)
  const { RATE_LIMIT_PER_MINUTE: perMinute } = variables
  return Object.freeze({
    ...database,
    host: variables.HOST,
    port: variables.PORT,
    publicUrl: variables.PUBLIC_URL ?? `http://localhost:${variables.PORT}`,
    logLevel: variables.LOG_LEVEL,
    intentExpiryMinutes: variables.INTENT_EXPIRY_MINUTES,
    opsHost: variables.OPS_HOST,
    opsPort: variables.OPS_PORT,
    trustProxy: variables.TRUST_PROXY ?? false,
    rateLimitPerSecond: variables.RATE_LIMIT_PER_SECOND ?? Math.ceil((perMinute ?? 60_000) / 60),
    shutdownDrainSeconds: variables.SHUTDOWN_DRAIN_SECONDS,
    acquirerSecrets: variables.ACQUIRER_SECRETS,
    sandbox: variables.SANDBOX === 'on',
    warnings: [
      ...(production && variables.ACQUIRER_SECRETS.length === 0 && !database.setu ? [LEARNS_OF_NO_PAYMENT] : []),
      ...(perMinute === undefined ? [] : [PER_SECOND]),
    ],
  })
}

function databaseConfig(variables: z.output<typeof DatabaseVariables>) {
  return Object.freeze({
    databaseUrl: variables.DATABASE_URL,
    databaseMigrateUrl: variables.DATABASE_MIGRATE_URL ?? variables.DATABASE_URL,
    databaseReadUrl: variables.DATABASE_READ_URL,
    databasePoolSize: variables.DATABASE_POOL_SIZE,
    setu: setuSettings(variables),
    webhooks: {
      sealingKey: variables.WEBHOOK_SEALING_KEY,
      allowedNetworks: {
        webhook: variables.WEBHOOK_ALLOWED_NETWORKS,
        'return call': variables.RETURN_CALL_ALLOWED_NETWORKS,
      },
    },
    operator: variables.OPS_BY,
  })
}

/** All three of its credentials, or none: with some of them no payment could be taken, or none be heard of. */
function setuSettings(variables: z.output<typeof DatabaseVariables>): SetuSettings | undefined {
  const credentials = {
    SETU_CLIENT_ID: variables.SETU_CLIENT_ID,
    SETU_CLIENT_SECRET: variables.SETU_CLIENT_SECRET,
    SETU_NOTIFICATION_SECRETS: variables.SETU_NOTIFICATION_SECRETS,
  }
  const { SETU_CLIENT_ID, SETU_CLIENT_SECRET, SETU_NOTIFICATION_SECRETS } = credentials
  if (!SETU_CLIENT_ID && !SETU_CLIENT_SECRET && !SETU_NOTIFICATION_SECRETS) return undefined
  if (SETU_CLIENT_ID && SETU_CLIENT_SECRET && SETU_NOTIFICATION_SECRETS) {
    return {
      apiUrl: variables.SETU_API_URL,
      loginUrl: variables.SETU_LOGIN_URL,
      clientId: SETU_CLIENT_ID,
      clientSecret: SETU_CLIENT_SECRET,
      notificationSecrets: SETU_NOTIFICATION_SECRETS,
    }
  }
  const missing = Object.entries(credentials).flatMap(([name, value]) => (value ? [] : name))
  throw new Error(`To take payments through Setu, set ${missing.join(' and ')} too`)
}

function parse<S extends z.ZodType>(schema: S, environment: Environment): z.output<S> {
  const values = withSecretsFromFiles(environment)
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const faults = result.error.issues.map((issue) => {
    const name = String(issue.path[0])
    return values[name] === undefined && issue.code === 'invalid_type'
      ? `${name} is required`
      : `${name} ${issue.message}`
  })
  throw new Error([...new Set(faults)].join('; '))
}

function withSecretsFromFiles(environment: Environment): Environment {
  // An empty variable is an unset one: compose files pass `NAME=` for what the operator left out.
  const values = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  for (const name of SECRET_VARIABLES) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    if (values[name] !== undefined) throw new Error(`${name} and ${name}_FILE are both set: keep one`)
    try {
      values[name] = readFileSync(path, 'utf8').trim()
    } catch {
      throw new Error(`${name}_FILE names a file that cannot be read`)
    }
  }
  return values
}
