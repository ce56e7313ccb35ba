import { beforeAll, describe, expect, it, vi } from 'vitest'
import { opsOn } from '../support/ops.ts'
import {
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  STATUS,
  startService,
  type TestService,
} from '../support/service.ts'

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  // Every request looks up its key.
  service = await startService({ asServiceRole: true, limits: { lookUps: { cachedMs: 1 } } })
})
beforeAll(async () => {
  ;({ mid, key } = await newMerchant(service.db))
})

const { json } = opsOn(() => service.databaseUrl, ['keys'])
const use = async (by: Key = key) => (await post(service.app, STATUS, { mid, order_id: 'none' }, by)).status
const lastUsed = async ({ publicKey }: Key = key): Promise<string | null> =>
  (await json('list')).find((one: { publicKey: string }) => one.publicKey === publicKey).lastUsedOn

describe('day of a key’s last use', () => {
  it('stores the last use of a merchant’s or partner’s key as an IST day, even after the key is revoked', async () => {
    const partner = await newPartner(service.db, mid)
    expect([await lastUsed(), await lastUsed(partner.key)]).toEqual([null, null])
    service.clock.set('2026-03-31T18:29:59Z')
    expect(await use()).toBe(404)
    await expect.poll(() => lastUsed()).toBe('2026-03-31')
    service.clock.set('2026-03-31T18:30:00Z')
    await use()
    await expect.poll(() => lastUsed()).toBe('2026-04-01')
    const days = { s_date: '01-04-2026', e_date: '30-04-2026' }
    expect((await post(service.app, LIST, { pid: partner.pid, mid, ...days }, partner.key)).status).toBe(200)
    await expect.poll(() => lastUsed(partner.key)).toBe('2026-04-01')
    await json('revoke', '--public-key', partner.key.publicKey)
    expect(await lastUsed(partner.key)).toBe('2026-04-01')
  })

  it('never moves the day of a key’s last use back, even if the clock of another instance is behind', async () => {
    service.clock.set('2026-04-05T06:00:00Z')
    await use()
    await expect.poll(() => lastUsed()).toBe('2026-04-05')
    service.clock.set('2026-04-04T06:00:00Z')
    await use()
    service.clock.set('2026-04-06T06:00:00Z')
    const other = await newKey(service.db, { mid })
    await use(other)
    await expect.poll(() => lastUsed(other)).toBe('2026-04-06')
    expect(await lastUsed()).toBe('2026-04-05')
  })

  it('does not change the day of a key’s last use after a wrong secret', async () => {
    const other = await newKey(service.db, { mid })
    expect(await use({ ...other, secretKey: 'sk_wrong' })).toBe(401)
    const right = await newKey(service.db, { mid })
    await use(right)
    await expect.poll(() => lastUsed(right)).not.toBeNull()
    expect(await lastUsed(other)).toBeNull()
  })

  it('writes the day of a key’s last use once a day, however many requests arrive', async () => {
    service.clock.set('2026-05-01T06:00:00Z')
    const written = vi.spyOn(service.pools.due, 'query')
    const updates = () => written.mock.calls.filter(([statement]) => JSON.stringify(statement).includes('last_used_on'))
    expect(await use()).toBe(404)
    await expect.poll(() => lastUsed()).toBe('2026-05-01')
    await Promise.all(Array.from({ length: 20 }, () => use()))
    for (let i = 0; i < 20; i += 1) expect(await use()).toBe(404)
    expect(updates()).toHaveLength(1)
    written.mockRestore()
  })
})

describe('requests with a key whose last use cannot be written', () => {
  it('accepts requests although a locked table prevents the service from writing the last use of their keys', async () => {
    service.clock.set('2026-06-01T06:00:00Z')
    const locker = await service.db.connect()
    await locker.query('begin')
    await locker.query('lock table key_uses in exclusive mode')
    const keys = await Promise.all(Array.from({ length: 8 }, () => newKey(service.db, { mid })))
    for (const one of [key, ...keys]) expect(await use(one)).toBe(404)
    await locker.query('rollback')
    locker.release()
    await expect.poll(() => lastUsed(), { timeout: 10_000 }).toBe('2026-06-01')
  })

  it('accepts a request although the database rejects the last use of its key, and writes the next use', async () => {
    service.clock.set('2026-06-02T06:00:00Z')
    await service.db.query('revoke insert on key_uses from upi_service')
    for (let i = 0; i < 3; i += 1) expect(await use()).toBe(404)
    await service.db.query('grant insert on key_uses to upi_service')
    await expect
      .poll(async () => {
        expect(await use()).toBe(404)
        return lastUsed()
      })
      .toBe('2026-06-02')
  })
})
