import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, inject, it, onTestFinished } from 'vitest'
import { openPool, startPostgresServer } from '../support/postgres-server.ts'
import { killStarted } from '../support/processes.ts'
import { createRequest } from '../support/requests.ts'
import { newMerchant } from '../support/tenants.ts'
import { openBench } from './bench.ts'
import { floor, startContender } from './contenders.ts'
import { responsesTo } from './load.ts'
import { requireSameBytes } from './same-bytes.ts'

afterAll(killStarted)

const REQUEST = createRequest({ mid: 'M1', key: { publicKey: 'pk', secretKey: 'sk' } })
const RESPONSE = {
  status: 200,
  headers: {
    'x-request-id': '0dc99067-06c7-4bfa-a664-72e7e5a6fa83',
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
    'content-length': '61',
    Date: 'Sun, 29 Nov 2026 03:11:35 GMT',
    Connection: 'keep-alive',
    'Keep-Alive': 'timeout=75',
  },
  body: '{"orderId":"01a225495f6218d37f87950519d69746","amount":"₹"}',
}

it.each([false, true])('the bare Fastify returns the bytes of the service, with log: %s', async (logs) => {
  const { url } = await startContender(floor(RESPONSE, logs))
  requireSameBytes({ service: [RESPONSE], floor: await responsesTo(url, [REQUEST]) })
})

it.each([
  ['body', { body: '{}' }],
  ['length of an id', { body: RESPONSE.body.replace('01a2', '01a') }],
  ['header', { headers: { ...RESPONSE.headers, 'cache-control': 'private' } }],
  ['status', { status: 201 }],
])('contenders whose responses have another %s are not compared', (_what, change) => {
  expect(() => requireSameBytes({ service: [RESPONSE], other: [{ ...RESPONSE, ...change }] })).toThrow('differ')
})

it('ids and times of compared responses may differ', () => {
  const other = JSON.parse(JSON.stringify(RESPONSE).replaceAll('01a2', '99b3').replaceAll('03:11', '04:59'))
  requireSameBytes({ service: [RESPONSE], other: [other] })
})

const PAID_ORDER = `
  insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
    customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
  values ('M0', 'o', 'o', 100, '', '', '', '', '', '', '', '', now(), now(), 'SUCCESS', 'u')
  returning current_user`

it('the service connects with its role, the reference as the owner of tables without triggers, to default settings', async () => {
  const directory = mkdtempSync(join(inject('runDirectory'), 'bench-'))
  const postgres = await startPostgresServer(directory)
  onTestFinished(postgres.stop)
  const bench = await openBench({ directory, postgres }, { quick: true, superuser: false })
  const ours = await bench.createDatabase('ours')
  const compared = await bench.createComparedDatabase('compared')
  for (const { db } of [ours, compared]) await newMerchant(db, { mid: 'M0' })
  await bench.settle()

  await expect(openPool(ours.url).query(PAID_ORDER)).rejects.toThrow('a new order is not paid')
  const owner = openPool(compared.url)
  expect((await owner.query(PAID_ORDER)).rows).toEqual([{ current_user: 'upi_owner' }])
  await owner.query(`update payment_intents set utr = 'v'`) // A trigger for every role rejects it.
  const settings = await ours.db.query('show max_wal_size')
  expect(settings.rows).toEqual([{ max_wal_size: '1GB' }])
})
