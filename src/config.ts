import { createSecretKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import ipaddr from 'ipaddr.js'
import pg from 'pg'
import * as z from 'zod'
import { ACCOUNT_VARIABLES, type AcquirerSettings, readAccounts } from './gateway/acquirers/accounts.ts'
import type { EncryptionKeys } from './platform/encryption.ts'
import { personName, readUrl } from './platform/fields.ts'
import {
  checked,
  listOf,
  readVariables,
  type Variables,
  wholeNumber,
  withoutTrailingSlash,
} from './platform/variables.ts'

const port = wholeNumber(0, 65_535)

const postgresUrl = checked(
  'must be a PostgreSQL URL, such as postgres://user:password@host:5432/name. In user and password, write # / ? @ percent-encoded: %23 %2F %3F %40',
  isDatabaseUrl,
)

/**
 * Whether the driver reads `text` as a PostgreSQL URL. A # / or ? in the user or password ends the host, so that the @
 * before the meant host follows it: the driver would then connect to a part of the password, and messages would name
 * this part as host or database. Therefore # and an @ after the host are invalid.
 */
function isDatabaseUrl(text: string): boolean {
  if (!/^postgres(?:ql)?:\/\/[^#/?]*(?:[/?][^#@]*)?$/.test(text)) return false
  try {
    new pg.Client({ connectionString: text })
    return true
  } catch (error) {
    // Other errors are about files and options of the connection, and the connection reports them.
    return !(error instanceof TypeError || error instanceof URIError)
  }
}

const ENCRYPTION_KEY_BYTES = 32
const SECRET_MIN_CHARACTERS = 16

/** The keys are KeyObjects, because logs and errors do not print the bytes of a KeyObject. */
const encryptionKeys = listOf(
  `must be one or two keys of ${ENCRYPTION_KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${ENCRYPTION_KEY_BYTES}\` prints them`,
  (text) => {
    // Compares the text with its own re-encoding, because Buffer.from skips characters that are not base64.
    const key = Buffer.from(text, 'base64')
    return key.length === ENCRYPTION_KEY_BYTES && key.toString('base64') === text
  },
)
  .refine((keys) => keys.length <= 2, 'must be at most two keys: the current one, which encrypts, and the previous one')
  .transform((keys): EncryptionKeys => keys.map((text) => createSecretKey(text, 'base64')))

/**
 * Rejects a network with bits set beyond its prefix, because 10.1.2.3/8 may be meant as the single address 10.1.2.3.
 */
const networks = listOf('must be networks such as 10.1.0.0/16, or 10.1.2.3/32 for one address', isNetwork)

const proxies = listOf('must be addresses or networks of proxies', (text) => isAddress(text) || isCidr(text))

/**
 * Whether the text is a complete IP address. Short forms are not accepted, because ipaddr.js and Fastify read `10.1` as
 * 10.0.0.1 and `010` as 8.
 */
function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'))
}

function isCidr(text: string): boolean {
  const [address = ''] = text.split('/')
  return isAddress(address) && ipaddr.isValidCIDR(text)
}

function isNetwork(text: string): boolean {
  if (!isCidr(text)) return false
  const [address] = ipaddr.parseCIDR(text)
  const family = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
  return family.networkAddressFromCIDR(text).toString() === address.toString()
}

/**
 * The operator's password must be as long as an acquirer's secret, because the service does not limit the number of
 * guesses.
 */
const password = checked(
  `must be at least ${SECRET_MIN_CHARACTERS} printable ASCII characters without spaces`,
  (text) => text.length >= SECRET_MIN_CHARACTERS && /^[!-~]+$/.test(text),
)

/** Hosts as in a Host header, without the port. A network allows every address in the network. */
const hosts = listOf(
  'must be host names, addresses (IPv6 in brackets) or networks such as 10.1.0.0/16',
  (host) => isNetwork(host) || /^(?:[\w-]+(?:\.[\w-]+)*|\[[\da-f:.]+\])$/i.test(host),
).transform((list) => list.map((host) => host.toLowerCase()))

/**
 * Variables that the operator's commands read. Variables that only the service reads are omitted, because an error in
 * such a variable must not stop a command.
 */
const OperatorVariables = z.object({
  DATABASE_URL: postgresUrl,
  DATABASE_MIGRATE_URL: postgresUrl.optional(),
  DATABASE_READ_URL: postgresUrl.optional(),
  DATABASE_POOL_SIZE: wholeNumber(1, 1_000).default(6),
  DATABASE_PREPARED_STATEMENTS: z.enum(['on', 'off'], 'must be on or off').default('on'),
  // Commands also read NODE_ENV, because commands, like the service, reject an acquirer's sandbox in production.
  NODE_ENV: z
    .enum(['production', 'development', 'test'], 'must be production, development or test')
    .default('development'),
  ...ACCOUNT_VARIABLES,
  WEBHOOK_SEALING_KEY: encryptionKeys.default([]),
  WEBHOOK_ALLOWED_NETWORKS: networks.default([]),
  RETURN_CALL_ALLOWED_NETWORKS: networks.default([]),
  OPS_BY: personName.optional(),
  CONSOLE_DATABASE_URL: postgresUrl.optional(),
  CONSOLE_HOST: z.string().default('127.0.0.1'),
  CONSOLE_PORT: port.default(3002),
  CONSOLE_ALLOWED_HOSTS: hosts.default([]),
})

const ConsoleVariables = OperatorVariables.omit({ DATABASE_URL: true, DATABASE_MIGRATE_URL: true })

const ServiceVariables = OperatorVariables.extend({
  HOST: z.string().default('127.0.0.1'),
  PORT: port.default(3000),
  PUBLIC_URL: checked(
    'must be an http or https URL without query, such as https://pay.example.in',
    (text) => /^https?:\/\//.test(text) && readUrl(text) !== undefined && !/[?#]/.test(text),
  )
    .transform(withoutTrailingSlash)
    .optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  INTENT_EXPIRY_MINUTES: wholeNumber(1, 1_440).default(15),
  // The secrets have a minimum length, because a short secret that two parties share for a long time could be guessed.
  ACQUIRER_SECRETS: listOf(
    `must be one or more secrets of at least ${SECRET_MIN_CHARACTERS} characters each`,
    (secret) => secret.length >= SECRET_MIN_CHARACTERS,
  ).default([]),
  OPS_HOST: z.string().default('127.0.0.1'),
  OPS_PORT: port.default(3001),
  OPS_PASSWORD: password.optional(),
  OPS_ALLOWED_HOSTS: hosts.default([]),
  TRUST_PROXY: proxies.optional(),
  RATE_LIMIT_PER_SECOND: wholeNumber(1, 1_000_000).default(1_000),
  SHUTDOWN_DRAIN_SECONDS: wholeNumber(0, 600).default(5),
  SANDBOX: z.literal('on', 'must be on, or not be set').optional(),
})

const PLAIN_HTTP =
  'PUBLIC_URL is plain http, so API keys and payees can be read and changed in transit. Put a TLS proxy in front of the service and set PUBLIC_URL to its https address.'

export type DatabaseConfig = ReturnType<typeof readDatabaseConfig>
export type Config = ReturnType<typeof readConfig>

/** The settings that the app uses; all other settings are used by the process. */
export type AppConfig = Pick<
  Config,
  | 'publicUrl'
  | 'intentExpiryMinutes'
  | 'acquirers'
  | 'sandbox'
  | 'trustProxy'
  | 'rateLimitPerSecond'
  | 'webhooks'
  | 'production'
  | 'warnings'
>

/** Reads the settings of the operator's command line. Throws an Error that names every invalid variable. */
export const readDatabaseConfig = (environment: Variables) =>
  databaseConfig(readVariables(OperatorVariables, withFiles(environment)))

/**
 * Reads the settings of `ops console`, which has a database role of its own and uses no other URL, not even that of the
 * replica. Throws an Error that names every invalid variable.
 */
export function readConsoleConfig(environment: Variables) {
  const { CONSOLE_DATABASE_URL: url, ...variables } = readVariables(ConsoleVariables, withFiles(environment))
  if (url === undefined) {
    throw new Error(
      'CONSOLE_DATABASE_URL is required. Set it to the URL of the database for the role upi_console: postgres://upi_console:password@host:5432/name',
    )
  }
  return databaseConfig({ ...variables, DATABASE_URL: url, DATABASE_MIGRATE_URL: url, DATABASE_READ_URL: undefined })
}

/** Reads the settings of the service. Throws an Error that names every invalid variable. */
export function readConfig(environment: Variables) {
  const variables = readVariables(ServiceVariables, withFiles(environment))
  const production = isProduction(variables)
  if (production && variables.PUBLIC_URL === undefined) {
    // Requires PUBLIC_URL, because the caller chooses the Host header, and customers' payment links must not be built
    // from that header.
    throw new Error(
      'PUBLIC_URL is required in production. Set it to the address at which customers reach this service.',
    )
  }
  if (production && variables.SANDBOX !== undefined) {
    throw new Error(
      'SANDBOX must not be set in production, because it would let anyone mark an order as paid. For tests, also set NODE_ENV=development.',
    )
  }
  if (variables.PORT === variables.OPS_PORT && variables.PORT !== 0) {
    throw new Error(`PORT and OPS_PORT are both ${variables.PORT}. Set OPS_PORT to another port.`)
  }
  const database = databaseConfig(variables)
  const publicUrl = variables.PUBLIC_URL ?? `http://localhost:${variables.PORT}`
  const accounts = readAccounts(variables, { production, publicUrl })
  const acquirers: AcquirerSettings = { ...accounts, direct: variables.ACQUIRER_SECRETS }
  return {
    ...database,
    host: variables.HOST,
    port: variables.PORT,
    publicUrl,
    logLevel: variables.LOG_LEVEL,
    intentExpiryMinutes: variables.INTENT_EXPIRY_MINUTES,
    opsHost: variables.OPS_HOST,
    opsPort: variables.OPS_PORT,
    opsReaders: { password: variables.OPS_PASSWORD, allowedHosts: variables.OPS_ALLOWED_HOSTS },
    trustProxy: variables.TRUST_PROXY ?? false,
    rateLimitPerSecond: variables.RATE_LIMIT_PER_SECOND,
    shutdownDrainSeconds: variables.SHUTDOWN_DRAIN_SECONDS,
    acquirers,
    sandbox: variables.SANDBOX === 'on',
    warnings: production && publicUrl.startsWith('http:') ? [PLAIN_HTTP] : [],
  }
}

const isProduction = ({ NODE_ENV }: z.output<typeof OperatorVariables>) => NODE_ENV === 'production'

function databaseConfig(variables: z.output<typeof OperatorVariables>) {
  const production = isProduction(variables)
  return {
    production,
    databaseUrl: variables.DATABASE_URL,
    databaseMigrateUrl: variables.DATABASE_MIGRATE_URL ?? variables.DATABASE_URL,
    databaseReadUrl: variables.DATABASE_READ_URL,
    databasePoolSize: variables.DATABASE_POOL_SIZE,
    preparedStatements: variables.DATABASE_PREPARED_STATEMENTS === 'on',
    // The list of secrets for `direct` is empty, because commands receive no notifications.
    acquirers: { ...readAccounts(variables, { production }), direct: [] },
    webhooks: {
      encryptionKeys: variables.WEBHOOK_SEALING_KEY,
      allowedNetworks: {
        webhook: variables.WEBHOOK_ALLOWED_NETWORKS,
        'return call': variables.RETURN_CALL_ALLOWED_NETWORKS,
      },
    },
    operator: variables.OPS_BY,
    consoleHost: variables.CONSOLE_HOST,
    consolePort: variables.CONSOLE_PORT,
    consoleAllowedHosts: variables.CONSOLE_ALLOWED_HOSTS,
  }
}

/**
 * Adds the values of variables given as NAME_FILE, the path of a file that contains the value, as with Docker secrets.
 */
function withFiles(environment: Variables): Variables {
  // Treats an empty variable as unset, because Compose files pass `NAME=` for variables that the operator has not set.
  const values = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  for (const name of Object.keys(ServiceVariables.shape)) {
    const path = values[`${name}_FILE`]
    if (path === undefined) continue
    if (values[name] !== undefined) throw new Error(`${name} and ${name}_FILE are both set. Set only one of them.`)
    try {
      values[name] = readFileSync(path, 'utf8').trim()
    } catch {
      throw new Error(`${name}_FILE names a file that cannot be read. Check its path and permissions.`)
    }
  }
  return values
}
