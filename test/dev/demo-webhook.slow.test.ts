import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createDemoCheckout, type DemoCheckout } from '../support/demo-checkout.ts'
import { end, freePort, startReading } from '../support/processes.ts'
import { until } from '../support/wait.ts'

const TIMEOUT_MS = 180_000

let checkout: DemoCheckout
beforeAll(() => {
  checkout = createDemoCheckout()
})
afterAll(() => checkout.remove())

const printedLine = (said: string) => /^WEBHOOK_SECRET=.*$/m.exec(said)?.[0] ?? 'npm start prints no receiver'

/** Pastes the line that `npm start` prints into a terminal in the folder of the checkout. */
async function startReceiver(line: string) {
  const receiver = startReading('sh', ['-c', `exec env ${line}`], { cwd: checkout.folder })
  onTestFinished(() => void end(receiver.child))
  await until('the receiver waits', () => receiver.said().includes('Waiting for webhooks'))
  return receiver
}

it('the receiver that npm start tells to run prints the first simulated payment’s webhook, verified', {
  timeout: TIMEOUT_MS,
}, async () => {
  const demo = await checkout.start()
  const line = printedLine(demo.said())
  const receiver = await startReceiver(line)
  const { orderId } = await demo.create({ order_id: 'first-1' })
  expect(await demo.simulate(orderId)).toBe(303)
  await until('the webhook has come', () => receiver.said().includes('"payment.succeeded"'))
  expect(receiver.said()).toContain(`msg_${orderId}_1 is genuine`)
  expect(receiver.said()).toContain('"order_id": "first-1"')
  expect(receiver.said()).not.toContain('Refused')

  const ping = await checkout.ops('webhooks', 'ping', '--endpoint', 'ep_demo')
  expect(ping).toMatchObject({ code: 0, stdout: expect.stringContaining('took it: 204') })
  await until('the ping has come', () => receiver.said().includes('"ping"'))

  // What a wrong secret looks like. The receiver has to make room for it.
  await end(receiver.child)
  const misled = await startReceiver(line.replace(/whsec_..../, 'whsec_AAAA'))
  const refused = await checkout.ops('webhooks', 'ping', '--endpoint', 'ep_demo')
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('401: No matching signature found') })
  expect(misled.said()).toContain('Refused: No matching signature found')
  expect(await end(demo.child)).toBe(0)
})

it('the demo keeps its secret from start to start, and its webhook stays as the operator left it', {
  timeout: TIMEOUT_MS,
}, async () => {
  const port = await freePort()
  const first = await checkout.start({ PORT: String(port) })
  const line = printedLine(first.said())
  expect(line).toMatch(new RegExp(`^WEBHOOK_SECRET=whsec_\\S{44} PORT=${port + 2} node src/dev/receive-webhooks.mjs$`))
  expect((await checkout.ops('webhooks', 'disable', '--endpoint', 'ep_demo')).code).toBe(0)
  expect(await end(first.child)).toBe(0)

  const second = await checkout.start()
  const secretOf = (text: string) => /whsec_\S+/.exec(text)?.[0]
  expect(secretOf(printedLine(second.said()))).toBe(secretOf(line))
  const { stdout } = await checkout.ops('webhooks', 'list', '--json')
  expect(JSON.parse(stdout)).toMatchObject([{ id: 'ep_demo', mid: second.mid, state: 'off: operator' }])
  expect(await end(second.child)).toBe(0)
})
