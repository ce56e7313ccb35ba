import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createMetrics } from '../../src/operator/monitoring/metrics.ts'
import { createPools, type Database } from '../../src/platform/db/pool.ts'
import { createServices } from '../../src/services.ts'
import { NOTIFY, type Notification, notification, sign } from '../support/acquirer.ts'
import { startFakeCashfree } from '../support/cashfree-bank.ts'
import { post } from '../support/inject.ts'
import { CREATE, intentFields } from '../support/requests.ts'
import { startFakeSetu } from '../support/setu-bank.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { advanceClock } from './fixed.ts'

/** What a step of the data set works with. `value` returns what an earlier step named. */
export type Stage = {
  app: FastifyInstance
  db: Database
  others: Others
  value: (name: string) => string
  /** Sends a request of the merchant `mid`, with the key that a step named `key-MID` and `secret-MID`. */
  send: (mid: string, path: string, fields: Record<string, string>) => Promise<{ data: Record<string, string> }>
  /** Creates an order, whose order_id becomes the name of its orderId. */
  order: (mid: string, orderId: string, amount: number) => Promise<string>
  /** Notifies the service of a payment, with the named order, like the acquirer. */
  report: (orderId: string, amount: number, changes?: Notification) => Promise<void>
}

export type Others = Awaited<ReturnType<typeof startOthers>>

const SETU = { clientId: 'golden-client', clientSecret: 'golden-secret', notificationSecret: 'golden0secret0of0setu0' }
const CASHFREE = { clientId: 'golden-client', clientSecret: 'golden-secret-of-cashfree' }
const DIRECT_SECRET = 'golden-secret-of-direct'

/** Starts two acquirers and a merchant's server on 127.0.0.1. `settings` are the environment of all commands. */
export async function startOthers() {
  const now = () => new Date()
  const [setu, cashfree] = [await startFakeSetu({ ...SETU, now }), await startFakeCashfree({ ...CASHFREE, now })]
  const receiver = await startReceiver()
  const settings = {
    SETU_API_URL: setu.url,
    SETU_LOGIN_URL: setu.loginUrl,
    SETU_CLIENT_ID: SETU.clientId,
    SETU_CLIENT_SECRET: SETU.clientSecret,
    SETU_NOTIFICATION_SECRETS: SETU.notificationSecret,
    CASHFREE_API_URL: cashfree.apiUrl,
    CASHFREE_CLIENT_ID: CASHFREE.clientId,
    CASHFREE_CLIENT_SECRET: CASHFREE.clientSecret,
    ACQUIRER_SECRETS: DIRECT_SECRET,
    WEBHOOK_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    PUBLIC_URL: 'https://pay.example.in',
    OPS_BY: 'asha',
    CONSOLE_PORT: '0',
  }
  return { setu, cashfree, settings, urls: { setu: setu.url, receiver: receiver.url } }
}

/** Runs `work` beside a service, which closes its connections at the end. Returns the orders and what `work` names. */
export async function onStage(
  databaseUrl: string,
  { others, value }: Pick<Stage, 'others' | 'value'>,
  work: (stage: Stage) => Promise<unknown>,
): Promise<Record<string, string>> {
  const config = readConfig({ ...others.settings, DATABASE_URL: databaseUrl })
  const log = pino({ level: 'silent' })
  const pools = createPools({ url: databaseUrl, requests: 4 }, log)
  const metrics = createMetrics(pools, async () => ({ exceptions: {}, refunds: {} }) as never)
  const app = await buildApp(createServices({ config, pools, log, metrics, now: () => new Date() }))
  const created: Record<string, string> = {}
  const orderOf = (name: string) => created[name] ?? value(name)
  const stage: Stage = {
    ...{ app, others, db: pools.lists, value },
    async send(mid, path, fields) {
      advanceClock(1_000)
      const key = { publicKey: value(`key-${mid}`), secretKey: value(`secret-${mid}`) }
      const { status, body, text } = await post(app, path, fields, key)
      if (status !== 200) throw new Error(`${path} for ${mid}: ${status} ${text}`)
      return body
    },
    async order(mid, orderId, amount) {
      const fields = intentFields(mid, { order_id: orderId, amount: String(amount) })
      const { data } = await stage.send(mid, CREATE, fields)
      created[orderId] = data.orderId as string
      return created[orderId]
    },
    async report(name, amount, changes = {}) {
      advanceClock(1_000)
      const paidAt = new Date().toISOString()
      const body = notification(orderOf(name), { amount, paidAt, ...changes })
      const headers = { 'content-type': 'application/json', 'x-signature': sign(body, new Date(), DIRECT_SECRET) }
      await post(app, NOTIFY, body, undefined, headers)
    },
  }
  try {
    return { ...((await work(stage)) as Record<string, string> | undefined), ...created }
  } finally {
    await app.close()
    await Promise.all(Object.values(pools).map((pool) => pool.end()))
  }
}
