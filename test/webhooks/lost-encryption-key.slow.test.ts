import { createSecretKey, randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { expect, it, onTestFinished } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import { runProgram } from '../support/ops.ts'
import { CREATE, intentFields, newMerchant, post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { allow } from '../support/webhooks.ts'

it('the service delivers pending webhooks with a new key and a new secret after the encryption key was lost', async () => {
  const [lost, found] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
  const allowedNetworks = ['127.0.0.1/32']
  const encryptionKeys = [createSecretKey(found, 'base64')]
  const service = await startService({
    webhooks: { encryptionKeys, allowedNetworks: allow(...allowedNetworks) },
    limits: { webhooks: { lookIntervalMs: 50, visibilityMs: 1_000 } },
  })
  // Receivers compare the time of a webhook with their own clock.
  service.clock.set(new Date().toISOString())
  const received: { headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await until('the receiver listens', () => server.listening)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`

  const type = async (key: string, ...args: string[]) => {
    const settings = { WEBHOOK_SEALING_KEY: key, WEBHOOK_ALLOWED_NETWORKS: allowedNetworks.join() }
    const env = { ...process.env, DATABASE_URL: service.databaseUrl, ...settings }
    const { code, stdout, stderr } = await runProgram('src/operator/terminal/ops.ts', [...args, '--json'], { env })
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }
  const { mid, key } = await newMerchant(service.db)
  const { id } = await type(lost, 'webhooks', 'add', '--mid', mid, '--url', url)
  const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
  expect((await notify(service, notification(orderId))).status).toBe(200)
  await until('the error is logged', () => service.log.some((line) => line.includes('webhooks are not delivered')))

  const { secret } = await type(found, 'webhooks', 'rotate-secret', '--endpoint', id)
  await until('the webhook is received', () => received.length > 0)
  const [{ headers, body } = { headers: {}, body: '' }] = received
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({ data: { orderId } })
})
