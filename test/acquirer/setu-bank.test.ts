import { expect, it } from 'vitest'
import { setuSettings, startBank } from '../support/fake-setu.ts'

/** The tests of Setu rely on it, and would not notice. */
it.each([
  { merchantVpa: 'Shop@examplebank' },
  { amount: 99 },
  { amount: 100.5 },
  { amount: '20000' },
  { referenceId: '' },
  { expiryDate: 'tomorrow' },
  { minAmount: 100 },
  { metadata: { a: 1 } },
])('the fake of Setu refuses and remembers a request that Setu does not document: %j', async (changes) => {
  const bank = await startBank(() => new Date())
  const send = async (url: string, headers: Record<string, string>, body: object) => {
    const json = { 'content-type': 'application/json', ...headers }
    const response = await fetch(url, { method: 'POST', headers: json, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Record<string, string> }
  }
  const { clientId, clientSecret } = setuSettings(bank)
  const credentials = { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' }
  const { access_token } = (await send(bank.loginUrl, { client: 'bridge' }, credentials)).body
  const qr = {
    merchantVpa: 'shop@examplebank',
    amount: 20_000,
    expiryDate: '2026-03-31T18:45:00Z',
    referenceId: 'order-1',
  }
  const headers = { authorization: `Bearer ${access_token}`, merchantId: '01MERCHANT' }
  const create = (body: object) => send(`${bank.url}/api/v1/merchants/dqr`, headers, body)
  expect((await create(qr)).status).toBe(201)
  const { status, body } = await create({ ...qr, ...changes })
  expect([status, Object.keys(body)]).toEqual([400, ['code', 'detail', 'docUrl']])
  expect(bank.violations.splice(0)).toEqual([expect.stringMatching(/^createDqr: request\/body/)])
})
