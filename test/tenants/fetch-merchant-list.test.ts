import { expect, it } from 'vitest'
import { errorResponse, LINKED_MERCHANTS, newMerchant, newPartner, post, startService } from '../support/service.ts'

const service = await startService({ asServiceRole: true })
const list = (pid: string, key: Parameters<typeof post>[3], headers = {}) =>
  post(service.app, LINKED_MERCHANTS, { pid }, key, headers)

it('fetchMerchantList returns the partner’s merchants by mid in byte order, with exactly the documented fields', async () => {
  const mids = ['list-b', 'list-a', 'list-B', 'list-1', 'list_']
  for (const mid of mids) await newMerchant(service.db, { mid, name: mid === 'list-a' ? 'चाय, "Chai"' : '=Chai' })
  await newMerchant(service.db)
  const { pid, key } = await newPartner(service.db, ...mids)
  await service.db.query(`update partner_merchants set linked_at = '2026-01-05T10:11:12.345678Z' where pid = $1`, [pid])
  await service.db.query(`update merchants set disabled_at = now() where mid = 'list-b'`)
  const { body } = await list(pid, key)
  const record = (merchant_id: string, name = '=Chai', status = 'ACTIVE') => ({
    ...{ merchant_id, name, status },
    linked_at: '2026-01-05T10:11:12.345Z',
  })
  expect(body).toEqual({
    status: true,
    statusCode: 200,
    msg: 'Merchants found',
    data: [
      record('list-1'),
      record('list-B'),
      record('list-a', 'चाय, "Chai"'),
      record('list-b', '=Chai', 'DISABLED'),
      record('list_'),
    ],
  })
  const { text } = await list(pid, key, { accept: 'text/csv' })
  const [header, first, , third] = text.split('\r\n')
  expect(header).toBe('merchant_id,name,status,linked_at')
  expect(first).toBe(`list-1,'=Chai,ACTIVE,2026-01-05T10:11:12.345Z`)
  expect(third).toBe(`list-a,"चाय, ""Chai""",ACTIVE,2026-01-05T10:11:12.345Z`)
})

it('fetchMerchantList returns an empty list to a partner without merchants, and more merchants than a short list has', async () => {
  const { pid, key } = await newPartner(service.db)
  const none = { status: true, statusCode: 200, msg: 'No merchants found', data: [] }
  expect((await list(pid, key)).body).toEqual(none)
  await service.db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select 'many' || i, 'Chai', 'chai@examplebank', '5814', 'link', now() from generate_series(1, 1100) i`,
  )
  await service.db.query(
    `insert into partner_merchants (pid, mid) select $1, 'many' || i from generate_series(1, 1100) i`,
    [pid],
  )
  const mids = (await list(pid, key)).body.data.map(({ merchant_id }: { merchant_id: string }) => merchant_id)
  expect(mids).toEqual(Array.from({ length: 1_100 }, (_, i) => `many${i + 1}`).toSorted())
})

it('fetchMerchantList returns 400 without pid, and 403 for another partner’s pid and for a merchant’s key', async () => {
  const merchant = await newMerchant(service.db)
  const { pid, key } = await newPartner(service.db, merchant.mid)
  const other = await newPartner(service.db)
  expect((await post(service.app, LINKED_MERCHANTS, undefined, key)).body).toEqual(
    errorResponse(400, 'pid is required'),
  )
  expect((await list(pid, other.key)).status).toBe(403)
  expect((await list(pid, merchant.key)).status).toBe(403)
  expect((await list('no-such-partner', key)).status).toBe(403)
})
