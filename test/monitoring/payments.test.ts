import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ROOT } from '../support/processes.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'

let service: TestService
let newOrder: (amount: string) => Promise<string>
beforeAll(async () => {
  service = await startService()
  const { mid, key } = await newMerchant(service.db, { input: 'shop' })
  newOrder = async (amount) => (await post(service.app, CREATE, intentFields(mid, { amount }), key)).body.data.orderId
})

/** The samples of the metric `name` by their labels. */
async function samplesOf(name: string): Promise<Record<string, number>> {
  const lines = (await service.metrics()).split('\n').filter((line) => line.startsWith(name))
  return Object.fromEntries(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  )
}

it('the metrics count each payment once by status and source, and add up rupees to the paisa', async () => {
  expect(await samplesOf('payments_total')).toEqual({
    '{status="SUCCESS",source="notification"}': 0,
    '{status="FAIL",source="notification"}': 0,
    '{status="REJECT",source="notification"}': 0,
    '{status="SUCCESS",source="enquiry"}': 0,
    '{status="FAIL",source="enquiry"}': 0,
    '{status="REJECT",source="enquiry"}': 0,
  })
  // In floating point, the sum of ten times 0.1 is not 1.
  for (let i = 0; i < 10; i++) {
    const orderId = await newOrder('10.10')
    const failed = notification(orderId, { status: 'FAIL', amount: 10.1, UTR: undefined })
    const paid = notification(orderId, { amount: 10.1, UTR: newUtr() })
    for (const reported of [failed, failed, paid, paid]) expect((await notify(service, reported)).status).toBe(200)
  }
  expect(await samplesOf('payments_total')).toMatchObject({
    '{status="SUCCESS",source="notification"}': 10,
    '{status="FAIL",source="notification"}': 10,
    '{status="REJECT",source="notification"}': 0,
  })
  expect(await samplesOf('payments_rupees_total')).toEqual({ '': 101 })
})

it('the metrics do not count a report that contradicts its order', async () => {
  const before = [await samplesOf('payments_total'), await samplesOf('payments_rupees_total')]
  const orderId = await newOrder('10.10')
  expect((await notify(service, notification(orderId, { amount: 10, UTR: newUtr() }))).status).toBe(409)
  expect([await samplesOf('payments_total'), await samplesOf('payments_rupees_total')]).toEqual(before)
})

it('the service reports the version and the commit of the running build as a metric', async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(await samplesOf('upi_payments_build_info')).toEqual({ [`{version="${version}",commit="unknown"}`]: 1 })
})
