import { expect, it } from 'vitest'
import { LIST, newMerchant, newPartner, post, startService } from '../support/service.ts'

it('a short list is answered while slow readers of long ones hold every connection of theirs', async () => {
  const { app, db, listDb } = await startService()
  const { mid } = await newMerchant(db)
  const { pid, key } = await newPartner(db, mid)
  const held = await Promise.all(Array.from({ length: listDb.options.max }, () => listDb.connect()))
  try {
    const days = { s_date: '01-01-2026', e_date: '31-01-2026' }
    const { status, body } = await post(app, LIST, { pid, mid, ...days }, key)
    expect([status, body]).toEqual([200, { status: true, statusCode: 200, msg: 'No settlements found', data: [] }])
  } finally {
    for (const client of held) client.release()
  }
})
