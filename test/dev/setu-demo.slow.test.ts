import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDemoCheckout, type DemoCheckout } from '../support/demo-checkout.ts'
import { end } from '../support/processes.ts'
import { until } from '../support/wait.ts'

const TIMEOUT_MS = 180_000

let checkout: DemoCheckout
beforeAll(() => {
  checkout = createDemoCheckout()
})
afterAll(() => checkout.remove())

const show = async (orderId: string) => {
  const { stdout, stderr, code } = await checkout.ops('payments', 'show', '--order-id', orderId)
  expect(code, stderr).toBe(0)
  return stdout
}

it('a newcomer sees a payment through Setu, told of by a notification; plain npm start then works as before', {
  timeout: TIMEOUT_MS,
}, async () => {
  const setu = await checkout.start({ ACQUIRER: 'setu-sandbox' })
  expect(setu.said()).toContain('a demo merchant of Setu')
  const paid = await setu.create()
  expect(paid.intent).toMatch(/^upi:\/\/pay\?pa=demo@thisisnobank&.*&tr=SU\d+&/)
  expect(await setu.simulate(paid.orderId)).toBe(303)
  await until('the notification has come', () => setu.isPaid(paid.orderId))
  expect(await show(paid.orderId)).toContain('notification')
  const open = await setu.create()
  expect(await end(setu.child)).toBe(0)

  const plain = await checkout.start({})
  const { orderId, intent } = await plain.create()
  expect(intent).toContain('pa=demo@not-a-bank.invalid&')
  expect(intent).toContain(`tr=${orderId}`)
  for (const order of [orderId, open.orderId]) {
    expect(await plain.simulate(order)).toBe(303)
    expect(await show(order)).toContain('sandbox')
  }
  expect(await end(plain.child)).toBe(0)
})

it('any other acquirer than that of the demo is refused in one sentence', async () => {
  const { said, child } = await checkout.start({ ACQUIRER: 'setu' })
  expect([child.exitCode, said()]).toEqual([1, 'ACQUIRER must be setu-sandbox, or not be set\n'])
})
